"""Settings become objects: the only place that wires.

Each function imports what its own process needs. The web process runs without a network runtime, and `probe` need not
wait for one.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from app.config import Settings
from app.inference.cores import machine, network_threads, usable_cores
from app.inference.inventory import Inventory
from app.inference.manifest import Manifest
from app.media.limits import MediaLimits
from app.processors import discover

if TYPE_CHECKING:
    from app.inference.install import Installer
    from app.inference.session import OrtModelZoo
    from app.inference.spec import ModelZoo
    from app.jobs.database import Database
    from app.jobs.face_library import FaceLibrary
    from app.pipeline.tools import Tools
    from app.runtime.benchmark import Benchmark
    from app.runtime.doctor import Diagnosis
    from app.runtime.fleet import EngineSeat
    from app.runtime.occupancy import WorkClock
    from app.service import Studio
    from app.workbench import Workbench


def manifest(settings: Settings) -> Manifest:
    """The list of known models."""
    return Manifest.load(settings.manifest)


def inventory(settings: Settings) -> Inventory:
    """What of it is installed."""
    return Inventory(manifest(settings), settings.models_path)


def installer(settings: Settings) -> "Installer":
    """Installs models."""
    from app.inference.install import Installer

    return Installer(manifest(settings), settings.models_path)


def limits(settings: Settings) -> MediaLimits:
    """How large a file may be."""
    return MediaLimits(
        max_still_pixels=settings.max_still_pixels,
        max_side_px=settings.max_side_px,
        max_duration_s=settings.max_duration_s,
        max_animation_frames=settings.max_animation_frames,
    )


def examine(settings: Settings) -> "Diagnosis":
    """Look at this machine."""
    from app.runtime.doctor import examine

    return examine(inventory(settings), settings.data_dir)


def check_devices(settings: Settings) -> None:
    """Keep to `require_gpu`.

    Raises:
        DeviceUnavailableError: Only the CPU works here, and the operator wants more.
    """
    if settings.require_gpu:
        check_device_works(settings)


def check_device_works(settings: Settings) -> None:
    """Try the device that the settings name.

    Raises:
        DeviceUnavailableError: It does not really work.
    """
    from app.inference.session import choose

    choose(settings.device, requires_gpu=settings.require_gpu)


def workbench(settings: Settings) -> "Workbench":
    """Everything in this process, for work here and now."""
    from app.runtime.occupancy import WorkClock
    from app.workbench import Workbench

    device = WorkClock()
    return Workbench(tools_over(model_zoo(settings, device), settings), device)


def face_library(settings: Settings) -> "FaceLibrary":
    """The saved faces."""
    from app.jobs.face_library import FaceLibrary
    from app.jobs.folders import DataFolders

    return FaceLibrary(DataFolders(settings.data_dir).faces)


def delete_saved_face(settings: Settings, face_id: str) -> None:
    """Remove a saved face, unless a job that waits or runs needs it.

    Raises:
        InUseError: One does.
        NotFoundError: No saved face has this id.
    """
    from app.core.errors import InUseError
    from app.jobs.folders import DataFolders
    from app.jobs.store import JobStore

    # Where no job was ever handed in there is no database, and none need be made.
    if DataFolders(settings.data_dir).database.exists():
        with _open_database(settings) as database:
            if JobStore(database).needs_face(face_id):
                raise InUseError("a job that is not finished needs this face; cancel it first")
    face_library(settings).delete(face_id)


def build_engine(settings: Settings, model_id: str) -> None:
    """Build the TensorRT engine of one model, here and now: a child process of `build_engines` does."""
    from app.inference.spec import ModelId

    with model_zoo(settings) as zoo:
        zoo.build_engine(ModelId(model_id))


def engine_tools(zoos: "EngineZoos", settings: Settings) -> tuple["Tools", "Tools"]:
    """For jobs, and for whoever waits; a face that one has made is there for the other."""
    jobs = tools_over(zoos.jobs, settings)
    return jobs, replace(tools_over(zoos.people, settings), recent_faces=jobs.recent_faces)


def tools_over(zoo: "ModelZoo", settings: Settings) -> "Tools":
    """What every plan of this process shares, over these models."""
    from app.inference.spec import ModelId
    from app.pipeline.analysis import AnalysisChoice
    from app.pipeline.tools import Tools
    from app.runtime.allocator import return_large_blocks
    from app.runtime.image_threads import share_cores

    return_large_blocks()
    share_cores(settings.engines)
    # The only way to keep the AV1 encoder from writing its settings to standard error.
    os.environ.setdefault("SVT_LOG", "1")
    return Tools.over(
        zoo,
        discover(),
        limits(settings),
        saved_face=face_library(settings).identity,
        analysis=AnalysisChoice(
            detector=ModelId(settings.detector),
            landmarker=ModelId(settings.landmarker),
            recognizer=ModelId(settings.recognizer),
        ),
    )


def model_zoo(settings: Settings, device: "WorkClock | None" = None) -> "OrtModelZoo":
    """The models; `device` counts the time in which they run."""
    from app.inference.session import OrtModelZoo, ZooOptions
    from app.runtime.lanes import one_at_a_time, run_side_by_side

    return OrtModelZoo(
        manifest(settings),
        settings.models_path,
        device=settings.device,
        requires_gpu=settings.require_gpu,
        threads=settings.threads or network_threads(usable_cores(), settings.engines),
        options=ZooOptions(
            precision=settings.precision,
            budget_bytes=settings.device_memory_bytes,
            cache_dir=settings.data_dir / "cache",
            run_many=run_side_by_side,
            cuda_graphs=settings.cuda_graphs,
            gate=one_at_a_time(),
            at_work=nullcontext if device is None else device.at_work,
        ),
    )


@dataclass(frozen=True, slots=True)
class EngineZoos:
    """The models as an engine's jobs run them, and as somebody does who waits and watches.

    Attributes:
        device: Kind of device on which they really run.
        clock: Counts the time in which they run.
    """

    jobs: "ModelZoo"
    people: "ModelZoo"
    device: str
    clock: "WorkClock"


@contextmanager
def engine_zoos(settings: Settings) -> Iterator[EngineZoos]:
    """The models of an engine process; on a GPU one thread runs the calls of all in batches.

    On the CPU a batch makes nothing cheaper (the sweep finds best batches of 1 to 4), and two threads use two cores
    better than one.
    """
    from app.inference.providers import label
    from app.runtime.batch_sizes import BatchSizes
    from app.runtime.batcher import BatchingZoo
    from app.runtime.occupancy import WorkClock

    clock = WorkClock()
    with model_zoo(settings, clock) as zoo:
        if zoo.provider.device == "cpu":
            yield EngineZoos(zoo, zoo, "cpu", clock)
            return
        remembered = settings.data_dir / "cache" / "batch_sizes.json"
        with BatchingZoo(zoo, BatchSizes(remembered, label(zoo.provider))) as batching:
            yield EngineZoos(batching.jobs, batching.people, zoo.provider.device, clock)


def benchmark(
    settings: Settings,
    models: Literal["installed", "stub"],
    *,
    is_quick: bool,
    on_progress: Callable[[str], None],
) -> "Benchmark":
    """Measure this machine, with the installed models or with stubs that cost nothing."""
    from app.inference.providers import label
    from app.inference.stub import StubZoo
    from app.runtime.benchmark import FACE_HEIGHT, QUICK, BenchmarkPlan, centers, measure
    from app.runtime.crop_times import crop_times

    plan = QUICK if is_quick else BenchmarkPlan()
    known = manifest(settings)
    if models == "stub":
        return measure(
            lambda faces: tools_over(
                StubZoo(known, centers(faces), face_height=FACE_HEIGHT), settings
            ),
            [],
            plan,
            machine=machine(),
            models=models,
            on_progress=on_progress,
        )
    with model_zoo(settings) as zoo:
        tools = tools_over(zoo, settings)
        statuses = inventory(settings).statuses()
        measured = measure(
            lambda _: tools,
            [status.spec.id for status in statuses if status.is_installed],
            plan,
            machine=f"{machine()}; networks on {label(zoo.provider)}",
            models=models,
            on_progress=on_progress,
        )
        on_progress("crops")
        sizes_wh = [(width, height) for width, height, _ in plan.sizes_wh]
        return replace(measured, crops=tuple(crop_times(zoo.provider, sizes_wh)))


@contextmanager
def _open_database(settings: Settings) -> Iterator["Database"]:
    from app.jobs.database import Database
    from app.jobs.folders import DataFolders
    from app.jobs.library import storage_errors_told

    folders = DataFolders(settings.data_dir)
    with storage_errors_told():
        folders.create()
    with Database(folders.database) as database:
        yield database


@contextmanager
def studio(settings: Settings, *, should_stop: Callable[[], bool]) -> Iterator["Studio"]:
    """The facade of the page and the API, with an engine process that runs its jobs until `should_stop`."""
    from app.jobs.engines import EngineRegister
    from app.jobs.folders import DataFolders
    from app.jobs.library import MediaLibrary
    from app.jobs.store import JobStore
    from app.jobs.sweep import sweep_orphans
    from app.media.preview import thumbnail_jpeg
    from app.media.probe import probe
    from app.runtime.caller import EngineCaller
    from app.runtime.supervisor import ENGINE_COMMAND, Supervisor, SupervisorOptions
    from app.service import Studio, StudioParts

    bounds = limits(settings)
    folders = DataFolders(settings.data_dir)
    seats = _engine_seats(settings)
    with _open_database(settings) as database:
        sweep_orphans(database, folders)
        register = EngineRegister(database)
        library = MediaLibrary(
            database,
            folders.media,
            probe=lambda path: probe(path, bounds),
            max_bytes=settings.max_upload_bytes,
        )
        parts = StudioParts(
            folders=folders,
            store=JobStore(database),
            library=library,
            engines=register,
            processors=discover(),
            models=manifest(settings).models,
            models_dir=settings.models_path,
            thumbnail=lambda path, side_px: thumbnail_jpeg(path, side_px, bounds),
            engine=EngineCaller(*(folders.socket_of(seat.name) for seat in seats)),
            max_queued_jobs=settings.max_queued_jobs,
        )
        register.keep_only([seat.name for seat in seats])
        with ExitStack() as engines:
            for seat in seats:
                options = SupervisorOptions(
                    # What came from the command line is not in the environment that the engine inherits.
                    command=(
                        *ENGINE_COMMAND,
                        "--name",
                        seat.name,
                        *_engine_arguments(settings, len(seats)),
                    ),
                    engine_name=seat.name,
                    environment={**os.environ, **seat.environment},
                )
                engines.enter_context(Supervisor(register, options, should_stop=should_stop))
            yield Studio(parts)


def _engine_seats(settings: Settings) -> tuple["EngineSeat", ...]:
    from app.inference.gpu import gpu_names
    from app.runtime.fleet import engine_seats

    gpus = gpu_names(os.environ)
    if len(gpus) > 1:
        # The runtime takes long to load; the one GPU, or none, is found without it.
        from app.inference.providers import cuda_gpus

        gpus = cuda_gpus(settings.device, os.environ)
    return engine_seats(settings.engines, gpus)


def _engine_arguments(settings: Settings, engines: int) -> tuple[str, ...]:
    named = (
        ("--data", settings.data_dir),
        ("--models-dir", settings.models_path),
        # Of itself an engine would not know of the others, and take the cores for its own.
        ("--engines", engines),
    )
    given = [text for name, value in named for text in (name, str(value))]
    gpu = ["--require-gpu"] if settings.require_gpu else []
    return (*given, "--device", settings.device, *gpu)


def run_engine_process(settings: Settings, *, name: str, parent_fd: int | None) -> None:
    """Run the jobs of a data folder until asked to stop, or until the parent process is gone."""
    from app.jobs.engines import EngineRegister
    from app.jobs.folders import DataFolders
    from app.jobs.store import JobStore
    from app.runtime.desk import LocalDesk
    from app.runtime.engine import EngineOptions, EngineParts, run_engine
    from app.runtime.executor import LocalExecutor
    from app.runtime.stopping import stop_when_asked

    with (
        stop_when_asked(parent_fd) as should_stop,
        _open_database(settings) as database,
        engine_zoos(settings) as zoos,
    ):
        folders = DataFolders(settings.data_dir)
        jobs, people = engine_tools(zoos, settings)
        parts = EngineParts(
            store=JobStore(database),
            engines=EngineRegister(database),
            folders=folders,
            executor=LocalExecutor(jobs, zoos.clock),
            desk=LocalDesk(people, folders.previews_of(name), face_library(settings)),
            options=EngineOptions(name=name, device=zoos.device),
        )
        run_engine(parts, should_stop=should_stop)

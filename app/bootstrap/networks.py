"""Processes that run networks: an engine, and a command that works here and now."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from app.bootstrap.parts import face_library, inventory, limits, manifest, open_database
from app.config import Settings
from app.inference.cores import machine, network_threads, usable_cores
from app.processors import discover

if TYPE_CHECKING:
    from app.inference.crops import DeviceCrops, RunWork
    from app.inference.providers import Provider
    from app.inference.session import OrtModelZoo
    from app.inference.spec import ModelZoo
    from app.pipeline.tools import Tools
    from app.runtime.benchmark import Benchmark
    from app.runtime.occupancy import WorkClock
    from app.workbench import Workbench

logger = logging.getLogger(__name__)


def cuts_on_device(settings: Settings, provider: "Provider") -> bool:
    """Whether faces are cut on the networks' device: where the settings say so, by themselves where it is quicker."""
    if settings.device_crops != "auto":
        return settings.device_crops == "on"
    if provider.device not in ("cuda", "tensorrt"):
        return False
    from app.inference.crops import DeviceCrops
    from app.runtime.crop_times import why_not_on_device

    why_not = why_not_on_device(DeviceCrops(provider))
    if why_not:
        logger.info("faces are cut on the processor, not on the device: %s", why_not)
    return not why_not


def device_crops(settings: Settings, zoo: "OrtModelZoo") -> "DeviceCrops | None":
    """What cuts faces on the device of these models, in whatever thread asks; nothing where the processor does."""
    if not cuts_on_device(settings, zoo.provider):
        return None
    from app.inference.crops import DeviceCrops

    return DeviceCrops(zoo.provider)


def workbench(settings: Settings) -> "Workbench":
    """Everything in this process, for work here and now."""
    from app.runtime.occupancy import WorkClock
    from app.workbench import Workbench

    device = WorkClock()
    zoo = model_zoo(settings, device)
    return Workbench(tools_over(zoo, settings, device_crops(settings, zoo)), device)


def tools_over(zoo: "ModelZoo", settings: Settings, crops: "DeviceCrops | None" = None) -> "Tools":
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
        crops=crops,
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


def build_engine(settings: Settings, model_id: str) -> None:
    """Build the TensorRT engine of one model, here and now: a child process of `build_engines` does."""
    from app.inference.spec import ModelId

    with model_zoo(settings) as zoo:
        zoo.build_engine(ModelId(model_id))


@dataclass(frozen=True, slots=True)
class EngineZoos:
    """The models as an engine's jobs run them, and as somebody does who waits and watches.

    Attributes:
        device: Kind of device on which they really run.
        clock: Counts the time in which they run.
        job_crops: Cut faces on that device for jobs; without it the processor does.
        people_crops: The same for whoever waits.
    """

    jobs: "ModelZoo"
    people: "ModelZoo"
    device: str
    clock: "WorkClock"
    job_crops: "DeviceCrops | None" = None
    people_crops: "DeviceCrops | None" = None


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
        is_cut_there = cuts_on_device(settings, zoo.provider)

        def crops(run: "RunWork | None" = None) -> "DeviceCrops | None":
            if not is_cut_there:
                return None
            from app.inference.crops import DeviceCrops, at_once

            return DeviceCrops(zoo.provider, run=run or at_once, at_work=clock.at_work)

        if zoo.provider.device == "cpu":
            yield EngineZoos(zoo, zoo, "cpu", clock, crops(), crops())
            return
        remembered = settings.data_dir / "cache" / "batch_sizes.json"
        with BatchingZoo(zoo, BatchSizes(remembered, label(zoo.provider))) as batching:
            yield EngineZoos(
                batching.jobs,
                batching.people,
                zoo.provider.device,
                clock,
                crops(batching.run_job),
                crops(batching.run_for_people),
            )


def engine_tools(zoos: "EngineZoos", settings: Settings) -> tuple["Tools", "Tools"]:
    """For jobs, and for whoever waits; a face that one has made is there for the other."""
    jobs = tools_over(zoos.jobs, settings, zoos.job_crops)
    people = tools_over(zoos.people, settings, zoos.people_crops)
    return jobs, replace(people, recent_faces=jobs.recent_faces)


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
        open_database(settings) as database,
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
        tools = tools_over(zoo, settings, device_crops(settings, zoo))
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

"""Settings become objects: the only place that wires.

Each function imports what its own process needs. The web process runs without a network runtime, and `probe` need not
wait for one.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.config import Settings
from app.inference.inventory import Inventory
from app.inference.manifest import Manifest
from app.media.limits import MediaLimits
from app.processors import discover

if TYPE_CHECKING:
    from app.inference.install import Installer
    from app.jobs.database import Database
    from app.jobs.face_library import FaceLibrary
    from app.pipeline.tools import Tools
    from app.runtime.doctor import Diagnosis
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


def workbench(settings: Settings) -> "Workbench":
    """Everything in this process, for work here and now."""
    from app.workbench import Workbench

    return Workbench(_tools(settings))


def face_library(settings: Settings) -> "FaceLibrary":
    """The saved faces."""
    from app.jobs.face_library import FaceLibrary
    from app.jobs.folders import DataFolders

    return FaceLibrary(DataFolders(settings.data_dir).faces)


def _tools(settings: Settings) -> "Tools":
    from app.inference.session import OrtModelZoo
    from app.pipeline.tools import Tools
    from app.runtime.allocator import return_large_blocks

    return_large_blocks()
    # The only way to keep the AV1 encoder from writing its settings to standard error.
    os.environ.setdefault("SVT_LOG", "1")
    zoo = OrtModelZoo(
        manifest(settings), settings.models_path, device=settings.device, threads=settings.threads
    )
    saved_face = face_library(settings).identity
    return Tools.over(zoo, discover(), limits(settings), saved_face=saved_face)


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
            engine=EngineCaller(folders.engine_socket),
            max_queued_jobs=settings.max_queued_jobs,
        )
        # What came from the command line is not in the environment that the engine inherits.
        command = (*ENGINE_COMMAND, "--data", str(settings.data_dir))
        with Supervisor(register, SupervisorOptions(command=command), should_stop=should_stop):
            yield Studio(parts)


def run_engine_process(settings: Settings, *, parent_fd: int | None) -> None:
    """Run the jobs of a data folder until asked to stop, or until the parent process is gone."""
    from app.jobs.engines import EngineRegister
    from app.jobs.folders import DataFolders
    from app.jobs.store import JobStore
    from app.runtime.desk import LocalDesk
    from app.runtime.engine import EngineParts, run_engine
    from app.runtime.executor import LocalExecutor
    from app.runtime.stopping import stop_when_asked

    with stop_when_asked(parent_fd) as should_stop, _open_database(settings) as database:
        folders, tools = DataFolders(settings.data_dir), _tools(settings)
        parts = EngineParts(
            store=JobStore(database),
            engines=EngineRegister(database),
            folders=folders,
            executor=LocalExecutor(tools),
            desk=LocalDesk(tools, folders.previews, face_library(settings)),
        )
        run_engine(parts, should_stop=should_stop)

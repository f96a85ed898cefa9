"""The web process, and the engine processes that it starts."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from app.bootstrap.parts import limits, manifest, open_database
from app.config import Settings
from app.processors import discover

if TYPE_CHECKING:
    from app.runtime.fleet import EngineSeat
    from app.service import Studio


@contextmanager
def studio(settings: Settings, *, should_stop: Callable[[], bool]) -> Iterator["Studio"]:
    """The facade of the page and the API, with an engine process that runs its jobs until `should_stop`."""
    from app.catalog import ModelShelf
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
    with open_database(settings) as database:
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
            models=ModelShelf(manifest(settings).models, settings.models_path),
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

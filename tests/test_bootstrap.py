"""The wiring of processes."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path

import cv2
import pytest

from app import bootstrap
from app.bootstrap import networks
from app.config import Settings
from app.inference.manifest import Manifest
from app.inference.stub import StubZoo
from app.jobs.engines import EngineRegister
from app.media.limits import MediaLimits
from app.runtime import image_threads
from app.runtime.benchmark import FACE_HEIGHT, centers
from app.runtime.occupancy import WorkClock
from app.runtime.supervisor import SupervisorOptions


def stubs(settings: Settings) -> StubZoo:
    return StubZoo(Manifest.load(settings.manifest), centers(1), face_height=FACE_HEIGHT)


def test_a_face_that_a_preview_has_made_is_there_for_the_job(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    zoo = stubs(settings)
    zoos = bootstrap.EngineZoos(zoo, zoo, "cpu", WorkClock())
    jobs, people = bootstrap.engine_tools(zoos, settings)
    assert jobs.recent_faces is people.recent_faces


@pytest.mark.parametrize(("chosen", "gpus", "engines"), [(0, 1, 1), (0, 3, 3), (2, 1, 2)])
def test_every_engine_is_told_how_many_share_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: int, gpus: int, engines: int
) -> None:
    names = tuple(map(str, range(gpus)))
    commands: list[Sequence[str]] = []

    class Told(nullcontext[None]):
        def __init__(self, _: EngineRegister, options: SupervisorOptions, **__: object) -> None:
            super().__init__()
            commands.append(options.command)

    monkeypatch.setattr("app.inference.gpu.gpu_names", lambda _: names)
    monkeypatch.setattr("app.inference.providers.cuda_gpus", lambda *_: names)
    monkeypatch.setattr("app.runtime.supervisor.Supervisor", Told)
    settings = Settings(data_dir=tmp_path, engines=chosen)
    with bootstrap.studio(settings, should_stop=lambda: False):
        pass
    assert len(commands) == engines
    for command in commands:
        assert command[command.index("--engines") + 1] == str(engines)


@pytest.mark.parametrize(("engines", "threads"), [(0, 8), (2, 4), (4, 2)])
def test_networks_and_pictures_of_an_engine_keep_to_its_share_of_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engines: int, threads: int
) -> None:
    before = cv2.getNumThreads()
    for module in (networks, image_threads):
        monkeypatch.setattr(module, "usable_cores", lambda: 16)
    settings = Settings(data_dir=tmp_path, device="cpu", engines=engines)
    zoo = bootstrap.model_zoo(settings)
    bootstrap.tools_over(stubs(settings), settings)
    assert (zoo._threads, cv2.getNumThreads()) == (threads, threads)
    cv2.setNumThreads(before)


def test_every_limit_of_files_is_a_setting() -> None:
    names = {field.name for field in fields(MediaLimits)} - {"max_frames"}
    wished = dict.fromkeys(names, 7)
    found = asdict(bootstrap.limits(Settings(**wished)))  # type: ignore[arg-type]
    assert {name: found[name] for name in names} == wished

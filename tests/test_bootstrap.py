"""The wiring of processes."""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from app import bootstrap
from app.bootstrap import networks
from app.config import Settings
from app.core.picture import Picture
from app.inference.manifest import Manifest
from app.inference.providers import CPU, PROVIDERS
from app.inference.stub import StubZoo
from app.jobs.engines import EngineRegister
from app.media.limits import MediaLimits
from app.pipeline.device_landmarks import DeviceLandmarker
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


@pytest.mark.parametrize(
    ("chosen", "device", "why_not", "is_used"),
    [
        pytest.param("auto", "cpu", "", False, id="the processor cuts for itself"),
        pytest.param("auto", "cuda", "", True, id="a GPU that is quicker"),
        pytest.param("auto", "tensorrt", "", True, id="TensorRT, by CUDA behind it"),
        pytest.param("auto", "cuda", "it takes longer", False, id="a GPU that is slower"),
        pytest.param("auto", "openvino", "", False, id="a device without memory of its own"),
        pytest.param("on", "cpu", "it takes longer", True, id="somebody wants it so"),
        pytest.param("off", "cuda", "", False, id="somebody does not want it"),
    ],
)
def test_faces_are_cut_on_the_device_where_that_gains_or_is_wanted(
    monkeypatch: pytest.MonkeyPatch, chosen: Any, device: str, why_not: str, is_used: bool
) -> None:
    monkeypatch.setattr("app.runtime.crop_times.why_not_on_device", lambda _: why_not)
    (row,) = (row for row in PROVIDERS if row.device == device)
    assert bootstrap.cuts_on_device(Settings(device_crops=chosen), row) == is_used


def test_both_kinds_of_work_of_an_engine_cut_on_the_device(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, device="cpu", device_crops="on")
    with bootstrap.engine_zoos(settings) as zoos:
        assert zoos.job_crops is not None
    stubbed = replace(zoos, jobs=stubs(settings), people=stubs(settings))
    for tools in bootstrap.engine_tools(stubbed, settings):
        assert isinstance(tools.landmarker, DeviceLandmarker)


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_on_a_gpu_the_one_thread_that_runs_networks_cuts_the_faces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device other than the processor, which here is the processor under another name."""
    other = replace(CPU, device="coreml")
    monkeypatch.setattr("app.inference.session.choose", lambda *_, **__: other)
    settings = Settings(data_dir=tmp_path, device_crops="on")
    picture = Picture.from_rgb(np.full((48, 64, 3), 90, np.uint8))
    where = np.array([[[1, 0, -4], [0, 1, -4]]], np.float32)
    with bootstrap.engine_zoos(settings) as zoos:
        for crops in (zoos.job_crops, zoos.people_crops):
            assert crops is not None
            assert (crops.cut(picture, where, 16) == 90).all()
            assert "device" in {thread.name for thread in threading.enumerate()}
        assert zoos.clock.busy_s > 0

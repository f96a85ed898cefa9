"""The benchmark measures real work, and says on what."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import MissingModelError
from app.core.picture import Picture
from app.faces.detector import FaceDetector
from app.inference.manifest import Manifest
from app.inference.spec import ModelId, ModelSpec, ModelZoo, Task
from app.inference.stub import StubZoo
from app.media.limits import MediaLimits
from app.pipeline.tools import Tools
from app.processors import discover
from app.runtime.benchmark import (
    FACE_HEIGHT,
    Benchmark,
    BenchmarkPlan,
    NetworkTime,
    centers,
    frame_of,
    measure,
    peak_bytes,
)
from tests.inference.faulty import FaultySession

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = Manifest.load(ROOT / "models" / "manifest.toml")
PLAN = BenchmarkPlan(
    batches=(1, 2), network_s=1.0, sizes_wh=((320, 180, 4),), faces=(1, 2), previews=1
)


def tools_over(zoo: ModelZoo) -> Tools:
    limits = MediaLimits(
        max_still_pixels=10**7, max_side_px=4096, max_duration_s=60, max_animation_frames=100
    )
    return Tools.over(zoo, discover(), limits)


def stubs(faces: int) -> Tools:
    return tools_over(StubZoo(MANIFEST, centers(faces), face_height=FACE_HEIGHT))


@pytest.mark.parametrize("faces", [0, 1, 4])
def test_the_stub_detector_finds_the_faces_where_they_are(faces: int) -> None:
    zoo = StubZoo(MANIFEST, centers(faces), face_height=FACE_HEIGHT)
    picture = Picture.from_rgb(frame_of((640, 360), max(1, faces), 0))
    (found,) = FaceDetector(zoo).detect([picture])
    middles = [((f.bbox_xyxy[:2] + f.bbox_xyxy[2:]) / 2 / (640, 360)).tolist() for f in found]
    assert np.allclose(np.ravel(middles), np.ravel(centers(faces)), atol=0.01)
    assert len(found) == faces
    heights = [float(face.bbox_xyxy[3] - face.bbox_xyxy[1]) for face in found]
    assert np.allclose(heights, FACE_HEIGHT * 360, atol=1)


class WithNetworks:
    """Stubs, and networks to measure alone."""

    def __init__(self) -> None:
        self._stubs = StubZoo(MANIFEST, centers(1), face_height=FACE_HEIGHT)

    def spec(self, model_id: ModelId) -> object:
        return MANIFEST.get(model_id)

    def session(self, model_id: ModelId) -> object:
        if model_id == "gfpgan-1.4":
            raise MissingModelError("gfpgan-1.4 is not installed")
        return self._stubs.session(model_id)

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        return self._stubs.installed(task)


@pytest.fixture(scope="module")
def measured() -> Benchmark:
    alone = tools_over(WithNetworks())  # type: ignore[arg-type]
    return measure(
        lambda faces: alone if faces == 1 else stubs(faces),
        [ModelId("sface"), ModelId("gfpgan-1.4")],
        PLAN,
        machine="a test",
        models="stub",
    )


def test_whole_videos_are_swapped_and_counted(measured: Benchmark) -> None:
    counts = [(path.faces, path.frames, path.faces_swapped) for path in measured.paths]
    assert counts == [(1, 4, 4), (2, 4, 8)]
    assert all(path.fps > 0 and path.processor_s > 0 for path in measured.paths)


def test_networks_are_timed_at_each_batch_and_missing_ones_named(measured: Benchmark) -> None:
    assert [(time.model, time.batch) for time in measured.networks] == [("sface", 1), ("sface", 2)]
    assert "not installed" in measured.skipped["gfpgan-1.4"]


def test_previews_and_memory_are_told(measured: Benchmark) -> None:
    assert measured.preview_ms > 0
    assert measured.peak_bytes > 50e6


def test_the_result_is_json_and_a_page(measured: Benchmark) -> None:
    assert json.loads(json.dumps(measured.to_json()))["machine"] == "a test"
    page = measured.to_markdown()
    assert "Machine: a test. Load average:" in page
    assert "| 320x180 | 2 | 4 | 8 |" in page
    assert page.endswith("gfpgan-1.4 was not measured: gfpgan-1.4 is not installed.\n")


def test_a_picture_costs_its_share_of_the_batch() -> None:
    assert NetworkTime(model="n", batch=4, batch_ms=10).row_ms == 2.5


def test_a_slow_network_is_not_measured_in_large_batches() -> None:
    class Slow(WithNetworks):
        def session(self, model_id: ModelId) -> object:
            return FaultySession() if model_id == "x" else super().session(model_id)

    plan = BenchmarkPlan(
        batches=(1, 2, 4), network_s=0.0, sizes_wh=((320, 180, 4),), faces=(1,), previews=1
    )
    tools = tools_over(Slow())  # type: ignore[arg-type]
    done = measure(lambda _: tools, [ModelId("sface")], plan, machine="", models="")
    assert [time.batch for time in done.networks] == [1]


def test_peak_memory_is_the_process_s_own_not_that_of_the_one_that_started_it() -> None:
    ballast = np.ones(400_000_000, np.uint8)
    code = "from app.runtime.benchmark import peak_bytes; print(peak_bytes())"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    assert int(told.stdout) < ballast.nbytes < peak_bytes()

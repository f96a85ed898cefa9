"""A whole render that breaks anywhere ends: with the first error, no thread, no lock, and nothing beside the output."""

import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from app.core.errors import (
    AppError,
    Cancelled,
    DamagedMediaError,
    DeviceError,
    ModelError,
    OutOfDeviceMemoryError,
    StorageFullError,
)
from app.inference.convert import proof_face
from app.inference.manifest import Manifest
from app.inference.spec import Feeds, ModelId, ModelZoo, Outputs, Session
from app.inference.stub import StubZoo
from app.media.limits import MediaLimits
from app.pipeline.progress import Progress
from app.pipeline.spec import RenderSpec
from app.pipeline.tools import Tools
from app.processors import discover
from app.runtime.batch_sizes import BatchSizes, SweepLimits
from app.runtime.batcher import BatchingZoo
from app.runtime.benchmark import FACE_HEIGHT, centers, write_clip
from app.runtime.executor import LocalExecutor

pytestmark = pytest.mark.usefixtures("no_thread_is_left")

ROOT = Path(__file__).resolve().parents[2]
SIZE_WH = (320, 180)
FRAMES = 60
SOON_S = 60.0

NET = "face-mesh-attention"


class BreakingZoo(StubZoo):
    """Stubs; one of them breaks at its n-th call, and so does every call after it."""

    def __init__(self, model: str = "", *, at: int = 0, error: Exception | None = None) -> None:
        manifest = Manifest.load(ROOT / "models" / "manifest.toml")
        super().__init__(manifest, centers(1), face_height=FACE_HEIGHT)
        self._model, self._at, self._error = model, at, error
        self.calls: Counter[str] = Counter()

    def session(self, model_id: ModelId) -> Session:
        return _BreakingSession(self, model_id, super().session(model_id))

    def count(self, model_id: ModelId) -> None:
        self.calls[model_id] += 1
        is_due = model_id == self._model and self.calls[model_id] >= self._at
        if self._error is not None and is_due:
            raise self._error


class _BreakingSession:
    def __init__(self, zoo: BreakingZoo, model_id: ModelId, session: Session) -> None:
        self._zoo, self._id, self._session = zoo, model_id, session

    def run(self, feeds: Feeds) -> Outputs:
        self._zoo.count(self._id)
        return self._session.run(feeds)


def tools_over(zoo: ModelZoo) -> Tools:
    limits = MediaLimits(
        max_still_pixels=10**7, max_side_px=4096, max_duration_s=60, max_animation_frames=100
    )
    return Tools.over(zoo, discover(), limits)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    write_clip(path, SIZE_WH, 1, FRAMES)
    return path


@pytest.fixture
def spec(clip: Path, tmp_path: Path) -> RenderSpec:
    source = tmp_path / "face.png"
    Image.fromarray(np.asarray(cv2.resize(proof_face.draw(), (512, 512)), np.uint8)).save(source)
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "swapped.mp4"
    return RenderSpec(sources=(source,), target=clip, output=output, consent="fictional")


class Outcome:
    """What came of a render in a thread of its own, so that a deadlock fails and does not hang."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        thread.start()
        thread.join(SOON_S)
        assert not thread.is_alive(), "it hangs"

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error


def render(
    zoo: ModelZoo,
    spec: RenderSpec,
    on_progress: Callable[[Progress], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    executor = LocalExecutor(tools_over(zoo))
    return Outcome(lambda: executor.render(spec, on_progress=on_progress, should_stop=should_stop))


def nothing_lies_in(folder: Path) -> bool:
    return list(folder.iterdir()) == []


def test_without_a_fault_it_ends_and_swaps(spec: RenderSpec) -> None:
    """What the other tests break does work."""
    zoo = BreakingZoo()
    told: list[Progress] = []
    assert render(zoo, spec, told.append).error is None
    assert told[-1].frames_done == FRAMES
    assert [path.name for path in spec.output.parent.iterdir()] == ["swapped.mp4"]
    assert min(zoo.calls[name] for name in ("yunet", NET, "sface", "open-nsfw")) > 1


NETWORK_FAULTS = [
    pytest.param("yunet", 3, ModelError("bad"), id="the detector, in the middle"),
    pytest.param("yunet", 1, ModelError("bad"), id="the detector, at once"),
    pytest.param(NET, 6, ModelError("bad"), id="the mesh"),
    pytest.param("sface", 1, ModelError("bad"), id="the recognizer"),
    pytest.param(NET, 5, OutOfDeviceMemoryError("full"), id="no memory"),
    pytest.param(NET, 5, DeviceError("gone"), id="the device"),
    pytest.param(NET, 5, KeyError("nobody thought of this"), id="an error of nobody's"),
]


@pytest.mark.parametrize("is_batched", [False, True], ids=["direct", "through the device's queue"])
@pytest.mark.parametrize(("model", "at", "error"), NETWORK_FAULTS)
def test_a_network_that_fails_ends_the_job_with_its_error(
    model: str, at: int, error: Exception, is_batched: bool, spec: RenderSpec
) -> None:
    zoo = BreakingZoo(model, at=at, error=error)
    if is_batched:
        sizes = BatchSizes(None, "fake", limits=SweepLimits(sizes=(1,)))
        with BatchingZoo(zoo, sizes) as batching:
            outcome = render(batching.jobs, spec)
    else:
        outcome = render(zoo, spec)
    assert type(outcome.error) is type(error)
    assert nothing_lies_in(spec.output.parent)


def test_a_source_that_is_damaged_ends_the_job_with_its_error(
    spec: RenderSpec, clip: Path, tmp_path: Path
) -> None:
    data = bytearray(clip.read_bytes())
    start = data.index(b"mdat") + 4
    random = np.random.default_rng(0)
    data[start + 500 : start + 60_000] = random.bytes(59_500)
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(bytes(data))
    outcome = render(BreakingZoo(), spec.model_copy(update={"target": broken}))
    assert isinstance(outcome.error, DamagedMediaError), outcome.error
    assert nothing_lies_in(spec.output.parent)


def test_an_encoder_that_cannot_write_ends_the_job_with_its_error(spec: RenderSpec) -> None:
    command = [sys.executable, "-m", "tests.runtime.full_disk_process", spec.model_dump_json()]
    told = subprocess.run(
        [*command, "2000"], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    assert told.stdout.decode() == StorageFullError.__name__
    assert nothing_lies_in(spec.output.parent)


def test_a_folder_that_goes_away_under_the_job_is_told(spec: RenderSpec) -> None:
    def remove_folder(_: Progress) -> None:
        shutil.rmtree(spec.output.parent, ignore_errors=True)

    outcome = render(BreakingZoo(), spec, remove_folder)
    assert isinstance(outcome.error, AppError), outcome.error
    assert not spec.output.parent.exists()


@pytest.mark.parametrize("windows", [0, 1, 3])
def test_a_cancelled_job_stops_and_leaves_nothing(windows: int, spec: RenderSpec) -> None:
    told: list[Progress] = []
    zoo = BreakingZoo()
    outcome = render(zoo, spec, told.append, lambda: len(told) >= windows)
    assert isinstance(outcome.error, Cancelled)
    assert len(told) == windows
    assert nothing_lies_in(spec.output.parent)


def test_whoever_is_told_of_progress_and_fails_ends_the_job(spec: RenderSpec) -> None:
    class WalkedAwayError(Exception):
        pass

    def walk_away(_: Progress) -> None:
        raise WalkedAwayError

    assert isinstance(render(BreakingZoo(), spec, walk_away).error, WalkedAwayError)
    assert nothing_lies_in(spec.output.parent)


def test_of_two_faults_the_first_is_told(spec: RenderSpec) -> None:
    """The consumer fails first; the network, which breaks while everybody stops, is no news."""
    first = threading.Event()

    class LateZoo(BreakingZoo):
        def count(self, model_id: ModelId) -> None:
            if first.is_set():
                raise ModelError("second")

    def fail(_: Progress) -> None:
        first.set()
        time.sleep(0.2)
        raise KeyError("first")

    assert isinstance(render(LateZoo(), spec, fail).error, KeyError)


def test_an_executor_goes_on_after_every_fault(spec: RenderSpec) -> None:
    zoo = BreakingZoo(NET, at=5, error=ModelError("bad"))
    executor = LocalExecutor(tools_over(zoo))
    with pytest.raises(AppError):
        executor.render(spec, on_progress=lambda _: None)
    zoo._error = None
    assert executor.render(spec, on_progress=lambda _: None).frames == FRAMES

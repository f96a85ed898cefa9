from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import GateUnavailableError, IntimateContentError, MissingModelError
from app.core.picture import Picture
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo
from app.inference.spec import Feeds, InputContract, License, ModelId, ModelSpec, Outputs
from app.safety.gate import (
    EMPTY_EVERY_S,
    EVERY_S,
    MODEL,
    ContentGate,
    GateWatch,
    Where,
)

Answer = Callable[[NDArray[np.generic]], NDArray[np.generic]]
ROOT = Path(__file__).resolve().parents[2]
GRAY = np.full((90, 160, 3), 100, np.uint8)

SPEC = ModelSpec(
    id=MODEL,
    title="gate",
    task="content_gate",
    file="gate.onnx",
    sources=(),
    sha256="",
    bytes=0,
    license=License(spdx="BSD-2-Clause", commercial="yes", origin="nobody"),
    input=InputContract(name="picture", layout="nhwc", color="bgr", mean=(104, 117, 123)),
)


class FakeSession:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.batches: list[NDArray[np.generic]] = []

    def run(self, feeds: Feeds) -> Outputs:
        self.batches.append(feeds["picture"])
        return {"scores": self.answer(feeds["picture"])}


class FakeZoo:
    def __init__(self, session: FakeSession | Exception) -> None:
        self._session = session

    def spec(self, model_id: ModelId) -> ModelSpec:
        assert model_id == MODEL
        return SPEC

    def session(self, model_id: ModelId) -> FakeSession:
        if isinstance(self._session, Exception):
            raise self._session
        return self._session


def probabilities(scores: Sequence[float]) -> NDArray[np.float32]:
    return np.array([[1 - score, score] for score in scores], np.float32)


def red_is_the_score(batch: NDArray[np.generic]) -> NDArray[np.generic]:
    """A picture's red, in hundredths, is its score."""
    return probabilities(np.rint(np.asarray(batch[:, 0, 0, 2], np.float64) + 123) / 100)


def pictures(scores: Sequence[float]) -> list[NDArray[np.uint8]]:
    return [np.full((64, 64, 3), (round(100 * score), 50, 50), np.uint8) for score in scores]


def gate(answer: Answer = red_is_the_score) -> ContentGate:
    return ContentGate(FakeZoo(FakeSession(answer)))


def test_a_look_at_nothing_is_no_pass() -> None:
    with pytest.raises(GateUnavailableError, match="no picture of the target"):
        gate().check([], "target")


@pytest.mark.parametrize(
    ("scores", "highest"),
    [
        pytest.param([0.0], 0.0, id="harmless"),
        pytest.param([0.79], 0.79, id="just under certain"),
        pytest.param([0.6, 0.7], 0.7, id="two that lean"),
        pytest.param([0.59] * 20, 0.59, id="many just under leaning"),
        pytest.param([0.6, *[0.1] * 59, 0.6, *[0.1] * 59, 0.6], 0.6, id="leaning, far apart"),
    ],
)
def test_the_gate_lets_pass_and_tells_the_highest_score(
    scores: list[float], highest: float
) -> None:
    assert gate().check(pictures(scores), "source") == pytest.approx(highest)


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([0.8], id="one certain"),
        pytest.param([0.0] * 20 + [0.8], id="one certain among many"),
        pytest.param([0.6, 0.6, 0.6], id="three that lean"),
        pytest.param([0.6, *[0.1] * 28, 0.6, *[0.1] * 29, 0.6], id="three that lean, in 60 looks"),
    ],
)
@pytest.mark.parametrize(
    ("where", "word"),
    [("source", "photo of the face"), ("target", "to change"), ("result", "The result")],
)
def test_the_gate_refuses_and_says_what(scores: list[float], where: Where, word: str) -> None:
    with pytest.raises(IntimateContentError, match=word) as caught:
        gate().check(pictures(scores), where)
    assert caught.value.code == "policy.intimate_content"


def raising(error: BaseException) -> Answer:
    def answer(_: NDArray[np.generic]) -> NDArray[np.generic]:
        raise error

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(raising(RuntimeError("device lost")), id="the session raises"),
        pytest.param(raising(MemoryError()), id="out of memory"),
        pytest.param(lambda b: np.full((len(b), 2), np.nan, np.float32), id="not a number"),
        pytest.param(lambda b: np.full((len(b), 2), np.inf, np.float32), id="infinite"),
        pytest.param(lambda b: np.zeros((len(b), 2), np.float32), id="no probabilities"),
        pytest.param(lambda b: np.tile(np.float32([3, -2]), (len(b), 1)), id="negative"),
        pytest.param(lambda b: np.zeros((len(b), 3), np.float32), id="three columns"),
        pytest.param(lambda b: np.zeros(len(b), np.float32), id="one column"),
        pytest.param(lambda b: probabilities([0.0] * (len(b) + 1)), id="a row too many"),
        pytest.param(lambda b: probabilities([0.0] * len(b))[:0], id="no row"),
        pytest.param(lambda b: np.array([["a", "b"]] * len(b)), id="text"),
    ],
)
def test_the_gate_fails_closed(answer: Answer) -> None:
    with pytest.raises(GateUnavailableError, match="nothing is processed"):
        gate(answer).check([GRAY], "source")


@pytest.mark.parametrize(
    "zoo",
    [
        pytest.param(FakeZoo(MissingModelError("open-nsfw is not installed")), id="missing model"),
        pytest.param(FakeZoo(KeyError("open-nsfw")), id="any other failure"),
    ],
)
def test_a_gate_without_its_model_fails_closed(zoo: FakeZoo) -> None:
    with pytest.raises(GateUnavailableError, match="models pull embedded") as caught:
        ContentGate(zoo).check([GRAY], "target")
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(np.zeros((0, 4, 3), np.uint8), id="empty"),
        pytest.param(np.zeros((4, 4), np.uint8), id="gray"),
        pytest.param(np.zeros((4, 4, 4), np.uint8), id="with alpha"),
    ],
)
def test_a_picture_that_is_none_fails_closed(picture: NDArray[np.uint8]) -> None:
    with pytest.raises(GateUnavailableError):
        gate().check([picture], "target")
    watch = GateWatch(gate(), "target")
    watch.add(picture)
    with pytest.raises(GateUnavailableError):
        watch.finish()


def test_the_network_sees_the_middle_of_the_picture_as_its_contract_says() -> None:
    session = FakeSession(lambda batch: probabilities([0.0] * len(batch)))
    picture = np.zeros((512, 512, 3), np.uint8)
    picture[32:480, 32:480] = (200, 100, 50)
    ContentGate(FakeZoo(session)).check([picture], "source")
    (batch,) = session.batches
    assert batch.shape == (1, 224, 224, 3)
    assert batch.dtype == np.float32
    assert np.unique(batch.reshape(-1, 3), axis=0).tolist() == [[50 - 104, 100 - 117, 200 - 123]]


def test_many_pictures_go_through_the_network_in_small_batches() -> None:
    session = FakeSession(lambda batch: probabilities([0.0] * len(batch)))
    ContentGate(FakeZoo(session)).check([GRAY] * 19, "source")
    assert [len(batch) for batch in session.batches] == [2] * 9 + [1]


def clip(
    seconds: float, fps: float = 25.0, value: int = 0
) -> list[tuple[float, NDArray[np.uint8]]]:
    frame = np.full((36, 64, 3), value, np.uint8)
    return [(i / fps, frame) for i in range(round(seconds * fps))]


def looks(
    frames: Sequence[tuple[float, NDArray[np.uint8]]], *, every_s: float = EVERY_S
) -> list[float]:
    """Times at which a watch looks."""
    harmless = gate(lambda batch: probabilities([0.0] * len(batch)))
    watch, times = GateWatch(harmless, "target"), []
    for time_s, frame in frames:
        before = watch.looks
        watch.feed(time_s, Picture.from_rgb(frame), every_s=every_s)
        if watch.looks > before:
            times.append(time_s)
    watch.finish()
    return times


def test_a_still_scene_is_looked_at_once_a_second() -> None:
    assert looks(clip(3.0)) == [0.0, 1.0, 2.0]


def test_where_no_face_is_a_still_scene_is_looked_at_half_as_often() -> None:
    assert looks(clip(5.0), every_s=EMPTY_EVERY_S) == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("every_s", [EVERY_S, EMPTY_EVERY_S])
def test_a_cut_is_looked_at_at_once(every_s: float) -> None:
    cut = [(t + 1.4, f) for t, f in clip(0.9, value=60)]
    times = looks([*clip(1.4), *cut], every_s=every_s)
    assert times == pytest.approx([0.0, 1.0, 1.4] if every_s == 1 else [0.0, 1.4])


def test_a_cut_soon_after_a_look_is_looked_at_a_little_later() -> None:
    cut = [(t + 1.08, f) for t, f in clip(0.9, value=60)]
    assert looks([*clip(1.08), *cut]) == pytest.approx([0.0, 1.0, 1.2])


def test_flicker_costs_five_looks_a_second_at_most() -> None:
    frames = [(i / 50, np.full((36, 64, 3), 255 * (i % 2), np.uint8)) for i in range(100)]
    assert len(looks(frames)) <= 11


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([0.0, float("nan"), float("nan")], id="no numbers"),
        pytest.param([5.0, 4.0, 3.0], id="backwards"),
        pytest.param([0.0, 100.0, 10_000.0], id="far apart"),
    ],
)
def test_a_frame_with_an_odd_time_is_looked_at(times: list[float]) -> None:
    assert len(looks([(t, GRAY) for t in times])) == len(times)


def test_the_watch_picks_the_same_frames_again() -> None:
    rng = np.random.default_rng(3)
    frames = [
        (i / 30, rng.integers(0, 70, (36, 64, 3), np.uint8) + 60 * (i // 20 % 2)) for i in range(90)
    ]
    frames = [(t, f.astype(np.uint8)) for t, f in frames]
    assert looks(frames) == looks(frames)


def test_the_watch_stops_while_the_video_still_runs() -> None:
    watch = GateWatch(gate(), "target")
    (bad,) = pictures([0.9])
    with pytest.raises(IntimateContentError):
        for second in range(8):
            watch.feed(float(second), Picture.from_rgb(bad))


def test_the_watch_refuses_a_short_clip_at_its_end() -> None:
    watch = GateWatch(gate(), "result")
    watch.feed(0.0, Picture.from_rgb(pictures([0.9])[0]))
    with pytest.raises(IntimateContentError, match="The result"):
        watch.finish()


def test_a_video_without_a_frame_is_no_pass() -> None:
    with pytest.raises(GateUnavailableError):
        GateWatch(gate(), "result").finish()


@pytest.mark.weights
def test_harmless_pictures_pass_the_real_network(
    models_dir: Path, astronaut: NDArray[np.uint8], six_people: NDArray[np.uint8]
) -> None:
    manifest = Manifest.load(ROOT / "models" / "manifest.toml")
    with OrtModelZoo(manifest, models_dir, device="cpu", threads=1) as zoo:
        assert ContentGate(zoo).check([astronaut, six_people], "source") < 0.2

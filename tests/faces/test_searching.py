"""When the other looks are taken; a detector that only counts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.core.picture import Picture
from app.core.types import Face, Frame
from app.faces.detector import FaceDetector
from app.faces.searching import Searcher, detect_sparsely
from app.faces.turning import turned
from app.inference.spec import ModelZoo
from tests.conftest import MakeFace, MakeFrame, RgbImage


class Counting:
    """Finds the same face everywhere, or nobody; remembers sizes and sides of its looks."""

    def __init__(self, face: Face | None = None) -> None:
        self._faces = (face,) if face else ()
        self.looks: list[tuple[tuple[int, int], tuple[int, ...] | None]] = []

    def detect(
        self, pictures: Sequence[Picture], *, sides_px: Sequence[int] | None = None
    ) -> list[tuple[Face, ...]]:
        sides = tuple(sides_px) if sides_px else None
        self.looks += [(picture.size_wh, sides) for picture in pictures]
        return [self._faces for _ in pictures]

    def others(self) -> list[tuple[tuple[int, int], tuple[int, ...] | None]]:
        """All looks but the usual ones."""
        return [look for look in self.looks if look[1] is not None]


def frames(make_frame: MakeFrame, seconds: float, size_wh: tuple[int, int]) -> list[Frame]:
    """A frame every 0.2 s."""
    image = np.zeros((size_wh[1], size_wh[0], 3), np.uint8)
    count = round(seconds * 5)
    made = [replace(make_frame(at, image), pts=5 * at, is_cut=at == 0) for at in range(count)]
    assert all(frame.time_s == pytest.approx(0.2 * at) for at, frame in enumerate(made))
    return made


def test_while_nobody_is_there_a_turn_every_other_second_is_tried(make_frame: MakeFrame) -> None:
    detector = Counting()
    Searcher(detector).detect(frames(make_frame, 8, (320, 200)), [])  # type: ignore[arg-type]
    upright, turned_wh = (320, 200), (200, 320)
    at_first = [turned_wh, upright, turned_wh]
    assert [size for size, _ in detector.others()] == [*at_first, turned_wh, upright, turned_wh]


def test_where_somebody_is_followed_nothing_is_turned(
    make_frame: MakeFrame, make_face: MakeFace
) -> None:
    for detector, rolls in ((Counting(make_face()), []), (Counting(), [0.3])):
        searcher = Searcher(detector)  # type: ignore[arg-type]
        searcher.detect(frames(make_frame, 4, (320, 200)), rolls)
        assert detector.others() == []


def test_for_a_face_that_lies_its_own_turn_is_repeated(make_frame: MakeFrame) -> None:
    detector = Counting()
    looked = frames(make_frame, 2, (320, 200))
    Searcher(detector).detect(looked, [0.1, 1.5])  # type: ignore[arg-type]
    assert [size for size, _ in detector.others()] == [(200, 320)] * 5


@pytest.mark.parametrize(
    ("size_wh", "rolls", "count"),
    [
        pytest.param((1280, 720), [0.0], 3, id="large"),
        pytest.param((1280, 720), [], 1, id="large and nobody followed"),
        pytest.param((640, 360), [0.0], 0, id="small"),
    ],
)
def test_a_wide_look_comes_at_first_and_now_and_then(
    make_frame: MakeFrame,
    make_face: MakeFace,
    size_wh: tuple[int, int],
    rolls: list[float],
    count: int,
) -> None:
    detector = Counting(make_face())
    Searcher(detector).detect(frames(make_frame, 9, size_wh), rolls)  # type: ignore[arg-type]
    assert [sides for _, sides in detector.others()] == [(1280,)] * count


@pytest.mark.weights
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_sparse_look_finds_small_and_turned_faces(
    zoo: ModelZoo, astronaut: RgbImage, degrees: int
) -> None:
    ground = np.full((720, 1280, 3), 110, np.uint8)
    part = turned(astronaut[::2, ::2] if degrees else astronaut[::4, ::4], degrees)
    h, w = part.shape[:2]
    ground[200 : 200 + h, 300 : 300 + w] = part
    (faces,) = detect_sparsely(FaceDetector(zoo))([Picture.from_rgb(ground)])
    assert len(faces) == 1
    assert faces[0].det_score > 0.8


def test_a_wide_look_that_makes_a_doubtful_face_clear_is_a_gain(
    make_frame: MakeFrame, make_face: MakeFace
) -> None:
    class Sharper(Counting):
        def detect(
            self, pictures: Sequence[Picture], *, sides_px: Sequence[int] | None = None
        ) -> list[tuple[Face, ...]]:
            super().detect(pictures, sides_px=sides_px)
            score = 0.95 if sides_px == (1280,) else 0.78
            return [(replace(make_face(), det_score=score),) for _ in pictures]

    (found,) = Searcher(Sharper()).detect(frames(make_frame, 1, (1280, 720))[:1], [])  # type: ignore[arg-type]
    assert [face.det_score for face in found] == [0.95]


def test_every_other_glance_is_half_as_wide(make_frame: MakeFrame) -> None:
    detector = Counting()
    shown = frames(make_frame, 1, (320, 200))
    searcher = Searcher(detector)  # type: ignore[arg-type]
    searcher.detect(shown[:1], ())
    detector.looks.clear()
    searcher.glance([*shown[1:4], *shown[1:4]])
    looks = [sides for size, sides in detector.looks if size == (320, 200)]
    assert looks == [(320,), None] * 3

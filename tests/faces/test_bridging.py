from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Frame, RgbImage, TrackId
from app.faces.bridging import Bridge
from app.faces.landmarks import CROP_PX, CropRegion, Located, region_from_landmarks
from app.faces.measuring import Measure
from app.faces.sampling import sample_square
from app.faces.tracks import Sighting, Slot, Track
from tests.conftest import MakeFrame
from tests.faces.conftest import MakeLandmarks


class Cutter:
    """A landmarker that sees a face where it is told to, and else only cuts."""

    def __init__(self, *, sees: FloatArray | None = None) -> None:
        self._sees = sees

    def measure(self, crops: RgbImage, regions: Sequence[CropRegion]) -> Located:
        if self._sees is None:
            return np.ones((len(crops), 478, 3), np.float32), np.zeros(len(crops), np.float32)
        moved = [self._moved(self._sees, region) for region in regions]
        return np.stack(moved), np.ones(len(crops), np.float32)

    @staticmethod
    def _moved(landmarks: FloatArray, region: CropRegion) -> FloatArray:
        here = region_from_landmarks(landmarks)
        shift = np.subtract(region.center_xy, here.center_xy)
        return landmarks + np.array([*shift, 0], np.float32)

    def cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        crops = [sample_square(picture, region.affine, CROP_PX) for picture, region in items]
        return np.array(crops, np.uint8).reshape(-1, CROP_PX, CROP_PX, 3)


def world(make_frame: MakeFrame, *, step: float, hidden: Sequence[int]) -> dict[int, Frame]:
    """Twelve frames of a pattern that moves to the right; some are white."""
    pattern = np.random.default_rng(2).integers(0, 255, (12, 12, 3)).astype(np.uint8)
    pattern = cv2.resize(pattern, (90, 90), interpolation=cv2.INTER_CUBIC)
    frames = {}
    for number in range(12):
        image = np.full((200, 320, 3), 128, np.uint8)
        x = round(40 + step * number)
        image[55:145, x : x + 90] = pattern
        frames[number] = make_frame(number, np.full_like(image, 255) if number in hidden else image)
    return frames


def face_at(make_landmarks: MakeLandmarks, number: int, step: float) -> FloatArray:
    return make_landmarks(cx=85 + step * number, cy=100, size=80)


def measure(
    frames: dict[int, Frame], number: int, landmarks: FloatArray, track: int = 0
) -> Measure:
    region = region_from_landmarks(landmarks)
    (crop,) = Cutter().cut([(frames[number].picture, region)])
    slot = Slot(number, TrackId(track), region, 0.9, "seen", 0)
    return Measure(slot, region, crop, landmarks, 1.0)


def live(track: int = 0) -> list[Track]:
    return [Track(TrackId(track), [Sighting(0, CropRegion((0, 0), 1, 0), 0.9, 0)])]


def numbers(measures: Sequence[Measure], track: int = 0) -> list[int]:
    return [each.slot.number for each in measures if each.slot.track_id == track]


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        pytest.param((), list(range(12)), id="still seen"),
        pytest.param((4,), [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11], id="a white frame in it"),
    ],
)
def test_a_hole_is_filled_where_the_pixels_agree(
    make_frame: MakeFrame,
    make_landmarks: MakeLandmarks,
    hidden: tuple[int, ...],
    expected: list[int],
) -> None:
    frames = world(make_frame, step=6, hidden=hidden)
    seen = [
        measure(frames, n, face_at(make_landmarks, n, 6)) for n in range(12) if n not in (3, 4, 5)
    ]
    filled = Bridge(Cutter()).filled(frames, seen, live(), max_gap=13)  # type: ignore[arg-type]
    assert numbers(filled) == expected
    expected_face = face_at(make_landmarks, 5, 6)
    assert np.abs(filled[numbers(filled).index(5)].landmarks - expected_face).max() < 1


def test_a_long_hole_stays(make_frame: MakeFrame, make_landmarks: MakeLandmarks) -> None:
    frames = world(make_frame, step=0, hidden=())
    seen = [measure(frames, n, face_at(make_landmarks, n, 0)) for n in (0, 11)]
    filled = Bridge(Cutter()).filled(frames, seen, [], max_gap=8)  # type: ignore[arg-type]
    assert numbers(filled) == [0, 11]


def test_a_hole_behind_somebody_else_stays(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    frames = world(make_frame, step=0, hidden=())
    mine = [measure(frames, n, face_at(make_landmarks, n, 0)) for n in (0, 1, 3, 4)]
    other = measure(frames, 2, make_landmarks(cx=100, cy=105, size=80), track=1)
    filled = Bridge(Cutter()).filled(frames, [*mine, other], [], max_gap=13)  # type: ignore[arg-type]
    assert numbers(filled) == [0, 1, 3, 4]


def test_a_hole_over_the_end_of_a_window_is_filled_from_both_sides(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    frames = world(make_frame, step=5, hidden=())
    bridge = Bridge(Cutter())  # type: ignore[arg-type]
    found = []
    for window in (range(6), range(6, 12)):
        part = {n: frames[n] for n in window}
        seen = [
            measure(frames, n, face_at(make_landmarks, n, 5))
            for n in window
            if n not in (4, 5, 6, 7)
        ]
        found += bridge.filled(part, seen, live(), max_gap=13)
    assert numbers(found) == list(range(12))
    for each in found:
        truth = face_at(make_landmarks, each.slot.number, 5)
        assert np.abs(each.landmarks - truth).max() < 4


@pytest.mark.parametrize("is_live", [True, False])
def test_what_follows_the_last_sight_is_held_while_it_is_seen_and_followed(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks, is_live: bool
) -> None:
    frames = world(make_frame, step=3, hidden=(9,))
    seen = [measure(frames, n, face_at(make_landmarks, n, 3)) for n in range(5)]
    filled = Bridge(Cutter()).filled(frames, seen, live() if is_live else [], max_gap=13)  # type: ignore[arg-type]
    assert numbers(filled) == list(range(9 if is_live else 5))


@pytest.mark.parametrize("sees_mesh", [True, False], ids=["the mesh sees it", "only pixels do"])
def test_a_face_that_jumps_in_a_hole_is_found_where_its_pixels_are(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks, sees_mesh: bool
) -> None:
    frames = world(make_frame, step=0, hidden=())
    image = np.full((200, 320, 3), 128, np.uint8)
    image[65:155, 90:180] = frames[0].picture.planes[0][55:145, 40:130]
    frames[3] = make_frame(3, image)
    seen = [measure(frames, n, face_at(make_landmarks, n, 0)) for n in (0, 1, 2, 4, 5)]
    cutter = Cutter(sees=make_landmarks(cx=0, cy=0, size=80) if sees_mesh else None)
    filled = Bridge(cutter).filled(frames, seen, [], max_gap=13)  # type: ignore[arg-type]
    assert numbers(filled) == list(range(6))
    assert np.abs(filled[3].landmarks - make_landmarks(cx=135, cy=110, size=80)).max() < 3


@pytest.mark.parametrize(
    ("cut_at", "expected"),
    [
        pytest.param(None, list(range(12)), id="back to the beginning"),
        pytest.param(2, list(range(2, 12)), id="not beyond a cut"),
    ],
)
def test_somebody_new_is_followed_backward(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks, cut_at: int | None, expected: list[int]
) -> None:
    frames = world(make_frame, step=4, hidden=())
    if cut_at is not None:
        frames[cut_at] = replace(frames[cut_at], is_cut=True)
    seen = [measure(frames, n, face_at(make_landmarks, n, 4)) for n in range(5, 12)]
    cutter = Cutter(sees=make_landmarks(cx=0, cy=0, size=80))
    filled = Bridge(cutter).filled(frames, seen, live(), max_gap=13)  # type: ignore[arg-type]
    assert numbers(filled) == expected
    assert np.abs(filled[0].landmarks - face_at(make_landmarks, expected[0], 4)).max() < 4


def test_plain_surfaces_look_like_nothing(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    frames = {n: make_frame(n, np.full((200, 320, 3), 128, np.uint8)) for n in range(4)}
    seen = [measure(frames, n, face_at(make_landmarks, n, 0)) for n in (0, 1)]
    filled = Bridge(Cutter()).filled(frames, seen, live(), max_gap=13)  # type: ignore[arg-type]
    assert numbers(filled) == [0, 1]

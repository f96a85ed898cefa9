from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import RgbImage, TrackId
from app.faces.landmarks import CropRegion, Located, region_from_landmarks
from app.faces.measuring import Measurer
from app.faces.resemblance import face_gray
from app.faces.tracks import Place, Slot
from tests.conftest import MakeFrame
from tests.faces.conftest import MakeLandmarks


class FakeLandmarker:
    """Sees a face at each true place that lies in the region asked for; counts its batches."""

    def __init__(
        self,
        places: Sequence[FloatArray],
        absent: Sequence[int] = (),
        crops: Sequence[RgbImage] = (),
        unsure: Sequence[int] = (),
    ) -> None:
        self.unsure = unsure
        self.places = places
        self.crops = crops
        self.absent = absent
        self.batches: list[int] = []
        self._asked = 0

    def cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        return np.stack(self.crops) if self.crops else np.zeros((len(items), 192, 192, 3), np.uint8)

    def measure(self, crops: RgbImage, regions: Sequence[CropRegion]) -> Located:
        self.batches.append(len(regions))
        found = []
        presence = []
        for region in regions:
            middles = np.array([region_from_landmarks(p).center_xy for p in self.places])
            nearest = int(np.linalg.norm(middles - region.center_xy, axis=1).argmin())
            found.append(self.places[nearest])
            is_unsure = self._asked in self.unsure
            presence.append(0.0 if self._asked in self.absent else 0.6 if is_unsure else 1.0)
            self._asked += 1
        return np.array(found).reshape(-1, 478, 3), np.array(presence, np.float32)


def slot(
    number: int, landmarks: FloatArray, *, track: int = 0, place: Place = "seen", gap: int = 0
) -> Slot:
    return Slot(number, TrackId(track), region_from_landmarks(landmarks), 0.9, place, gap)


def test_no_slots_have_no_measures() -> None:
    assert Measurer(FakeLandmarker([])).measure({}, []) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("places", "absent", "kept"),
    [
        pytest.param("sssss", [], [0, 1, 2, 3, 4], id="all there"),
        pytest.param("sssss", [2], [0, 1, 3, 4], id="gone for a frame"),
        pytest.param("ssaaa", [3], [0, 1, 2], id="a track ends where the face goes"),
        pytest.param("bbbss", [1], [2, 3, 4], id="a track begins where the face comes"),
        pytest.param("saabs", [2], [0, 1, 3, 4], id="an end and a beginning"),
    ],
)
def test_absent_faces_are_left_out(
    make_frame: MakeFrame,
    make_landmarks: MakeLandmarks,
    places: str,
    absent: list[int],
    kept: list[int],
) -> None:
    names: dict[str, Place] = {"s": "seen", "a": "after", "b": "before"}
    face = make_landmarks()
    slots = [slot(number, face, place=names[key]) for number, key in enumerate(places)]
    frames = {number: make_frame(number) for number in range(len(places))}
    landmarker = FakeLandmarker([face], absent)
    measures = Measurer(landmarker).measure(frames, slots)  # type: ignore[arg-type]
    assert [measure.slot.number for measure in measures] == kept


def test_a_face_off_its_crop_is_looked_at_again_in_one_more_batch(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    frames = {number: make_frame(number) for number in range(3)}
    face = make_landmarks(cx=60)
    slots = [slot(0, face), slot(1, make_landmarks(cx=75)), slot(2, make_landmarks(cx=62))]
    landmarker = FakeLandmarker([face])
    measures = Measurer(landmarker).measure(frames, slots)  # type: ignore[arg-type]
    assert landmarker.batches == [3, 1]
    assert measures[1].region.center_xy[0] == pytest.approx(60, abs=0.1)
    assert measures[2].region.center_xy[0] == pytest.approx(62, abs=0.1)


@pytest.mark.parametrize("lost_first", [True, False])
def test_a_lost_track_does_not_take_the_face_of_one_that_passes(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks, lost_first: bool
) -> None:
    face = make_landmarks(cx=60)
    slots = [
        slot(0, make_landmarks(cx=64), track=1, place="between", gap=12),
        slot(0, face, track=2, place="between", gap=4),
    ]
    landmarker = FakeLandmarker([face])
    measures = Measurer(landmarker).measure(  # type: ignore[arg-type]
        {0: make_frame(0)},
        slots if lost_first else slots[::-1],
    )
    assert [measure.slot.track_id for measure in measures] == [2]


@pytest.mark.parametrize(
    ("places", "people", "kept"),
    [
        pytest.param("saaa", "AABB", [0, 1], id="behind the last sighting"),
        pytest.param("bbbs", "BBAA", [2, 3], id="before the first one"),
        pytest.param("nnnn", "BAAB", [1, 2], id="in a long hole"),
        pytest.param("saaa", "AAAA", [0, 1, 2, 3], id="nobody else"),
    ],
)
def test_somebody_else_in_the_same_place_is_left_out(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks, places: str, people: str, kept: list[int]
) -> None:
    crops = {
        person: np.random.default_rng(seed).integers(0, 255, (192, 192, 3)).astype(np.uint8)
        for seed, person in enumerate("AB")
    }
    names: dict[str, Place] = {"s": "seen", "a": "after", "b": "before", "n": "between"}
    looks = (face_gray(crops["A"]),)
    face = make_landmarks()
    slots = [
        replace(slot(number, face, place=names[key]), looks=looks)
        for number, key in enumerate(places)
    ]
    landmarker = FakeLandmarker([face], crops=[crops[person] for person in people])
    frames = {number: make_frame(number) for number in range(len(places))}
    measures = Measurer(landmarker).measure(frames, slots)  # type: ignore[arg-type]
    assert [measure.slot.number for measure in measures] == kept


def test_a_face_that_the_mesh_is_not_sure_of_is_looked_at_again(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    face = make_landmarks()
    landmarker = FakeLandmarker([face], unsure=[0, 1])
    measures = Measurer(landmarker).measure({0: make_frame(0)}, [slot(0, face)])  # type: ignore[arg-type]
    assert landmarker.batches == [1, 1, 1]
    assert [measure.presence for measure in measures] == [1.0]


class _Stubborn(FakeLandmarker):
    """Sees a face that fills less of its crop than it should, wherever it looks."""

    def measure(self, crops: RgbImage, regions: Sequence[CropRegion]) -> Located:
        self.batches.append(len(regions))
        shapes = [self.places[0] - self.places[0].mean(0) for _ in regions]
        found = [
            shape * 0.7 * (region.side_px / region_from_landmarks(shape).side_px)
            + [*region.center_xy, 0]
            for shape, region in zip(shapes, regions, strict=True)
        ]
        return np.array(found).reshape(-1, 478, 3), np.ones(len(regions), np.float32)


def test_more_looks_that_never_help_are_given_up_but_for_one_a_window(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    face = make_landmarks()
    frames = {number: make_frame(number) for number in range(8)}
    slots = [slot(number, face) for number in range(8)]
    landmarker = _Stubborn([face])
    measurer = Measurer(landmarker)  # type: ignore[arg-type]
    for _ in range(2):
        assert len(measurer.measure(frames, slots)) == 8
    assert landmarker.batches == [8, 8, 8, 8, 1, 1]
    measurer.keep_only([])
    measurer.measure(frames, slots)
    assert landmarker.batches[6:] == [8, 8, 8]


def test_a_look_that_helps_again_brings_back_the_others(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    face = make_landmarks(cx=60)
    frames = {number: make_frame(number) for number in range(8)}
    away = [slot(number, make_landmarks(cx=75)) for number in range(8)]
    landmarker = _Stubborn([face])
    measurer = Measurer(landmarker)  # type: ignore[arg-type]
    measurer.measure(frames, away)
    better = FakeLandmarker([face])
    measurer._landmarker = better  # type: ignore[assignment]
    measurer.measure(frames, away)
    assert better.batches == [8, 1]
    measurer.measure(frames, away)
    assert better.batches[2:] == [8, 8]

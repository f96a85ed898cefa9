import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.types import TrackId
from app.faces.landmarks import CropRegion, face_from_landmarks
from app.faces.tracks import Candidate, Patience, Sighting, Track, region_cost, slot_of
from tests.faces.conftest import MakeLandmarks


def candidate(
    landmarks: FloatArray, *, det_score: float = 0.9, presence: float = 1.0, off_px: float = 0.0
) -> Candidate:
    """A find whose detector and mesh lie `off_px` apart."""
    face = face_from_landmarks(landmarks + np.array([off_px, 0, 0], np.float32), det_score)
    return Candidate(face, landmarks, presence)


@pytest.mark.parametrize(
    ("det_score", "presence", "off_px", "expected"),
    [
        pytest.param(0.95, 1.0, 3.0, True, id="both are sure"),
        pytest.param(0.95, 0.4, 0.0, False, id="the mesh sees no face"),
        pytest.param(0.95, 1.0, 20.0, False, id="detector and mesh disagree"),
        pytest.param(0.78, 1.0, 3.0, True, id="an unsure detector and a mesh that fits"),
        pytest.param(0.78, 1.0, 8.0, False, id="an unsure detector and a mesh that hardly fits"),
        pytest.param(0.65, 1.0, 0.0, False, id="a detector too unsure"),
    ],
)
def test_who_may_begin_a_track(
    make_landmarks: MakeLandmarks, det_score: float, presence: float, off_px: float, expected: bool
) -> None:
    find = candidate(
        make_landmarks(size=100), det_score=det_score, presence=presence, off_px=off_px
    )
    assert find.may_begin_track is expected


def at(x: float) -> CropRegion:
    return CropRegion((x, 0.0), 90.0, 0.0)


TRACK = Track(
    TrackId(7),
    [
        Sighting(4, at(40), 0.9, 4),
        Sighting(8, at(48), 0.8, 8),
        Sighting(16, at(56), 0.7, 16),
        Sighting(32, at(90), 0.7, 32),
        Sighting(36, at(94), 0.7, 36),
    ],
)
KEYS = tuple(range(0, 41, 4))


@pytest.mark.parametrize(
    ("number", "place", "x"),
    [
        pytest.param(0, None, None, id="a key frame before the face came"),
        pytest.param(2, "before", 36.0, id="just before the first sighting, moving backwards"),
        pytest.param(4, "seen", 40.0, id="a sighting"),
        pytest.param(6, "between", 44.0, id="between two sightings"),
        pytest.param(12, "between", 52.0, id="a key frame in a short gap"),
        pytest.param(18, "after", 58.0, id="just after a sighting before a long gap"),
        pytest.param(20, None, None, id="the key frame after it"),
        pytest.param(25, None, None, id="in a long gap"),
        pytest.param(30, "before", 88.0, id="at the end of a long gap"),
        pytest.param(38, "after", 96.0, id="after the last sighting"),
        pytest.param(40, None, None, id="the key frame that lost it"),
    ],
)
def test_where_a_face_is_looked_for(number: int, place: str | None, x: float | None) -> None:
    slot = slot_of(TRACK, number, KEYS, 12)
    if slot is None:
        assert place is None
    else:
        assert (slot.place, slot.track_id) == (place, 7)
        assert slot.region.center_xy[0] == pytest.approx(x)


def test_a_region_costs_nothing_against_itself_and_more_with_distance_and_size() -> None:
    assert region_cost(at(5), at(5)) == 0
    assert region_cost(at(0), at(45)) == pytest.approx(0.5)
    assert region_cost(CropRegion((0.0, 0.0), 50.0, 0.0), CropRegion((0.0, 0.0), 100.0, 0.0)) > 0.3


@pytest.mark.parametrize(
    ("fps", "gap", "coast"),
    [
        pytest.param(1, 4, 8, id="a slide show"),
        pytest.param(25, 13, 40, id="a film"),
        pytest.param(120, 60, 192, id="slow motion"),
    ],
)
def test_patience_is_half_a_second_and_a_few_frames(fps: int, gap: int, coast: int) -> None:
    assert Patience.at_rate(1 / fps) == Patience(gap=gap, coast=coast)

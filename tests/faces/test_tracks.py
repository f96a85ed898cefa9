from collections.abc import Sequence

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.types import TrackId
from app.faces.landmarks import CropRegion, Located, face_from_landmarks
from app.faces.tracks import Candidate, Linker, Sighting, Track, region_cost, slot_of
from tests.faces.conftest import MakeLandmarks


def nobody(regions: Sequence[CropRegion]) -> Located:
    """A mesh that sees no face anywhere."""
    return np.zeros((len(regions), 478, 3), np.float32), np.zeros(len(regions), np.float32)


def candidate(
    landmarks: FloatArray, *, det_score: float = 0.9, presence: float = 1.0, off_px: float = 0.0
) -> Candidate:
    """A find whose detector and mesh lie `off_px` apart."""
    face = face_from_landmarks(landmarks + np.array([off_px, 0, 0], np.float32), det_score)
    return Candidate(face, landmarks, presence)


def ids_and_numbers(linker: Linker) -> dict[int, list[int]]:
    return {track.id: [seen.number for seen in track.sightings] for track in linker.tracks}


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


def test_a_face_keeps_its_number_while_it_moves(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 20, 4):
        linker.see(number, [candidate(make_landmarks(cx=60 + 6 * number))], nobody)
    assert ids_and_numbers(linker) == {0: [0, 4, 8, 12, 16]}


def test_two_who_pass_each_other_keep_their_numbers(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 24, 4):
        left = make_landmarks(cx=60 + 5 * number, cy=80)
        right = make_landmarks(cx=160 - 5 * number, cy=110)
        linker.see(number, [candidate(right), candidate(left)], nobody)
    assert ids_and_numbers(linker) == {0: list(range(0, 24, 4)), 1: list(range(0, 24, 4))}
    ends = {track.id: track.last.region.center_xy[0] for track in linker.tracks}
    assert ends[TrackId(0)] < ends[TrackId(1)]


def test_a_face_missed_for_a_moment_is_the_same_track(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in (0, 4, 8, 12):
        finds = [candidate(make_landmarks())] if number in (0, 12) else []
        linker.see(number, finds, nobody)
    assert ids_and_numbers(linker) == {0: [0, 12]}


def test_a_face_away_for_long_is_another_track(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 28, 4):
        finds = [candidate(make_landmarks())] if number in (0, 24) else []
        linker.see(number, finds, nobody)
    assert ids_and_numbers(linker) == {0: [0], 1: [24]}


def test_a_face_that_only_the_mesh_sees_is_followed(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks())], nobody)

    def still_there(regions: Sequence[CropRegion]) -> Located:
        return np.stack([make_landmarks()] * len(regions)), np.ones(len(regions), np.float32)

    for number in range(4, 60, 4):
        linker.see(number, [], still_there)
    (track,) = linker.tracks
    assert track.last.number == 40
    assert track.last.detected == 0


def test_a_lost_face_does_not_take_the_place_of_another(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    front = make_landmarks(cx=60)
    linker.see(0, [candidate(front), candidate(make_landmarks(cx=120))], nobody)
    linker.see(4, [candidate(front), candidate(make_landmarks(cx=97))], nobody)

    def sees_the_front(regions: Sequence[CropRegion]) -> Located:
        return np.stack([front] * len(regions)), np.ones(len(regions), np.float32)

    linker.see(8, [candidate(front)], sees_the_front)
    assert ids_and_numbers(linker) == {0: [0, 4, 8], 1: [0, 4]}


def test_a_cut_lets_go_of_everybody_and_numbers_go_on(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks())], nobody)
    linker.begin_shot()
    linker.see(4, [candidate(make_landmarks())], nobody)
    assert ids_and_numbers(linker) == {1: [4]}


def test_what_is_trimmed_can_still_be_followed(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 16, 4):
        linker.see(number, [candidate(make_landmarks(cx=60 + number))], nobody)
    linker.trim()
    assert ids_and_numbers(linker) == {0: [8, 12]}
    assert linker.tracks[0].predicted(16).center_xy[0] == pytest.approx(76, abs=0.1)


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
    slot = slot_of(TRACK, number, KEYS)
    if slot is None:
        assert place is None
    else:
        assert (slot.place, slot.track_id) == (place, 7)
        assert slot.region.center_xy[0] == pytest.approx(x)


def test_a_region_costs_nothing_against_itself_and_more_with_distance_and_size() -> None:
    assert region_cost(at(5), at(5)) == 0
    assert region_cost(at(0), at(45)) == pytest.approx(0.5)
    assert region_cost(CropRegion((0.0, 0.0), 50.0, 0.0), CropRegion((0.0, 0.0), 100.0, 0.0)) > 0.3

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.types import TrackId
from app.faces.landmarks import CropRegion, Located, face_from_landmarks
from app.faces.linker import Linker
from app.faces.tracks import Candidate, Sighting, Track
from tests.faces.conftest import MakeLandmarks


@dataclass
class FakeClues:
    """What a key frame answers: where the mesh sees a face, how the picture moved, and who looks like whom."""

    sees: FloatArray | None = None
    moved_px: tuple[float, float] | None = None
    cosines: FloatArray | None = None
    looks: Sequence[FloatArray | None] | None = None
    asked: int = 0
    are_faces: bool = True

    def measure(self, regions: Sequence[CropRegion]) -> Located:
        if self.sees is None:
            return np.zeros((len(regions), 478, 3), np.float32), np.zeros(len(regions), np.float32)
        return np.stack([self.sees] * len(regions)), np.ones(len(regions), np.float32)

    def carried(self, regions: Sequence[CropRegion]) -> list[CropRegion] | None:
        if self.moved_px is None:
            return None
        dx, dy = self.moved_px
        return [replace(r, center_xy=(r.center_xy[0] + dx, r.center_xy[1] + dy)) for r in regions]

    def proven(self, candidates: Sequence[Candidate]) -> list[bool]:
        return [self.are_faces] * len(candidates)

    def looks_of(self, candidates: Sequence[Candidate]) -> Sequence[FloatArray | None]:
        return self.looks or [None] * len(candidates)

    def likeness(self, tracks: Sequence[Track], candidates: Sequence[Candidate]) -> FloatArray:
        self.asked += 1
        if self.cosines is None:
            return np.full((len(tracks), len(candidates)), np.nan, np.float32)
        return self.cosines


def candidate(
    landmarks: FloatArray, *, det_score: float = 0.9, presence: float = 1.0, off_px: float = 0.0
) -> Candidate:
    """A find whose detector and mesh lie `off_px` apart."""
    face = face_from_landmarks(landmarks + np.array([off_px, 0, 0], np.float32), det_score)
    return Candidate(face, landmarks, presence)


def ids_and_numbers(linker: Linker) -> dict[int, list[int]]:
    return {track.id: [seen.number for seen in track.sightings] for track in linker.tracks}


def test_a_face_keeps_its_number_while_it_moves(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 20, 4):
        linker.see(number, [candidate(make_landmarks(cx=60 + 6 * number))], FakeClues())
    assert ids_and_numbers(linker) == {0: [0, 4, 8, 12, 16]}


def test_two_who_pass_each_other_keep_their_numbers(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 24, 4):
        left = make_landmarks(cx=60 + 5 * number, cy=80)
        right = make_landmarks(cx=160 - 5 * number, cy=110)
        linker.see(number, [candidate(right), candidate(left)], FakeClues())
    assert ids_and_numbers(linker) == {0: list(range(0, 24, 4)), 1: list(range(0, 24, 4))}
    ends = {track.id: track.last.region.center_xy[0] for track in linker.tracks}
    assert ends[TrackId(0)] < ends[TrackId(1)]


def test_a_face_missed_for_a_moment_is_the_same_track(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in (0, 4, 8, 12):
        finds = [candidate(make_landmarks())] if number in (0, 12) else []
        linker.see(number, finds, FakeClues())
    assert ids_and_numbers(linker) == {0: [0, 12]}


def test_a_face_away_for_long_is_another_track(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 28, 4):
        finds = [candidate(make_landmarks())] if number in (0, 24) else []
        linker.see(number, finds, FakeClues())
    assert ids_and_numbers(linker) == {0: [0], 1: [24]}


def test_a_face_that_only_the_mesh_sees_is_followed(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks())], FakeClues())

    for number in range(4, 60, 4):
        linker.see(number, [], FakeClues(sees=make_landmarks()))
    (track,) = linker.tracks
    assert track.last.number == 40
    assert track.last.detected == 0


def test_a_lost_face_does_not_take_the_place_of_another(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    front = make_landmarks(cx=60)
    linker.see(0, [candidate(front), candidate(make_landmarks(cx=120))], FakeClues())
    linker.see(4, [candidate(front), candidate(make_landmarks(cx=97))], FakeClues())

    linker.see(8, [candidate(front)], FakeClues(sees=front))
    assert ids_and_numbers(linker) == {0: [0, 4, 8], 1: [0, 4]}


def test_a_cut_lets_go_of_everybody_and_numbers_go_on(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks())], FakeClues())
    linker.begin_shot()
    linker.see(4, [candidate(make_landmarks())], FakeClues())
    assert ids_and_numbers(linker) == {1: [4]}


def test_what_is_trimmed_can_still_be_followed(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    for number in range(0, 16, 4):
        linker.see(number, [candidate(make_landmarks(cx=60 + number))], FakeClues())
    linker.trim()
    assert ids_and_numbers(linker) == {0: [8, 12]}
    assert linker.tracks[0].predicted(16).center_xy[0] == pytest.approx(76, abs=0.1)


def test_a_new_track_is_found_where_the_picture_moved_to(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks(cx=60))], FakeClues())
    linker.see(4, [candidate(make_landmarks(cx=180))], FakeClues(moved_px=(118, 0)))
    assert ids_and_numbers(linker) == {0: [0, 4]}


SAME = np.array([[0.9, 0.1], [0.1, 0.9]], np.float32)
"""The first track looks like the first detection, the second like the second."""


@pytest.mark.parametrize(
    ("cosines", "ends"),
    [
        pytest.param(SAME, (100, 116), id="looks agree with the nearer place"),
        pytest.param(SAME[::-1], (116, 100), id="looks speak against it"),
        pytest.param(None, (100, 116), id="looks are not known"),
    ],
)
def test_where_places_compete_looks_decide(
    make_landmarks: MakeLandmarks, cosines: FloatArray | None, ends: tuple[float, float]
) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks(cx=x)) for x in (60, 150)], FakeClues())
    linker.tracks[0].sightings[-1] = at_frame(linker.tracks[0], 97)
    linker.tracks[1].sightings[-1] = at_frame(linker.tracks[1], 119)
    clues = FakeClues(cosines=cosines)
    linker.see(4, [candidate(make_landmarks(cx=x)) for x in (100, 116)], clues)
    assert clues.asked == 1
    found = tuple(track.last.region.center_xy[0] for track in linker.tracks)
    assert found == pytest.approx(ends, abs=1)


def at_frame(track: Track, x: float) -> Sighting:
    region = replace(track.last.region, center_xy=(x, track.last.region.center_xy[1]))
    return replace(track.last, region=region)


def test_where_places_are_clear_nobody_is_asked(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    clues = FakeClues(cosines=SAME)
    for number in (0, 4, 8):
        finds = [candidate(make_landmarks(cx=x + number)) for x in (60, 200)]
        linker.see(number, finds, clues)
    assert clues.asked == 0


@pytest.mark.parametrize(
    ("cosine", "expected"),
    [
        pytest.param(0.8, {0: [0, 4]}, id="who looks the same is the same"),
        pytest.param(0.3, {0: [0], 1: [4]}, id="who looks otherwise is another"),
    ],
)
def test_a_face_far_from_its_place_is_known_by_its_looks(
    make_landmarks: MakeLandmarks, cosine: float, expected: dict[int, list[int]]
) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks(cx=60))], FakeClues())
    clues = FakeClues(cosines=np.array([[cosine]], np.float32))
    linker.see(4, [candidate(make_landmarks(cx=170))], clues)
    assert ids_and_numbers(linker) == expected


def test_what_is_proven_to_be_no_face_begins_no_track(make_landmarks: MakeLandmarks) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks())], FakeClues(are_faces=False))
    assert linker.tracks == ()


PLAIN = np.random.default_rng(1).uniform(0, 255, (48, 48)).astype(np.float32)
OTHER = np.random.default_rng(2).uniform(0, 255, (48, 48)).astype(np.float32)


@pytest.mark.parametrize(
    ("look", "cosine", "expected"),
    [
        pytest.param(PLAIN, 0.0, {0: [0, 4]}, id="the same pixels"),
        pytest.param(OTHER, 0.6, {0: [0, 4]}, id="other pixels, the same person"),
        pytest.param(OTHER, 0.05, {0: [0], 1: [4]}, id="other pixels, another person"),
        pytest.param(OTHER, np.nan, {0: [0, 4]}, id="other pixels, nobody can tell"),
        pytest.param(None, 0.0, {0: [0, 4]}, id="cut by the border"),
    ],
)
def test_somebody_else_in_the_same_place_is_another_track(
    make_landmarks: MakeLandmarks,
    look: FloatArray | None,
    cosine: float,
    expected: dict[int, list[int]],
) -> None:
    linker = Linker()
    linker.see(0, [candidate(make_landmarks())], FakeClues(looks=[PLAIN]))
    clues = FakeClues(looks=[look], cosines=np.array([[cosine]], np.float32), sees=make_landmarks())
    linker.see(4, [candidate(make_landmarks())], clues)
    assert ids_and_numbers(linker) == expected


class LyingFace(FakeClues):
    """A mesh that sees the face as it is turned, where it is asked nearly so, and else believes the question."""

    def __init__(self, upright: FloatArray, roll_rad: float) -> None:
        super().__init__()
        self.upright, self.roll_rad = upright, roll_rad

    def measure(self, regions: Sequence[CropRegion]) -> Located:
        found = [
            turned(self.upright, self.roll_rad)
            if abs(region.roll_rad - self.roll_rad) < 0.5
            else turned(self.upright, region.roll_rad - 0.1)
            for region in regions
        ]
        return np.stack(found), np.ones(len(regions), np.float32)


def turned(landmarks: FloatArray, roll_rad: float) -> FloatArray:
    middle = landmarks.mean(0)
    cosine, sine = np.cos(roll_rad), np.sin(roll_rad)
    matrix = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]], np.float32)
    return ((landmarks - middle) @ matrix.T + middle).astype(np.float32)


def test_a_face_that_turns_over_is_not_taken_for_an_upright_one(
    make_landmarks: MakeLandmarks,
) -> None:
    upright = make_landmarks()
    linker = Linker()
    for number, roll_rad, seen_rad in ((0, 0.0, 0.0), (4, 0.6, 0.6), (8, 0.95, 0.2)):
        clues = LyingFace(upright, roll_rad)
        linker.see(number, [candidate(turned(upright, seen_rad))], clues)
    (track,) = linker.tracks
    assert track.last.region.roll_rad == pytest.approx(0.95, abs=0.05)

"""Which detection in one key frame is which person of the key frame before, and where a track's face lies between."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from app.core.geometry import FloatArray
from app.core.types import Face, TrackId
from app.faces.landmarks import (
    CropRegion,
    Located,
    face_size_px,
    kps_from_landmarks,
    region_from_landmarks,
)
from app.faces.matching import best_pairs

PRESENT = 0.5
"""Presence from which a crop is taken to hold a face."""

_MAX_GAP = 12
"""Frames over which a lost face is still the same track, and its place is filled in between."""
_MAX_COAST = 40
"""Frames that a track goes on when only the mesh sees the face, as when a head turns to profile."""
_MAX_STEP = 4
"""Frames for which a speed is trusted."""
# The three limits below are in the unit of `region_cost`: sides of the crop, 1.5 times a face.
_MAX_COST = 0.6
_MAX_DRIFT = 0.25
_SAME_PLACE = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A detection and what the mesh made of it.

    Attributes:
        face: As the detector found it.
        landmarks: `(478, 3)`, picture pixels.
        presence: 0 to 1.
    """

    face: Face
    landmarks: FloatArray
    presence: float

    @property
    def disagreement(self) -> float:
        """How far the mesh's key points lie from the detector's, in face widths."""
        apart = np.linalg.norm(kps_from_landmarks(self.landmarks) - self.face.kps, axis=1)
        return float(apart.mean()) / face_size_px(self.landmarks)

    @property
    def may_begin_track(self) -> bool:
        """True for what detector and mesh both take for a face.

        The less sure the detector, the better the mesh must fit. On 73 faces of still pictures the detector scores
        0.85 and more and the mesh fits within 0.09. False finds score below 0.75 and hardly fit, except for a dog
        that, seen at some sizes, scores up to 0.81 and fits at 0.09.
        """
        limit = min(0.15, 0.8 * (self.face.det_score - 0.7))
        return self.presence >= PRESENT and self.disagreement <= limit

    @property
    def may_continue_track(self) -> bool:
        """True for what a face that is already followed may look like for a while."""
        return self.presence >= PRESENT and self.disagreement <= 0.25


@dataclass(frozen=True, slots=True)
class Sighting:
    """A track's face in one key frame.

    Attributes:
        number: Running number of the frame.
        region: Where the mesh saw it.
        det_score: Of the detector, when it last saw the face.
        detected: Number of the frame in which it last did.
    """

    number: int
    region: CropRegion
    det_score: float
    detected: int


@dataclass(slots=True)
class Track:
    """One face along a shot: where it was seen, ascending."""

    id: TrackId
    sightings: list[Sighting]

    @property
    def last(self) -> Sighting:
        """The latest sighting."""
        return self.sightings[-1]

    def predicted(self, number: int) -> CropRegion:
        """Where the face should be in a frame after the last sighting."""
        return _beyond(self.sightings[-2:][::-1], number)

    def around(self, number: int) -> tuple[list[Sighting], list[Sighting]]:
        """Sightings before a frame, and those in it or after it."""
        at = bisect_left(self.sightings, number, key=lambda sighting: sighting.number)
        return self.sightings[:at], self.sightings[at:]


def _beyond(nearest: Sequence[Sighting], number: int) -> CropRegion:
    """A region carried on at the speed between one or two sightings, the nearer first; only for a few frames."""
    here, *others = nearest
    if not others or abs(here.number - others[0].number) > _MAX_GAP:
        return here.region
    steps = float(np.clip(number - here.number, -_MAX_STEP, _MAX_STEP))
    share = steps / (here.number - others[0].number)
    x, y = (
        a + (a - b) * share
        for a, b in zip(here.region.center_xy, others[0].region.center_xy, strict=True)
    )
    return replace(here.region, center_xy=(x, y))


MeasureRegions = Callable[[Sequence[CropRegion]], Located]
"""Measures regions of one frame."""


class Linker:
    """Follows faces from key frame to key frame of one video."""

    def __init__(self) -> None:
        self._tracks: list[Track] = []
        self._next_id = 0

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The shot's tracks that are followed or were lost since the last `trim`."""
        return tuple(self._tracks)

    def follows(self, number: int) -> bool:
        """True when somebody may still be followed in this frame."""
        return any(number - track.last.number <= _MAX_GAP for track in self._tracks)

    def begin_shot(self) -> None:
        """Let go of everybody."""
        self._tracks = []

    def trim(self) -> None:
        """Forget what no later key frame needs: old sightings, and tracks that were lost for good."""
        newest = max((track.last.number for track in self._tracks), default=0)
        self._tracks = [t for t in self._tracks if newest - t.last.number <= _MAX_GAP]
        for track in self._tracks:
            del track.sightings[:-2]

    def see(self, number: int, candidates: Sequence[Candidate], measure: MeasureRegions) -> None:
        """Take in the next key frame.

        Args:
            number: Its running number.
            candidates: What was detected in it.
            measure: Measures regions of this frame; asked at most once, for the tracks that the detector lost.
        """
        live = [track for track in self._tracks if number - track.last.number <= _MAX_GAP]
        taken = _link(live, number, candidates)
        lost = [track for track in live if track.last.number != number]
        self._coast(lost, number, measure)
        for index, candidate in enumerate(candidates):
            if index not in taken and candidate.may_begin_track:
                self._begin(number, candidate)

    def _coast(self, lost: Sequence[Track], number: int, measure: MeasureRegions) -> None:
        """Look for lost faces where they should be: a head in profile is often seen by the mesh alone."""
        followed = [track for track in lost if number - track.last.detected <= _MAX_COAST]
        if not followed:
            return
        expected = [track.predicted(number) for track in followed]
        rows = zip(followed, expected, *measure(expected), strict=True)
        for track, region, landmarks, presence in rows:
            found = region_from_landmarks(landmarks)
            is_there = presence >= PRESENT and region_cost(region, found) < _MAX_DRIFT
            if is_there and not self._is_occupied(number, found):
                track.sightings.append(replace(track.last, number=number, region=found))

    def _begin(self, number: int, candidate: Candidate) -> None:
        region = region_from_landmarks(candidate.landmarks)
        if self._is_occupied(number, region):
            return
        sighting = Sighting(number, region, candidate.face.det_score, number)
        self._tracks.append(Track(TrackId(self._next_id), [sighting]))
        self._next_id += 1

    def _is_occupied(self, number: int, region: CropRegion) -> bool:
        return any(
            track.last.number == number and region_cost(track.last.region, region) < _SAME_PLACE
            for track in self._tracks
        )


def _link(tracks: Sequence[Track], number: int, candidates: Sequence[Candidate]) -> set[int]:
    """Give detections to tracks, one to one; which detections were taken."""
    expected = [track.predicted(number) for track in tracks]
    found = [region_from_landmarks(candidate.landmarks) for candidate in candidates]
    costs = [[region_cost(a, b) for b in found] for a in expected]
    table = np.array(costs, np.float32).reshape(len(expected), len(found))
    taken = set()
    for row, column in best_pairs(table, _MAX_COST):
        if candidates[column].may_continue_track:
            score = candidates[column].face.det_score
            tracks[row].sightings.append(Sighting(number, found[column], score, number))
            taken.add(column)
    return taken


def region_cost(a: CropRegion, b: CropRegion) -> float:
    """How unlike two regions are: distance in sides of the square, plus half the logarithm of their ratio."""
    distance = float(np.hypot(a.center_xy[0] - b.center_xy[0], a.center_xy[1] - b.center_xy[1]))
    size = float(np.sqrt(a.side_px * b.side_px))
    return distance / size + 0.5 * abs(float(np.log(a.side_px / b.side_px)))


Place = Literal["seen", "between", "after", "before"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A frame in which a track's face is to be measured.

    Attributes:
        number: Running number of the frame.
        region: Where to look.
        det_score: Of the nearest sighting before, or after for `before`.
        place: Relative to the track's sightings; `after` and `before` reach beyond them and end where the face does.
        gap: Frames from the sighting before to the one after, 0 for a sighting itself: the more, the less is known.
    """

    number: int
    track_id: TrackId
    region: CropRegion
    det_score: float
    place: Place
    gap: int


def slot_of(track: Track, number: int, keys: Sequence[int]) -> Slot | None:
    """Where a track's face is to be looked for in one frame; `None` where it is known to be away.

    Args:
        track: Its sightings lie in `keys`, or before them.
        number: Running number of the frame.
        keys: Key frames of the shot, ascending, from the one before the frame on, if there is one.
    """
    before, after = track.around(number)
    if after and after[0].number == number:
        return Slot(number, track.id, after[0].region, after[0].det_score, "seen", 0)
    if before and after and after[0].number - before[-1].number <= _MAX_GAP:
        return _between(track, number, before[-1], after[0])
    key_at = bisect_left(keys, number)
    if number in keys[key_at : key_at + 1]:
        return None
    if before and key_at and before[-1].number == keys[key_at - 1]:
        region = _beyond(before[-2:][::-1], number)
        return Slot(number, track.id, region, before[-1].det_score, "after", _MAX_GAP + 1)
    if after and after[0].number in keys[key_at : key_at + 1]:
        region = _beyond(after[:2], number)
        return Slot(number, track.id, region, after[0].det_score, "before", _MAX_GAP + 1)
    return None


def _between(track: Track, number: int, before: Sighting, after: Sighting) -> Slot:
    share = (number - before.number) / (after.number - before.number)
    region = before.region.toward(after.region, share)
    return Slot(number, track.id, region, before.det_score, "between", after.number - before.number)

"""Following faces from key frame to key frame: by where they should be, and by looks where that does not tell.

Why our own, and none of the well-kept trackers of boxes (ByteTrack, OC-SORT, those of norfair and supervision): they
want boxes of every frame, and would make the detector look four times as often; they predict a box by its own speed, so
that a pan loses everybody at once; they tell people apart by overlap, so that two who cross may change numbers. Here
the mesh already says in every frame where a face is, the picture's own motion says where it goes, and a recognizer
decides where places do not. That is a comparison of designs; their figures on faces were not measured.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.core.types import TrackId
from app.faces.association import Clues, associated
from app.faces.landmarks import CropRegion, kps_from_landmarks, region_from_landmarks, unrest
from app.faces.tracks import PRESENT, Candidate, Patience, Sighting, Track, region_cost

# Limits in the unit of `region_cost`: sides of the crop, 1.5 times a face.
_MAX_DRIFT = 0.25
_SAME_PLACE = 0.25
_SAME_HEAD = 0.4
_QUICK_TURN_RAD = 0.26
"""A face that has turned more since the last look may be misread."""


class Linker:
    """Follows faces from key frame to key frame of one video."""

    def __init__(self) -> None:
        self.patience = Patience()
        self._tracks: list[Track] = []
        self._next_id = 0
        self._key: int | None = None

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The shot's tracks that are followed or were lost since the last `trim`."""
        return tuple(self._tracks)

    def follows(self, number: int) -> bool:
        """True when somebody may still be followed in this frame."""
        return any(number - track.last.number <= self.patience.gap for track in self._tracks)

    def begin_shot(self) -> None:
        """Let go of everybody."""
        self._tracks = []
        self._key = None

    def trim(self) -> None:
        """Forget what no later key frame needs: old sightings, and tracks that were lost for good."""
        newest = max((track.last.number for track in self._tracks), default=0)
        self._tracks = [t for t in self._tracks if newest - t.last.number <= self.patience.gap]
        for track in self._tracks:
            del track.sightings[:-2]

    def see(self, number: int, candidates: Sequence[Candidate], clues: Clues) -> None:
        """Take in the next key frame.

        Args:
            number: Its running number.
            candidates: What was detected in it.
            clues: Answers questions about this frame.
        """
        live = [track for track in self._tracks if number - track.last.number <= self.patience.gap]
        expected = self._expected(live, number, clues)
        nearest = [places[-1] for places in expected]
        candidates = [_untwisted(each, nearest, clues) for each in candidates]
        looks = clues.looks_of(candidates)
        candidates = [replace(c, look=look) for c, look in zip(candidates, looks, strict=True)]
        links = associated(live, expected, candidates, clues)
        for row, column in links.pairs:
            live[row].sightings.append(_sighting(number, candidates[column]))
        taken = {column for _, column in links.pairs}
        strangers = {
            live[row].id: region_from_landmarks(candidates[column].landmarks)
            for row, column in links.strangers
        }
        self._coast(zip(live, expected, strict=True), number, strangers, clues)
        fresh = [
            candidate
            for index, candidate in enumerate(candidates)
            if index not in taken and candidate.may_begin_track
        ]
        self._begin(number, fresh, clues)
        self._key = number

    def _expected(self, live: Sequence[Track], number: int, clues: Clues) -> list[list[CropRegion]]:
        """Where each track should be: as its speed says, and as the picture moved, the likelier one last."""
        places = [[track.predicted(number)] for track in live]
        fresh = [row for row, track in enumerate(live) if track.last.number == self._key]
        carried = clues.carried([live[row].last.region for row in fresh]) if fresh else None
        for row, region in zip(fresh, carried or (), strict=False):
            places[row].append(region)
        return places

    def _coast(
        self,
        expected: Iterable[tuple[Track, Sequence[CropRegion]]],
        number: int,
        strangers: Mapping[TrackId, CropRegion],
        clues: Clues,
    ) -> None:
        """Look for lost faces where they should be: a head in profile is often seen by the mesh alone."""
        followed = [
            (track, places[-1])
            for track, places in expected
            if track.last.number != number and number - track.last.detected <= self.patience.coast
        ]
        if not followed:
            return
        regions = [region for _, region in followed]
        for (track, region), landmarks, presence in zip(
            followed, *clues.measure(regions), strict=True
        ):
            found = region_from_landmarks(landmarks)
            is_there = presence >= PRESENT and region_cost(region, found) < _MAX_DRIFT
            other = strangers.get(track.id)
            is_other = other is not None and region_cost(other, found) < _SAME_PLACE
            if is_there and not is_other and not self._is_occupied(number, found):
                track.sightings.append(replace(track.last, number=number, region=found, kps=None))

    def _begin(self, number: int, fresh: Sequence[Candidate], clues: Clues) -> None:
        if not fresh:
            return
        for candidate, is_face in zip(fresh, clues.proven(fresh), strict=True):
            sighting = _sighting(number, candidate)
            if is_face and not self._is_occupied(number, sighting.region):
                self._tracks.append(Track(TrackId(self._next_id), [sighting]))
                self._next_id += 1

    def _is_occupied(self, number: int, region: CropRegion) -> bool:
        return any(
            track.last.number == number and region_cost(track.last.region, region) < _SAME_PLACE
            for track in self._tracks
        )


def _sighting(number: int, candidate: Candidate) -> Sighting:
    return Sighting(
        number,
        region_from_landmarks(candidate.landmarks),
        candidate.face.det_score,
        number,
        kps_from_landmarks(candidate.landmarks),
        candidate.look,
    )


def _untwisted(candidate: Candidate, expected: Sequence[CropRegion], clues: Clues) -> Candidate:
    """A find, measured as the track beside it is turned where that fits better.

    Detectors look for upright faces: of one that lies at 50 degrees and more they tell the place, but not the turn, and
    the mesh believes them. Measured again from its own result the wrong one of two measures moves on.
    """
    region = region_from_landmarks(candidate.landmarks)
    near = min(expected, key=lambda place: region_cost(place, region), default=region)
    turn = (region.roll_rad - near.roll_rad + np.pi) % (2 * np.pi) - np.pi
    if abs(turn) < _QUICK_TURN_RAD or region_cost(near, region) > _SAME_HEAD:
        return candidate
    (other,), (presence,) = clues.measure([replace(region, roll_rad=near.roll_rad)])
    again, _ = clues.measure([region, region_from_landmarks(other)])
    is_better = unrest(other, again[1]) < unrest(candidate.landmarks, again[0])
    if presence < PRESENT or not is_better:
        return candidate
    return replace(candidate, landmarks=other, presence=float(presence))

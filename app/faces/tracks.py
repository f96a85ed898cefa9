"""Which detection in one key frame is which person of the key frame before, and where a track's face lies between."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

import numpy as np

from app.core.geometry import FloatArray
from app.core.types import Face, TrackId
from app.faces.landmarks import (
    CropRegion,
    face_size_px,
    kps_from_landmarks,
)

PRESENT = 0.5
"""Presence from which a crop is taken to hold a face."""

MAX_STEP = 4
"""Frames for which a speed is trusted, and from one key frame to the next."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a face may be missed, in frames; at least a few, whatever the rate.

    Attributes:
        gap: A face seen again within this is the same track, and its place is filled in between.
        coast: A track goes on this long when only the mesh sees the face, as when a head turns to profile.
    """

    gap: int = 13
    coast: int = 40

    @classmethod
    def at_rate(cls, frame_s: float) -> "Patience":
        """Half a second and 1.6 seconds, given the seconds from one frame to the next."""
        frames = 1 / min(max(frame_s, 1 / 240), 1.0)
        return cls(gap=max(4, ceil(0.5 * frames)), coast=max(8, ceil(1.6 * frames)))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A detection and what the mesh made of it.

    Attributes:
        face: As the detector found it.
        landmarks: `(478, 3)`, picture pixels.
        presence: 0 to 1.
        look: What a whole face looks like, see `face_gray`; `None` where nobody has looked.
    """

    face: Face
    landmarks: FloatArray
    presence: float
    look: FloatArray | None = None

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


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """A track's face in one key frame.

    Attributes:
        number: Running number of the frame.
        region: Where the mesh saw it.
        det_score: Of the detector, when it last saw the face.
        detected: Number of the frame in which it last did.
        kps: `(5, 2)`, picture pixels, where the detector saw the face in this very frame.
        look: What it looked like when the detector last saw it, see `face_gray`.
    """

    number: int
    region: CropRegion
    det_score: float
    detected: int
    kps: FloatArray | None = None
    look: FloatArray | None = None


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
        return beyond(self.sightings[-2:][::-1], number)

    def around(self, number: int) -> tuple[list[Sighting], list[Sighting]]:
        """Sightings before a frame, and those in it or after it."""
        at = bisect_left(self.sightings, number, key=lambda sighting: sighting.number)
        return self.sightings[:at], self.sightings[at:]


def beyond(nearest: Sequence[Sighting], number: int) -> CropRegion:
    """A region carried on at the speed between one or two sightings, the nearer first; only for a few frames."""
    here, *others = nearest
    if not others or abs(here.number - others[0].number) > 3 * MAX_STEP:
        return here.region
    steps = float(np.clip(number - here.number, -MAX_STEP, MAX_STEP))
    share = steps / (here.number - others[0].number)
    x, y = (
        a + (a - b) * share
        for a, b in zip(here.region.center_xy, others[0].region.center_xy, strict=True)
    )
    return replace(here.region, center_xy=(x, y))


def region_cost(a: CropRegion, b: CropRegion) -> float:
    """How unlike two regions are: distance in sides of the square, plus half the logarithm of their ratio."""
    distance = float(np.hypot(a.center_xy[0] - b.center_xy[0], a.center_xy[1] - b.center_xy[1]))
    size = float(np.sqrt(a.side_px * b.side_px))
    return distance / size + 0.5 * abs(float(np.log(a.side_px / b.side_px)))


Place = Literal["seen", "between", "after", "before"]


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A frame in which a track's face is to be measured.

    Attributes:
        number: Running number of the frame.
        region: Where to look.
        det_score: Of the nearest sighting before, or after for `before`.
        place: Relative to the track's sightings; `after` and `before` reach beyond them and end where the face does.
        gap: Frames from the sighting before to the one after, 0 for a sighting itself: the more, the less is known.
        looks: What the face looked like on either side, see `face_gray`, where somebody else may have come in since.
    """

    number: int
    track_id: TrackId
    region: CropRegion
    det_score: float
    place: Place
    gap: int
    looks: tuple[FloatArray, ...] = ()


def slot_of(track: Track, number: int, keys: Sequence[int], max_gap: int) -> Slot | None:
    """Where a track's face is to be looked for in one frame; `None` where it is known to be away.

    Args:
        track: Its sightings lie in `keys`, or before them.
        number: Running number of the frame.
        keys: Key frames of the shot, ascending, from the one before the frame on, if there is one.
        max_gap: Frames that are filled in between sightings.
    """
    before, after = track.around(number)
    if after and after[0].number == number:
        return Slot(number, track.id, after[0].region, after[0].det_score, "seen", 0)
    if before and after and after[0].number - before[-1].number <= max_gap:
        return _between(track, number, before[-1], after[0])
    key_at = bisect_left(keys, number)
    if number in keys[key_at : key_at + 1]:
        return None
    if before and key_at and before[-1].number == keys[key_at - 1]:
        last = before[-1]
        region = beyond(before[-2:][::-1], number)
        return Slot(number, track.id, region, last.det_score, "after", max_gap + 1, _looks(last))
    if after and after[0].number in keys[key_at : key_at + 1]:
        next_ = after[0]
        region = beyond(after[:2], number)
        return Slot(number, track.id, region, next_.det_score, "before", max_gap + 1, _looks(next_))
    return None


def _between(track: Track, number: int, before: Sighting, after: Sighting) -> Slot:
    gap = after.number - before.number
    region = before.region.toward(after.region, (number - before.number) / gap)
    looks = _looks(before, after) if gap > MAX_STEP else ()
    return Slot(number, track.id, region, before.det_score, "between", gap, looks)


def _looks(*sightings: Sighting) -> tuple[FloatArray, ...]:
    return tuple(sighting.look for sighting in sightings if sighting.look is not None)

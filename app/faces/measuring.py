"""One measure of every face of every frame of a window, and which of them are to be believed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.core.geometry import FloatArray
from app.core.types import Frame, RgbImage, TrackId
from app.faces.landmarks import (
    CropRegion,
    FaceLandmarker,
    bbox_from_landmarks,
    region_from_landmarks,
)
from app.faces.resemblance import face_gray, look_alike
from app.faces.tracks import PRESENT, Place, Slot, region_cost

_OFF_CENTER = 0.12
_OFF_LEVEL_RAD = 0.2
_SURELY_PRESENT = 0.9
"""A face that lies so far off the middle of its crop (unit of `region_cost`), or so far turned, or that the mesh is not
sure of, is measured again."""
_MORE_LOOKS = 2
_GIVEN_UP_AFTER = 4
"""After so many looks in a row that brought a track's face no nearer to its middle, one a window is enough: such a face
is cut, covered or turned away, or the network's mesh never fills its crop."""
_NEARER = 0.7
"""Another look helped where it left at most this share of what was off."""
_COVERED = 0.5
"""Of two faces of which the smaller one lies to this share under the other, one is not really seen."""


@dataclass(frozen=True, eq=False)
class Measure:
    """What the mesh saw in one slot.

    Attributes:
        region: Where it looked.
        crop: `(192, 192, 3)` uint8 RGB, what it looked at.
        landmarks: `(478, 3)` float32, picture pixels.
        presence: 0 to 1.
    """

    slot: Slot
    region: CropRegion
    crop: RgbImage
    landmarks: FloatArray
    presence: float

    @property
    def is_present(self) -> bool:
        """True where the mesh sees a face."""
        return self.presence >= PRESENT

    @cached_property
    def found(self) -> CropRegion:
        """Where the face lies by what was seen."""
        return region_from_landmarks(self.landmarks)

    @cached_property
    def bbox_xyxy(self) -> tuple[float, float, float, float]:
        """The box around what was seen, picture pixels."""
        x0, y0, x1, y1 = bbox_from_landmarks(self.landmarks).tolist()
        return x0, y0, x1, y1

    @property
    def surprise(self) -> float:
        """How far the face lies from where its track expected it (unit of `region_cost`)."""
        return region_cost(self.slot.region, self.found)

    @property
    def off(self) -> float:
        """How badly the face lies in its crop; above 1, another look is worth it."""
        turn = (self.found.roll_rad - self.region.roll_rad + np.pi) % (2 * np.pi) - np.pi
        return max(
            region_cost(self.region, self.found) / _OFF_CENTER,
            abs(turn) / _OFF_LEVEL_RAD,
            (1 - self.presence) / (1 - _SURELY_PRESENT),
        )

    @property
    def is_off(self) -> bool:
        """True where a face lies so badly in its crop that another look is worth it."""
        return self.is_present and self.off > 1


class Measurer:
    """Measures the faces of one video, window by window.

    Args:
        landmarker: Looks.
    """

    def __init__(self, landmarker: FaceLandmarker) -> None:
        self._landmarker = landmarker
        self._in_vain: dict[TrackId, int] = {}

    def measure(self, frames: Mapping[int, Frame], slots: Sequence[Slot]) -> list[Measure]:
        """Measure all slots in one batch, and those that were off the mark once or twice more.

        Args:
            frames: By running number.
            slots: Where to look.

        Returns:
            Only faces that are there, frame by frame; no two of one frame in one place.
        """
        measures = self._looked(frames, slots, [slot.region for slot in slots])
        again = self._worth_more(measures)
        for _ in range(_MORE_LOOKS):
            if not again:
                break
            more = self._looked(
                frames,
                [slots[index] for index in again],
                [measures[index].found for index in again],
            )
            for index, measure in zip(again, more, strict=True):
                self._judge(measures[index], measure)
                measures[index] = measure
            again = [index for index in again if measures[index].is_off]
        return _without_doubles(_without_absent(measures))

    def _worth_more(self, measures: Sequence[Measure]) -> list[int]:
        """Which to look at again: all that are off, of the hopeless tracks one each."""
        chosen, tried = [], set()
        for index, measure in enumerate(measures):
            if not measure.is_off:
                continue
            track = measure.slot.track_id
            if self._in_vain.get(track, 0) < _GIVEN_UP_AFTER or track not in tried:
                chosen.append(index)
                tried.add(track)
        return chosen

    def _judge(self, before: Measure, after: Measure) -> None:
        """Remember whether another look helped."""
        has_helped = not after.is_off or after.off < _NEARER * before.off
        track = before.slot.track_id
        self._in_vain[track] = 0 if has_helped else self._in_vain.get(track, 0) + 1

    def keep_only(self, tracks: Iterable[TrackId]) -> None:
        """Drop what is known of other tracks."""
        self._in_vain = {key: self._in_vain[key] for key in tracks if key in self._in_vain}

    def _looked(
        self, frames: Mapping[int, Frame], slots: Sequence[Slot], regions: Sequence[CropRegion]
    ) -> list[Measure]:
        pictures = [frames[slot.number].picture for slot in slots]
        crops = self._landmarker.cut(list(zip(pictures, regions, strict=True)))
        rows = zip(slots, regions, crops, *self._landmarker.measure(crops, regions), strict=True)
        return [
            Measure(slot, region, crop, points, float(presence))
            for slot, region, crop, points, presence in rows
        ]


def _without_absent(measures: Iterable[Measure]) -> list[Measure]:
    """Drop what is no face; before and after its sightings a track ends with the first such frame, or another face."""
    tracks: dict[TrackId, list[Measure]] = defaultdict(list)
    for measure in measures:
        tracks[measure.slot.track_id].append(measure)
    kept = []
    for rows in tracks.values():
        rows.sort(key=lambda measure: measure.slot.number)
        rows = _until_absent(rows, "after")
        kept += _until_absent(rows[::-1], "before")
    return [measure for measure in kept if measure.is_present and not _is_intruder(measure)]


def _until_absent(measures: Iterable[Measure], place: Place) -> list[Measure]:
    kept: list[Measure] = []
    is_over = False
    for measure in measures:
        is_beyond = measure.slot.place == place
        is_over = is_beyond and (
            is_over or not measure.is_present or _is_other(measure, kept[-1] if kept else None)
        )
        if not is_over:
            kept.append(measure)
    return kept


def _is_other(measure: Measure, neighbor: Measure | None) -> bool:
    """True where the pixels say that this is not the face of the frame beside it."""
    looks = measure.slot.looks if neighbor is None else (face_gray(neighbor.crop),)
    return bool(looks) and not any(look_alike(look, face_gray(measure.crop)) for look in looks)


def _is_intruder(measure: Measure) -> bool:
    """True for a face in a long hole that looks like neither side of it."""
    return measure.slot.place == "between" and _is_other(measure, None)


def _without_doubles(measures: Iterable[Measure]) -> list[Measure]:
    """Where two tracks claim one face of a frame, keep the one that was seen nearer in time, then the better placed.

    Behind somebody who passes, a lost track would else take the face of the one in front.
    """
    frames: dict[int, list[Measure]] = defaultdict(list)
    for measure in sorted(measures, key=lambda m: (m.slot.number, m.slot.gap, m.surprise)):
        others = frames[measure.slot.number]
        if not any(_covered(measure, other) > _COVERED for other in others):
            others.append(measure)
    return [measure for row in frames.values() for measure in row]


def _covered(a: Measure, b: Measure) -> float:
    """Share of the smaller of two boxes that lies in the larger one."""
    left, top, right, bottom = zip(a.bbox_xyxy, b.bbox_xyxy, strict=True)
    common = max(min(right) - max(left), 0) * max(min(bottom) - max(top), 0)
    smaller = min((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (a.bbox_xyxy, b.bbox_xyxy))
    return common / max(smaller, 1e-6)

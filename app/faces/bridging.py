"""Short holes in a track are filled where the pixels still show the same face: a swap must not flicker.

The mesh loses a blurred or shaded face for a frame or two and finds it again. In between the landmarks are those of
both sides, blended, if the crop there still looks like the crop before or after. Where no other side is known yet, at
the end of a window, the face is looked for near its last place by its pixels alone. Behind a bar, behind somebody else,
or in the white of a flash neither succeeds, and the hole stays.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray, bbox_iou, invert_affine
from app.core.types import Frame, RgbImage, TrackId
from app.faces.landmarks import (
    CROP_PX,
    CropRegion,
    FaceLandmarker,
    bbox_from_landmarks,
    region_from_landmarks,
)
from app.faces.measuring import Measure
from app.faces.shots import correlation
from app.faces.tracks import PRESENT, Slot, Track

_SAME_LOOK = 0.7
_SURELY_SAME_LOOK = 0.85
_TOUCHING_IOU = 0.1
_EDGE_PX = CROP_PX // 6
"""What is left of a crop without its edges is mostly face."""
_SIDE_PX = 48
_BLANK_STD = 4.0
"""Crops that vary less, in 8-bit levels, show nothing, and nothing looks like everything."""

_Others = Mapping[int, Sequence[tuple[TrackId, FloatArray]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Guess:
    """Where a face might be that the mesh did not see."""

    slot: Slot
    region: CropRegion
    landmarks: FloatArray


class Bridge:
    """Fills the holes of one video's tracks; remembers where each was seen last.

    Args:
        landmarker: Cuts crops.
    """

    def __init__(self, landmarker: FaceLandmarker) -> None:
        self._landmarker = landmarker
        self._last: dict[TrackId, Measure] = {}

    def filled(
        self,
        frames: Mapping[int, Frame],
        measures: Sequence[Measure],
        tracks: Iterable[Track],
        *,
        max_gap: int,
    ) -> list[Measure]:
        """Add what fills holes to the measures of a window.

        Args:
            frames: The window's frames by running number.
            measures: What was believed in them.
            tracks: Who is still followed at the window's end.
            max_gap: Longest hole, in frames from believed to believed measure.

        Returns:
            The measures by track and frame.
        """
        rows: dict[TrackId, list[Measure]] = defaultdict(list)
        others: dict[int, list[tuple[TrackId, FloatArray]]] = defaultdict(list)
        for measure in sorted(measures, key=lambda each: each.slot.number):
            slot = measure.slot
            rows[slot.track_id].append(measure)
            others[slot.number].append((slot.track_id, bbox_from_landmarks(measure.landmarks)))
        live = {track.id for track in tracks}
        fillers: list[Measure] = []
        for track_id in sorted({*rows, *live}):
            known = [self._last[track_id]] if track_id in self._last else []
            seen = [*known, *rows[track_id]]
            for before, after in pairwise(seen):
                if after.slot.number - before.slot.number <= max_gap:
                    fillers += self._between(frames, before, after, others)
            if track_id in live and seen:
                self._last[track_id] = seen[-1]
                fillers += self._behind(frames, seen[-1], others, max_gap)
        self._last = {key: last for key, last in self._last.items() if key in live}
        return sorted(
            [*measures, *fillers], key=lambda each: (each.slot.track_id, each.slot.number)
        )

    def _between(
        self, frames: Mapping[int, Frame], before: Measure, after: Measure, others: _Others
    ) -> list[Measure]:
        """What lies between two sides of a hole, where the picture looks like one of them."""
        hole = range(before.slot.number + 1, after.slot.number)
        guesses = [_blend(number, before, after) for number in hole if number in frames]
        known = [_face_gray(end.crop) for end in (before, after)]
        return [
            measure
            for measure in self._cut(frames, guesses)
            if not _is_hidden(measure, others)
            and max(correlation(_face_gray(measure.crop), each) for each in known) >= _SAME_LOOK
        ]

    def _behind(
        self, frames: Mapping[int, Frame], last: Measure, others: _Others, max_gap: int
    ) -> list[Measure]:
        """What follows the last measure in the window, as long as the face is surely seen."""
        held: list[Measure] = []
        template, landmarks = _face_gray(last.crop, CROP_PX // 3), last.landmarks
        for number in range(last.slot.number + 1, last.slot.number + max_gap):
            if number not in frames:
                continue
            slot = _slot(number, last, region_from_landmarks(landmarks))
            (guess,) = self._cut(frames, [_Guess(slot, slot.region, landmarks)])
            score, shift = _found(guess.crop, template)
            landmarks = _shifted(landmarks, guess.region, shift)
            measure = Measure(slot, guess.region, guess.crop, landmarks, PRESENT)
            if score < _SURELY_SAME_LOOK or _is_hidden(measure, others):
                break
            held.append(measure)
        return held

    def _cut(self, frames: Mapping[int, Frame], guesses: Sequence[_Guess]) -> list[Measure]:
        items = [(frames[guess.slot.number].picture, guess.region) for guess in guesses]
        return [
            Measure(guess.slot, guess.region, crop, guess.landmarks, PRESENT)
            for guess, crop in zip(guesses, self._landmarker.cut(items), strict=True)
        ]


def _slot(number: int, near: Measure, region: CropRegion) -> Slot:
    track_id, score = near.slot.track_id, near.slot.det_score
    return Slot(number, track_id, region, score, "between", abs(number - near.slot.number))


def _blend(number: int, before: Measure, after: Measure) -> _Guess:
    share = (number - before.slot.number) / (after.slot.number - before.slot.number)
    landmarks = before.landmarks + np.float32(share) * (after.landmarks - before.landmarks)
    region = region_from_landmarks(landmarks)
    return _Guess(_slot(number, before, region), region, landmarks)


def _is_hidden(measure: Measure, others: _Others) -> bool:
    """True where somebody else's face is in the way."""
    box = bbox_from_landmarks(measure.landmarks)[None]
    return any(
        track_id != measure.slot.track_id
        and float(bbox_iou(box, other[None])[0, 0]) > _TOUCHING_IOU
        for track_id, other in others.get(measure.slot.number, ())
    )


def _face_gray(crop: RgbImage, side_px: int = _SIDE_PX) -> FloatArray:
    """The middle of a crop, where the face is, small and gray."""
    return _small_gray(crop[_EDGE_PX:-_EDGE_PX, _EDGE_PX:-_EDGE_PX], side_px)


def _small_gray(crop: NDArray[np.uint8], side_px: int) -> FloatArray:
    gray = cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(gray, (side_px, side_px), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.float32)


def _found(crop: RgbImage, template: FloatArray) -> tuple[float, tuple[float, float]]:
    """How well a crop shows a face somewhere, and how far off its middle, in crop pixels."""
    gray = _small_gray(crop, CROP_PX // 2)
    if min(gray.std(), template.std()) < _BLANK_STD:
        return 0.0, (0.0, 0.0)
    scores = cv2.matchTemplate(gray, template, cv2.TM_CCOEFF_NORMED)
    _, best, _, (x, y) = cv2.minMaxLoc(scores)
    middle = (scores.shape[0] - 1) / 2
    return float(best), (2 * (x - middle), 2 * (y - middle))


def _shifted(
    landmarks: FloatArray, region: CropRegion, shift_px: tuple[float, float]
) -> FloatArray:
    linear = invert_affine(region.affine)[:, :2]
    moved = landmarks.copy()
    moved[:, :2] += linear @ np.array(shift_px, np.float32)
    return moved

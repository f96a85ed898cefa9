"""Short holes in a track are filled where the pixels still show the same face: a swap must not flicker.

The mesh loses a blurred or shaded face for a frame or two and finds it again. In between the landmarks are those of
both sides, blended, if the crop there still looks like the crop before or after. Where it does not, because the camera
shook, and where no other side is known yet, at the end of a window, the face is looked for near its place by its
pixels. Somebody who has just come in is looked for backward in the same way, up to the border. Behind a bar, behind
somebody else, or in the white of a flash neither succeeds, and the hole stays.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

import cv2
import numpy as np

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
from app.faces.resemblance import BLANK_STD, SAME_LOOK, face_gray, small_gray
from app.faces.shots import correlation
from app.faces.tracks import MAX_STEP, PRESENT, Slot, Track, region_cost

_SURELY_SAME_LOOK = 0.85
_SEARCH = 2.0
"""How much wider than a crop the square is in which a face is looked for by its pixels: 0.75 faces to each side."""
_SURELY_PRESENT = 0.9
_MAX_MISFIT = 0.25
"""How far the mesh may see a face from where its pixels were found (unit of `region_cost`)."""
_TOUCHING_IOU = 0.1

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
            rows[measure.slot.track_id].append(measure)
            others[measure.slot.number].append(_place(measure))
        live = {track.id for track in tracks}
        fillers: list[Measure] = []
        for track_id in sorted({*rows, *live}):
            known = [self._last[track_id]] if track_id in self._last else []
            seen = [*known, *rows[track_id]]
            more: list[Measure] = []
            if seen and not known:
                more += self._ahead(frames, seen, others, max_gap)
            for before, after in pairwise(seen):
                if after.slot.number - before.slot.number <= max_gap:
                    more += self._between(frames, before, after, others)
            if track_id in live and seen:
                self._last[track_id] = seen[-1]
                more += self._behind(frames, seen[-1], others, max_gap)
            for filler in more:
                others[filler.slot.number].append(_place(filler))
            fillers += more
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
        known = [face_gray(end.crop) for end in (before, after)]
        held: list[Measure] = []
        for guess, measure in zip(guesses, self._cut(frames, guesses), strict=True):
            found = self._searched(frames, guess, held[-1] if held else before)
            likeness = max(correlation(face_gray(measure.crop), each) for each in known)
            if found is None and likeness >= SAME_LOOK:
                found = measure
            if found is not None and not _is_hidden(found, others):
                held.append(found)
        return held

    def _behind(
        self, frames: Mapping[int, Frame], last: Measure, others: _Others, max_gap: int
    ) -> list[Measure]:
        """What follows the last measure in the window, as long as the face is surely seen."""
        numbers = range(last.slot.number + 1, last.slot.number + max_gap)
        return list(self._followed(frames, [last], numbers, others))

    def _ahead(
        self,
        frames: Mapping[int, Frame],
        rows: Sequence[Measure],
        others: _Others,
        max_gap: int,
    ) -> list[Measure]:
        """What comes before the first measure of somebody new, back to the border or to the cut."""
        first = rows[0].slot.number
        numbers = []
        for number in range(first - 1, first - max_gap, -1):
            if number + 1 not in frames or frames[number + 1].is_cut:
                break
            numbers.append(number)
        found = self._followed(frames, rows[1::-1], numbers, others)
        # Of a face that is half outside the mesh makes a whole one, which is no good beginning.
        return list(takewhile(lambda measure: measure.presence >= _SURELY_PRESENT, found))

    def _followed(
        self,
        frames: Mapping[int, Frame],
        near: Sequence[Measure],
        numbers: Iterable[int],
        others: _Others,
    ) -> Iterator[Measure]:
        """Frame by frame beyond one or two measures, the nearer last, as long as the face is surely seen."""
        behind, last = near[0], near[-1]
        for number in numbers:
            if number not in frames:
                continue
            region = _carried_on(behind, last, number)
            guess = _Guess(_slot(number, last, region), region, _moved_to(region, last))
            found = self._searched(frames, guess, last)
            if found is None or _is_hidden(found, others):
                return
            yield found
            behind, last = last, found

    def _searched(
        self, frames: Mapping[int, Frame], guess: _Guess, near: Measure
    ) -> Measure | None:
        """Where the pixels of a measure are found again; measured there, or moved there where the mesh sees nothing."""
        slot, region = guess.slot, guess.region
        wide = replace(region, side_px=region.side_px * _SEARCH)
        (crop,) = self._landmarker.cut([(frames[slot.number].picture, wide)])
        template = face_gray(near.crop, round(CROP_PX / 3 / _SEARCH))
        score, shift = _found(crop, template)
        if score < SAME_LOOK:
            return None
        landmarks = _shifted(guess.landmarks, wide, shift)
        moved = _Guess(slot, region_from_landmarks(landmarks), landmarks)
        (held,) = self._cut(frames, [moved])
        likeness = correlation(face_gray(held.crop), face_gray(near.crop))
        seen = self._measured(held) if likeness >= SAME_LOOK else None
        if seen is not None:
            return seen
        return held if likeness >= _SURELY_SAME_LOOK else None

    def _measured(self, held: Measure) -> Measure | None:
        """What the mesh sees where the pixels were found; nothing where it sees something else."""
        (landmarks,), (presence,) = self._landmarker.measure(held.crop[None], [held.region])
        misfit = region_cost(held.region, region_from_landmarks(landmarks))
        is_seen = presence >= PRESENT and misfit < _MAX_MISFIT
        return replace(held, landmarks=landmarks, presence=float(presence)) if is_seen else None

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


def _carried_on(behind: Measure, last: Measure, number: int) -> CropRegion:
    """Where a face should be, at the speed between two measures; one alone has none."""
    here, there = (region_from_landmarks(each.landmarks) for each in (last, behind))
    steps = last.slot.number - behind.slot.number
    if steps == 0 or abs(steps) > MAX_STEP:
        return here
    share = (number - last.slot.number) / steps
    x, y = (a + (a - b) * share for a, b in zip(here.center_xy, there.center_xy, strict=True))
    return replace(here, center_xy=(x, y))


def _moved_to(region: CropRegion, measure: Measure) -> FloatArray:
    """The landmarks of a measure in another place."""
    here = region_from_landmarks(measure.landmarks)
    moved = measure.landmarks.copy()
    moved[:, :2] += np.subtract(region.center_xy, here.center_xy).astype(np.float32)
    return moved


def _place(measure: Measure) -> tuple[TrackId, FloatArray]:
    return measure.slot.track_id, bbox_from_landmarks(measure.landmarks)


def _is_hidden(measure: Measure, others: _Others) -> bool:
    """True where somebody else's face is in the way."""
    box = bbox_from_landmarks(measure.landmarks)[None]
    return any(
        track_id != measure.slot.track_id
        and float(bbox_iou(box, other[None])[0, 0]) > _TOUCHING_IOU
        for track_id, other in others.get(measure.slot.number, ())
    )


def _found(crop: RgbImage, template: FloatArray) -> tuple[float, tuple[float, float]]:
    """How well a crop shows a face somewhere, and how far off its middle, in crop pixels."""
    gray = small_gray(crop, CROP_PX // 2)
    if min(gray.std(), template.std()) < BLANK_STD:
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

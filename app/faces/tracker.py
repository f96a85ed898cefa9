"""Every face of every frame: measured, steady, and with a number that stays.

Networks are called a few times a window, never once a frame: the detector on key frames only, the mesh once on what it
found there and once on all faces of all frames.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import cv2
import numpy as np

from app.core.types import Face, Frame, Window
from app.faces.bridging import Bridge
from app.faces.clues import KeyClues
from app.faces.detector import FaceDetector, in_reading_order
from app.faces.drift import Drift
from app.faces.flow import Stabilizer, View
from app.faces.landmarks import (
    FaceLandmarker,
    face_from_landmarks,
)
from app.faces.linker import Linker
from app.faces.looks import Glance, LooksBook
from app.faces.measuring import Measure, Measurer
from app.faces.proving import FaceProver
from app.faces.recognizer import FaceRecognizer
from app.faces.searching import Searcher
from app.faces.shots import CutFinder
from app.faces.tracks import Candidate, Patience, Slot, slot_of

_KEY_STEP = 4
"""Every so many frames the detector looks; between them a face is looked for between where it was and where it went."""

_IDLE_S = 0.3
"""While nobody is followed it is enough to look this often: whoever shows up is then looked for back to the last look
that lies in the window."""

_Frames = Mapping[int, Frame]


@dataclass(frozen=True, slots=True)
class _Shot:
    """The part of a shot that lies in the window.

    Attributes:
        numbers: Running numbers of its frames.
        keys: Key frames; where the shot began before the window, the first is the last frame before the window.
    """

    numbers: range
    keys: tuple[int, ...]
    is_new: bool


class FaceTracker:
    """Finds and follows the faces of one video, window by window; a still is a video of one frame.

    Args:
        detector: For stills one with several sides, see `STILL_SIDES_PX`.
        landmarker: Measures.
        recognizer: With it, each face carries its track's `embedding`: the mean of the track's best views so far (at
            most four; frontal, large and whole ones count most), the same in all frames of a window and better in
            later windows. Whoever decides by it early should look at it again.
        searches: For videos: look beyond the detector's own way now and then, see `Searcher`.
    """

    def __init__(
        self,
        detector: FaceDetector,
        landmarker: FaceLandmarker,
        recognizer: FaceRecognizer | None = None,
        *,
        searches: bool = False,
    ) -> None:
        self._detector = detector
        self._searcher = Searcher(detector) if searches else None
        self._landmarker = landmarker
        self._measurer = Measurer(landmarker)
        self._cuts = CutFinder()
        self._linker = Linker()
        self._stabilizer = Stabilizer()
        self._looks = None if recognizer is None else LooksBook(recognizer)
        self._prover = FaceProver(landmarker, recognizer)
        self._drift = Drift()
        self._bridge = Bridge(landmarker)
        self._rate = _Rate()
        self._next_number = 0
        self._looked_s = 0.0

    def track(self, window: Window) -> Window:
        """Give the frames of the next window their faces.

        Args:
            window: Consecutive frames that follow those of the last call.

        Returns:
            The same frames with `is_cut` and `faces` set: in reading order, with landmarks, the box and the key points
            that follow from them, and a `track_id`, new after every cut.
        """
        if not window:
            return window
        first, self._next_number = self._next_number, self._next_number + len(window)
        frames = dict(enumerate(self._cuts.mark(window), start=first))
        self._linker.patience = Patience.at_rate(self._rate.frame_s(window))
        slots = self._slots(frames)
        measures = self._measurer.measure(frames, slots)
        measures = self._bridge.filled(
            frames, measures, self._linker.tracks, max_gap=self._linker.patience.gap
        )
        faces = self._steadied(measures)
        by_frame: dict[int, list[Face]] = defaultdict(list)
        for measure, face in zip(measures, self._recognized(frames, measures, faces), strict=True):
            by_frame[measure.slot.number].append(face)
        self._forget()
        return tuple(
            replace(frame, faces=in_reading_order(by_frame[number]))
            for number, frame in frames.items()
        )

    def _slots(self, frames: _Frames) -> list[Slot]:
        """Link what key frames show; where each track's face is to be measured."""
        shots, candidates = self._looked(frames)
        slots = []
        for shot in shots:
            if shot.is_new:
                self._linker.begin_shot()
                self._drift.forget()
            for key in shot.keys:
                if key in candidates:
                    self._linker.see(key, candidates[key], self._clues(key, frames))
            tracks, gap = self._linker.tracks, self._linker.patience.gap
            places = (slot_of(t, number, shot.keys, gap) for number in shot.numbers for t in tracks)
            slots += [slot for slot in places if slot is not None]
        return slots

    def _looked(self, frames: _Frames) -> tuple[list[_Shot], dict[int, list[Candidate]]]:
        """The shots with the key frames that were worth a look, and what was found in them."""
        shots = _shots(frames)
        idle = [shot for shot in shots if shot.is_new or not self._linker.follows(shot.numbers[0])]
        busy = [key for shot in shots if shot not in idle for key in shot.keys]
        glances = {shot.numbers: self._glances(frames, shot) for shot in idle}
        fresh = [key for shot in idle if shot.is_new for key in glances[shot.numbers]]
        later = [key for shot in idle if not shot.is_new for key in glances[shot.numbers]]
        candidates = self._candidates(frames, [*busy, *fresh])
        candidates |= self._candidates(frames, later, is_glance=True)
        woken = [
            shot
            for shot in idle
            if any(
                each.may_begin_track for key in glances[shot.numbers] for each in candidates[key]
            )
        ]
        rest = [key for shot in woken for key in shot.keys if key not in candidates]
        candidates |= self._candidates(frames, rest)
        if candidates:
            self._looked_s = frames[max(candidates)].time_s
        return [
            shot if shot not in idle or shot in woken else replace(shot, keys=()) for shot in shots
        ], candidates

    def _glances(self, frames: _Frames, shot: _Shot) -> list[int]:
        """Key frames of a shot in which nobody is followed yet, a while apart."""
        glances: list[int] = []
        last_s = self._looked_s
        for key in shot.keys:
            if key not in frames:
                continue
            time_s = frames[key].time_s
            if (shot.is_new and not glances) or time_s - last_s >= _IDLE_S:
                glances.append(key)
                last_s = time_s
        return glances

    def _candidates(
        self, frames: _Frames, keys: Sequence[int], *, is_glance: bool = False
    ) -> dict[int, list[Candidate]]:
        """What the detector finds in key frames, measured."""
        pictures = {key: frames[key].picture for key in keys if key in frames}
        if not pictures:
            return {}
        looked_at = [frames[key] for key in pictures]
        found = dict(zip(pictures, self._detected(looked_at, is_glance=is_glance), strict=True))
        pairs = [(key, face) for key, faces in found.items() for face in faces]
        located = self._landmarker.locate_faces(
            [(pictures[key], face) for key, face in pairs], passes=1
        )
        candidates: dict[int, list[Candidate]] = {key: [] for key in pictures}
        for (key, face), landmarks, presence in zip(pairs, *located, strict=True):
            candidates[key].append(Candidate(face, landmarks, float(presence)))
        return candidates

    def _detected(self, keys: Sequence[Frame], *, is_glance: bool) -> list[tuple[Face, ...]]:
        if self._searcher is None:
            return self._detector.detect([frame.picture for frame in keys])
        if is_glance:
            return self._searcher.glance(keys)
        rolls_rad = [track.last.region.roll_rad for track in self._linker.tracks]
        return self._searcher.detect(keys, rolls_rad)

    def _clues(self, key: int, frames: _Frames) -> KeyClues:
        motion = self._drift.see(key, frames[key].picture)
        return KeyClues(
            key,
            frames,
            self._landmarker,
            prover=self._prover,
            motion=motion,
            looks=self._looks,
        )

    def _steadied(self, measures: Sequence[Measure]) -> list[Face]:
        """One face a measure, its landmarks held by the flow."""
        faces = []
        for measure in measures:
            slot = measure.slot
            gray = np.asarray(cv2.cvtColor(measure.crop, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
            view = View(slot.number, gray, measure.region.affine, measure.landmarks)
            landmarks = self._stabilizer.steadied(slot.track_id, view)
            face = face_from_landmarks(landmarks, slot.det_score)
            faces.append(replace(face, track_id=slot.track_id))
        return faces

    def _recognized(
        self, frames: _Frames, measures: Sequence[Measure], faces: Sequence[Face]
    ) -> list[Face]:
        """The faces with what their tracks look like, to which this window may have added a view."""
        looks = self._looks
        if looks is None:
            return list(faces)
        looks.offer(
            Glance(measure.slot.number, frames[measure.slot.number].picture, face)
            for measure, face in zip(measures, faces, strict=True)
        )
        return [
            replace(face, embedding=looks.of(measure.slot.track_id))
            for measure, face in zip(measures, faces, strict=True)
        ]

    def _forget(self) -> None:
        """Keep only what the next window needs."""
        self._linker.trim()
        self._stabilizer.forget_before(self._next_number - 1)
        followed = {track.id for track in self._linker.tracks}
        self._measurer.keep_only(followed)
        if self._looks is not None:
            self._looks.keep_only(followed)


class _Rate:
    """Seconds from one frame to the next, as far as the times of the frames tell."""

    def __init__(self) -> None:
        self._frame_s = 0.04
        self._last_s: float | None = None

    def frame_s(self, window: Window) -> float:
        """The mean over a window and the step to it; what it was before where times do not tell."""
        before_s, self._last_s = self._last_s, window[-1].time_s
        steps = len(window) if before_s is not None else len(window) - 1
        passed_s = window[-1].time_s - (window[0].time_s if before_s is None else before_s)
        if steps and passed_s > 0:
            self._frame_s = passed_s / steps
        return self._frame_s


def _shots(frames: _Frames) -> list[_Shot]:
    """Cut a window at its shots and choose the key frames: the ends of each shot, and every few frames between."""
    first, end = min(frames), max(frames) + 1
    starts = [number for number, frame in frames.items() if frame.is_cut]
    bounds = sorted({first, *starts, end})
    shots = []
    for begin, stop in pairwise(bounds):
        is_new = frames[begin].is_cut
        steps = range(begin if is_new else begin - 1, stop, _KEY_STEP)
        shots.append(_Shot(range(begin, stop), tuple(sorted({*steps, stop - 1})), is_new))
    return shots

"""Every face of every frame: measured, steady, and with a number that stays.

Networks are called a few times a window, never once a frame: the detector on key frames only, the mesh once on what it
found there and once on all faces of all frames.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import cv2
import numpy as np

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face, Frame, TrackId, Window
from app.faces.detector import FaceDetector, in_reading_order
from app.faces.flow import Stabilizer, View
from app.faces.landmarks import (
    CropRegion,
    FaceLandmarker,
    Located,
    face_from_landmarks,
)
from app.faces.measuring import Measure, measure_slots
from app.faces.recognizer import FaceRecognizer
from app.faces.shots import CutFinder
from app.faces.tracks import Candidate, Linker, MeasureRegions, Slot, slot_of

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
        recognizer: With it, the faces of each track carry the track's embedding.
    """

    def __init__(
        self,
        detector: FaceDetector,
        landmarker: FaceLandmarker,
        recognizer: FaceRecognizer | None = None,
    ) -> None:
        self._detector = detector
        self._landmarker = landmarker
        self._recognizer = recognizer
        self._cuts = CutFinder()
        self._linker = Linker()
        self._stabilizer = Stabilizer()
        self._embeddings: dict[TrackId, FloatArray] = {}
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
        slots = self._slots(frames)
        measures = measure_slots(self._landmarker, frames, slots)
        faces = self._steadied(measures)
        self._recognize(frames, measures, faces)
        by_frame: dict[int, list[Face]] = defaultdict(list)
        for measure, face in zip(measures, faces, strict=True):
            embedding = self._embeddings.get(measure.slot.track_id)
            by_frame[measure.slot.number].append(replace(face, embedding=embedding))
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
            for key in shot.keys:
                if key in candidates:
                    self._linker.see(key, candidates[key], self._measure_of(frames[key]))
            tracks = self._linker.tracks
            places = (slot_of(t, number, shot.keys) for number in shot.numbers for t in tracks)
            slots += [slot for slot in places if slot is not None]
        return slots

    def _looked(self, frames: _Frames) -> tuple[list[_Shot], dict[int, list[Candidate]]]:
        """The shots with the key frames that were worth a look, and what was found in them."""
        shots = _shots(frames)
        idle = [shot for shot in shots if shot.is_new or not self._linker.follows(shot.numbers[0])]
        busy = [key for shot in shots if shot not in idle for key in shot.keys]
        glances = {shot.numbers: self._glances(frames, shot) for shot in idle}
        candidates = self._candidates(frames, [*busy, *chain(*glances.values())])
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

    def _candidates(self, frames: _Frames, keys: Sequence[int]) -> dict[int, list[Candidate]]:
        """What the detector finds in key frames, measured."""
        pictures = {key: frames[key].picture for key in keys if key in frames}
        if not pictures:
            return {}
        found = dict(zip(pictures, self._detector.detect(list(pictures.values())), strict=True))
        pairs = [(key, face) for key, faces in found.items() for face in faces]
        located = self._landmarker.locate_faces(
            [(pictures[key], face) for key, face in pairs], passes=1
        )
        candidates: dict[int, list[Candidate]] = {key: [] for key in pictures}
        for (key, face), landmarks, presence in zip(pairs, *located, strict=True):
            candidates[key].append(Candidate(face, landmarks, float(presence)))
        return candidates

    def _measure_of(self, frame: Frame) -> MeasureRegions:
        def measure(regions: Sequence[CropRegion]) -> Located:
            return self._landmarker.locate([(frame.picture, region) for region in regions])

        return measure

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

    def _recognize(
        self, frames: _Frames, measures: Sequence[Measure], faces: Sequence[Face]
    ) -> None:
        """Embed every track that is new in this window, where the detector is surest of it."""
        if self._recognizer is None:
            return
        best: dict[TrackId, tuple[Picture, Face]] = {}
        clearest_first = sorted(
            zip(measures, faces, strict=True), key=lambda pair: -pair[0].clarity
        )
        for measure, face in clearest_first:
            if (track_id := measure.slot.track_id) not in self._embeddings:
                best.setdefault(track_id, (frames[measure.slot.number].picture, face))
        self._embeddings.update(zip(best, self._recognizer.embed(list(best.values())), strict=True))

    def _forget(self) -> None:
        """Keep only what the next window needs."""
        self._linker.trim()
        self._stabilizer.forget_before(self._next_number - 1)
        live = {track.id for track in self._linker.tracks}
        self._embeddings = {k: v for k, v in self._embeddings.items() if k in live}


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

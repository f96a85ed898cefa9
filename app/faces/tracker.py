"""Every face of every frame: measured, steady, and with a number that stays.

Networks are called a few times a window, never once a frame: the detector on key frames only, the mesh once on what it
found there and once on all faces of all frames.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from app.core.geometry import FloatArray, bbox_iou
from app.core.types import Face, Frame, RgbImage, TrackId, Window
from app.faces.detector import FaceDetector, in_reading_order
from app.faces.flow import Stabilizer, View
from app.faces.landmarks import (
    CropRegion,
    FaceLandmarker,
    Located,
    bbox_from_landmarks,
    kps_from_landmarks,
    region_from_kps,
    region_from_landmarks,
)
from app.faces.recognizer import FaceRecognizer
from app.faces.shots import CutFinder
from app.faces.tracks import PRESENT, Candidate, Linker, Slot, region_cost, slot_of

_KEY_STEP = 4
"""Every so many frames the detector looks; between them a face is looked for where it was before and after."""
_OFF_CENTER = 0.12
"""A face that lies so far off the middle of its crop is measured again (unit of `region_cost`)."""
_SAME_FACE_IOU = 0.5


@dataclass(slots=True, eq=False)
class _Measure:
    """What the mesh saw in one slot."""

    slot: Slot
    region: CropRegion
    crop: RgbImage
    landmarks: FloatArray
    presence: float


@dataclass(frozen=True, slots=True)
class _Shot:
    """The part of a shot that lies in the window.

    Attributes:
        numbers: Running numbers of its frames.
        keys: Key frames; when the shot began before the window, the first is the last frame before the window.
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
        measures = self._measured(frames, self._slots(frames))
        faces = self._faces(frames, measures)
        return tuple(
            replace(frame, faces=in_reading_order(faces[number]))
            for number, frame in frames.items()
        )

    def _slots(self, frames: dict[int, Frame]) -> list[Slot]:
        """Link what is detected on key frames; where each track's face is to be measured."""
        shots = _shots(frames)
        candidates = self._candidates(frames, shots)
        slots = []
        for shot in shots:
            if shot.is_new:
                self._linker.begin_shot()
            for key in shot.keys:
                if key in frames:
                    self._linker.see(key, candidates[key], self._measure_in(frames[key]))
            tracks = self._linker.tracks
            found = (slot_of(t, number, shot.keys) for number in shot.numbers for t in tracks)
            slots += [slot for slot in found if slot is not None]
        self._linker.trim()
        return slots

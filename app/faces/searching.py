"""Looks beyond the usual one, for those whom it misses in videos: who lies or hangs, and who is small.

The usual look is upright and 640 pixels wide. The others cost too much for every frame. While nobody is followed,
every other look is half as wide, at a quarter of the cost, so that only who is small waits for the next; and there are
quarter turns, small: all when a shot begins, then one every other second. A look at twice the size comes when a
shot begins and every few seconds. Whoever is found so is then followed by the mesh, which does not mind; only now and
then the look that found a face is repeated, so that the track does not end.
"""

from collections.abc import Callable, Sequence

import numpy as np

from app.core.picture import Picture
from app.core.types import Face, Frame
from app.faces.detector import FaceDetector, in_reading_order
from app.faces.turning import surest, turned_looks

_QUARTERS_DEG = (90, 180, 270)
_SMALL_PX = 320
_USUAL_PX = 640
_WIDE_PX = 1280
_WIDE_FROM_PX = 800
"""Smaller pictures gain nothing from the wide look."""
_CLEAR_SCORE = 0.9
"""Upside down a face may score 0.85, upright with its key points in the wrong places."""
_MIN_WIDE_SCORE = 0.8
_TURN_EVERY_S = 2.0
_AGAIN_EVERY_S = 0.4
_WIDE_EVERY_S = 4.0
_WIDE_IDLE_S = 10.0
"""While nobody is followed; such a stretch should cost little more than encoding it."""
_WIDE_AGAIN_S = 1.2
"""Less than a track goes on without its detector, see `Patience.coast`."""


class Searcher:
    """Looks at the key frames of one video, in the usual way and beyond.

    Args:
        detector: One for videos.
    """

    def __init__(self, detector: FaceDetector) -> None:
        self._detector = detector
        self._next_turn = 0
        self._glances = 0
        self._turned_s = -np.inf
        self._wide_s = -np.inf
        self._wide_helps = False

    def detect(self, frames: Sequence[Frame], rolls_rad: Sequence[float]) -> list[tuple[Face, ...]]:
        """Find the faces of key frames.

        Args:
            frames: In order of time.
            rolls_rad: How far each face that is followed is turned; none while nobody is.

        Returns:
            One tuple a frame, in reading order.
        """
        found = self._detector.detect([frame.picture for frame in frames])
        return [
            self._with_more(frame, faces, rolls_rad)
            for frame, faces in zip(frames, found, strict=True)
        ]

    def glance(self, frames: Sequence[Frame]) -> list[tuple[Face, ...]]:
        """Find the faces of frames, none of them a shot's first, while nobody is followed; else as `detect`."""
        return [faces for frame in frames for faces in self._glanced(frame)]

    def _glanced(self, frame: Frame) -> list[tuple[Face, ...]]:
        self._glances += 1
        if self._glances % 2 == 0:
            return self.detect([frame], ())
        (found,) = self._detector.detect([frame.picture], sides_px=(_SMALL_PX,))
        return [self._with_more(frame, found, ())]

    def _with_more(
        self, frame: Frame, usual: tuple[Face, ...], rolls_rad: Sequence[float]
    ) -> tuple[Face, ...]:
        wide_s = _WIDE_EVERY_S if rolls_rad else _WIDE_IDLE_S
        more = [
            *self._turned(frame, usual, rolls_rad),
            *self._wide(frame, usual, _WIDE_AGAIN_S if self._wide_helps else wide_s),
        ]
        return in_reading_order(surest([*usual, *more])) if more else usual

    def _turned(
        self, frame: Frame, usual: Sequence[Face], rolls_rad: Sequence[float]
    ) -> list[Face]:
        passed_s = frame.time_s - self._turned_s
        degrees: tuple[int, ...]
        if lying := sorted({_quarter_deg(roll) for roll in rolls_rad} - {0}):
            degrees, side_px, is_due = tuple(lying), _USUAL_PX, passed_s >= _AGAIN_EVERY_S
        else:
            is_clear = bool(rolls_rad) or any(face.det_score >= _CLEAR_SCORE for face in usual)
            degrees = _QUARTERS_DEG if frame.is_cut else (_QUARTERS_DEG[self._next_turn],)
            is_due = not is_clear and (frame.is_cut or passed_s >= _TURN_EVERY_S)
            side_px = _SMALL_PX
        if not is_due:
            return []
        self._turned_s = frame.time_s
        found = turned_looks(self._detector, frame.picture, degrees, side_px)
        if len(degrees) == 1 and not lying and not found:
            self._next_turn = (self._next_turn + 1) % len(_QUARTERS_DEG)
        return found

    def _wide(self, frame: Frame, usual: Sequence[Face], every_s: float) -> list[Face]:
        is_due = frame.time_s - self._wide_s >= every_s
        if max(frame.picture.size_wh) < _WIDE_FROM_PX or not (frame.is_cut or is_due):
            return []
        self._wide_s = frame.time_s
        (found,) = self._detector.detect([frame.picture], sides_px=(_WIDE_PX,))
        more = [face for face in found if face.det_score >= _MIN_WIDE_SCORE]
        self._wide_helps = _is_gain(usual, surest([*usual, *more]))
        return more if self._wide_helps else []


def _is_gain(before: Sequence[Face], after: Sequence[Face]) -> bool:
    """True when there is one face more, or one clear that was doubtful."""

    def clear(faces: Sequence[Face]) -> int:
        return sum(face.det_score >= _CLEAR_SCORE for face in faces)

    return len(after) > len(before) or clear(after) > clear(before)


def _quarter_deg(roll_rad: float) -> int:
    """The quarter turn, counterclockwise, that brings a face nearest to upright."""
    return round(roll_rad / (np.pi / 2)) % 4 * 90


def detect_sparsely(
    detector: FaceDetector,
) -> Callable[[Sequence[Picture]], list[tuple[Face, ...]]]:
    """A way to look at single frames of a video, with time for each: wide, and turned where nobody is seen clearly."""

    def detect(pictures: Sequence[Picture]) -> list[tuple[Face, ...]]:
        found = detector.detect(pictures, sides_px=(_USUAL_PX, _WIDE_PX))
        return [
            faces
            if any(face.det_score >= _CLEAR_SCORE for face in faces)
            else in_reading_order(
                surest([*faces, *turned_looks(detector, picture, _QUARTERS_DEG, _USUAL_PX)])
            )
            for picture, faces in zip(pictures, found, strict=True)
        ]

    return detect

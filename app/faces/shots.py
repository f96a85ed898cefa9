"""Where one shot ends and the next begins."""

from dataclasses import replace

import cv2
import numpy as np

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Window

_SIDE_PX = 32
_SAME_SHOT = 0.45
"""Correlation of neighboring frames' thumbnails: true cuts of the test clips lie below 0.26, the fastest pans
(8 % of the width a frame) at 0.59 and above."""
_BLANK_STD = 4.0
"""Thumbnails that vary less, in 8-bit levels, are black or white frames."""


class CutFinder:
    """Marks the first frame of every shot; keeps what it must know of the frames before.

    Thumbnails are compared by correlation, which a change of brightness or contrast leaves alone. A frame without
    structure (black, or the white of a flash) is never a cut, and the frame after it is compared with the last one
    that had structure: so a flash is no cut, and neither is a fade to black and back.
    """

    def __init__(self) -> None:
        self._last: FloatArray | None = None
        self._has_begun = False

    def mark(self, window: Window) -> Window:
        """The window with `is_cut` set where a shot begins; the very first frame begins one."""
        return tuple(
            replace(frame, is_cut=frame.is_cut or is_cut)
            for frame, is_cut in zip(
                window, [self._is_cut(frame.picture) for frame in window], strict=True
            )
        )

    def _is_cut(self, picture: Picture) -> bool:
        small = tiny_gray(picture)
        is_first, self._has_begun = not self._has_begun, True
        if small.std() < _BLANK_STD:
            return is_first
        last, self._last = self._last, small
        return is_first or (last is not None and correlation(last, small) < _SAME_SHOT)


def tiny_gray(picture: Picture) -> FloatArray:
    """The picture's brightness as `(32, 32)` float32, 0 to 255.

    Rows and columns are skipped before averaging: at 4K an exact average would cost as much as a detection.
    """
    plane = picture.planes[0]
    gray = plane[..., 1] if plane.ndim == 3 else plane
    step = max(1, min(gray.shape) // (2 * _SIDE_PX))
    thin = np.ascontiguousarray(gray[::step, ::step]).astype(np.float32)
    thin *= 255.0 / ((1 << picture.pixel_format.bits) - 1)
    return np.asarray(cv2.resize(thin, (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA))


def correlation(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation of two thumbnails, -1 to 1."""
    da, db = a - a.mean(), b - b.mean()
    return float((da * db).sum() / max(float(np.sqrt((da * da).sum() * (db * db).sum())), 1e-6))

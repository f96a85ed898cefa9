"""A drawn face, nobody's, on which conversions are proven.

The detector must find it and the mesh must fit it, on any machine, without a photo of a person in the
repository. Ellipses with skin, hair, eyes, nose and mouth in the usual places are enough for both: YuNet gives
it 0.93, MediaPipe's own detector 0.91.
"""

from typing import NamedTuple

import cv2
import numpy as np

from app.core.types import RgbImage

SIDE_PX = 256
_SUPERSAMPLING = 4

Color = tuple[int, int, int]
Point = tuple[float, float]

_FULL_TURN = (0, 360)
_SKIN, _SHADE, _HAIR, _LINE = (222, 180, 152), (200, 155, 128), (52, 40, 34), (60, 40, 34)


class Ellipse(NamedTuple):
    """An ellipse or an arc; lengths are parts of the picture's side, angles degrees, clockwise from the right.

    Attributes:
        axes: Half axes, across and down.
        thickness: Of the line; 0 fills.
    """

    center: Point
    axes: Point
    color: Color
    arc: tuple[int, int] = _FULL_TURN
    thickness: float = 0.0


_HEAD = (
    Ellipse((0.5, 0.42), (0.30, 0.36), _HAIR),
    Ellipse((0.5, 0.95), (0.16, 0.25), (190, 150, 125)),
    Ellipse((0.5, 1.12), (0.45, 0.20), (70, 80, 120)),
    Ellipse((0.5, 0.52), (0.235, 0.31), _SKIN),
    Ellipse((0.5, 0.30), (0.20, 0.12), _HAIR, (180, 360)),
)
_SIDE = (
    Ellipse((0.735, 0.52), (0.03, 0.065), (212, 168, 140)),
    Ellipse((0.600, 0.445), (0.062, 0.045), _SHADE),
    Ellipse((0.600, 0.45), (0.05, 0.024), (245, 242, 240)),
    Ellipse((0.600, 0.448), (0.022, 0.023), (90, 62, 40)),
    Ellipse((0.600, 0.448), (0.011, 0.012), (15, 12, 12)),
    Ellipse((0.604, 0.442), (0.004, 0.004), (255, 255, 255)),
    Ellipse((0.600, 0.455), (0.054, 0.03), _LINE, (190, 350), 0.007),
    Ellipse((0.605, 0.43), (0.07, 0.04), _LINE, (200, 335), 0.016),
    Ellipse((0.630, 0.60), (0.06, 0.05), (226, 172, 148)),
    Ellipse((0.522, 0.602), (0.012, 0.008), (120, 78, 66)),
    Ellipse((0.535, 0.592), (0.018, 0.02), (196, 148, 122), (270, 480), 0.006),
)
"""Ear, eye, brow, cheek and nostril at the viewer's right; the left half is their mirror image."""
_MIDDLE = (
    Ellipse((0.472, 0.52), (0.006, 0.055), _SHADE),
    Ellipse((0.512, 0.51), (0.008, 0.055), (236, 200, 174)),
    Ellipse((0.5, 0.61), (0.035, 0.012), (190, 140, 118), (20, 160), 0.006),
    Ellipse((0.5, 0.702), (0.078, 0.022), (176, 92, 88)),
    Ellipse((0.5, 0.716), (0.06, 0.026), (190, 104, 98)),
    Ellipse((0.5, 0.702), (0.076, 0.003), (120, 56, 54)),
    Ellipse((0.5, 0.765), (0.05, 0.012), (204, 158, 132), (200, 340), 0.008),
)


def draw() -> RgbImage:
    """Draw the face: `(256, 256, 3)` uint8 RGB, eyes level at 45 % of the height."""
    side = SIDE_PX * _SUPERSAMPLING
    canvas = np.full((side, side, 3), (168, 176, 186), np.uint8)
    for ellipse in (*_HEAD, *_SIDE, *map(_mirrored, _SIDE), *_MIDDLE):
        _paint_inplace(canvas, ellipse)
    soft = cv2.GaussianBlur(canvas, (0, 0), 0.012 * side).astype(np.float32)
    lit = (0.55 * soft + 0.45 * canvas) * _light(side)
    small = cv2.resize(lit, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA)
    return np.asarray(np.clip(np.rint(small), 0, 255), np.uint8)


def _light(side: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Light from the left, so that the two halves of the face differ."""
    across = (np.arange(side, dtype=np.float32) / side - 0.5)[None, :, None]
    return np.asarray(1.05 - 0.35 * np.clip(across, -0.3, 0.3) - 0.9 * across**2, np.float32)


def _mirrored(ellipse: Ellipse) -> Ellipse:
    start, end = ellipse.arc
    x, y = ellipse.center
    return ellipse._replace(center=(1 - x, y), arc=(180 - end, 180 - start))


def _paint_inplace(canvas: RgbImage, ellipse: Ellipse) -> None:
    side = canvas.shape[0]
    (x, y), (across, down) = (
        tuple(round(value * side) for value in pair) for pair in (ellipse.center, ellipse.axes)
    )
    start, end = ellipse.arc
    thickness = round(ellipse.thickness * side) or cv2.FILLED
    cv2.ellipse(
        canvas, (x, y), (across, down), 0, start, end, ellipse.color, thickness, cv2.LINE_AA
    )

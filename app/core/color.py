"""Colour tags of a picture, and the matrices between its planes and RGB.

Code points are those of ITU-T H.273 (which FFmpeg uses too): matrix 1 is BT.709, 5 and 6 are BT.601,
9 is BT.2020 non-constant luminance, 0 is RGB, 2 is "unspecified".
"""

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

UNSPECIFIED = 2
BT709 = 1
BT601 = 6
BT2020 = 9

_LUMA_WEIGHTS = {
    1: (0.2126, 0.0722),
    4: (0.30, 0.11),
    5: (0.299, 0.114),
    6: (0.299, 0.114),
    7: (0.212, 0.087),
    9: (0.2627, 0.0593),
    10: (0.2627, 0.0593),
}
_HD_HEIGHT_PX = 720


class ColorConversion(Protocol):
    """Between a picture's own RGB, which a color profile defines, and sRGB, which networks know."""

    def to_srgb(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """`(h, w, 3)` uint8 in the picture's own RGB, as sRGB of the same shape; its own memory."""
        ...

    def from_srgb(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The way back; colors that the picture's RGB lacks become the nearest that it has."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ColorTags:
    """What a stream says of its colours, H.273 code points; `None` for the range means "not said"."""

    matrix: int = UNSPECIFIED
    is_full_range: bool | None = None
    primaries: int = UNSPECIFIED
    transfer: int = UNSPECIFIED

    def effective_matrix(self, height_px: int) -> int:
        """The matrix to compute with: as tagged, else BT.709 for HD and BT.601 below, as players do."""
        if self.matrix in _LUMA_WEIGHTS:
            return self.matrix
        return BT709 if height_px >= _HD_HEIGHT_PX else BT601


@cache
def yuv_to_rgb_matrix(matrix: int, *, is_full_range: bool, bits: int) -> NDArray[np.float64]:
    """The `(3, 4)` affine from Y'CbCr code values to R'G'B' in 0..255, read-only.

    Source: ITU-R BT.601-7, BT.709-6 and BT.2020-2, quantisation of the digital signals.
    """
    kr, kb = _LUMA_WEIGHTS[matrix]
    kg = 1.0 - kr - kb
    unit = float(1 << (bits - 8))
    top = float((1 << bits) - 1)
    luma_span, chroma_span, black = (
        (top, top, 0.0) if is_full_range else (219 * unit, 224 * unit, 16 * unit)
    )
    from_unit = np.array(
        [
            [1.0, 0.0, 2 * (1 - kr)],
            [1.0, -2 * (1 - kb) * kb / kg, -2 * (1 - kr) * kr / kg],
            [1.0, 2 * (1 - kb), 0.0],
        ]
    )
    linear = 255.0 * from_unit / np.array([luma_span, chroma_span, chroma_span])
    offset = -linear @ np.array([black, 128 * unit, 128 * unit])
    return _frozen(np.column_stack([linear, offset]))


@cache
def rgb_to_yuv_matrix(matrix: int, *, is_full_range: bool, bits: int) -> NDArray[np.float64]:
    """The `(3, 4)` affine from R'G'B' in 0..255 to Y'CbCr code values, read-only; inverse of `yuv_to_rgb_matrix`."""
    forward = yuv_to_rgb_matrix(matrix, is_full_range=is_full_range, bits=bits)
    linear = np.linalg.inv(forward[:, :3])
    return _frozen(np.column_stack([linear, -linear @ forward[:, 3]]))


def _frozen(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix.flags.writeable = False
    return matrix

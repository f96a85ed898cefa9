"""Squares of a picture, turned and enlarged, straight from its planes.

Only the square is converted, and no plane is scaled first: luma and chroma are sampled where the square's pixels lie.
That is for squares that are not smaller than their part of the picture; a square that shrinks has to average.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.picture import Picture
from app.core.planes import Plane


def warped(picture: Picture, affine: NDArray[np.float32], side_px: int) -> NDArray[np.uint8]:
    """A square of a Y'CbCr picture as RGB; beyond the picture its edge pixels are repeated.

    Args:
        picture: Of the family `yuv`.
        affine: `(2, 3)` from picture pixels to those of the square; does not shrink.
        side_px: Side `S` of the square.

    Returns:
        `(S, S, 3)` uint8 RGB.
    """
    luma, *chroma = picture.planes[:3]
    sub = _of_chroma(affine, picture.pixel_format.chroma_shift_xy)
    merged = cv2.merge(
        [_sampled(luma, affine, side_px), *(_sampled(c, sub, side_px) for c in chroma)]
    )
    own = picture.rgb_of(merged)
    return own if picture.conversion is None else picture.conversion.to_srgb(own)


def _of_chroma(affine: NDArray[np.float32], shift_xy: tuple[int, int]) -> NDArray[np.float32]:
    """The affine from a chroma plane, whose samples lie in the middle of the pixels that they are of."""
    step = np.array([1 << shift for shift in shift_xy], np.float32)
    shift = affine[:, :2] @ ((step - 1) / 2) + affine[:, 2]
    return np.column_stack([affine[:, :2] * step, shift])


def _sampled(plane: Plane, affine: NDArray[np.float32], side_px: int) -> Plane:
    return cv2.warpAffine(  # type: ignore[return-value]
        plane,
        affine,
        (side_px, side_px),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )

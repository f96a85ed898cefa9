"""Squares cut out of a picture for a network: any turn and scale, area-true when they shrink."""

import cv2
import numpy as np

from app.core.geometry import FloatArray, invert_affine, transform_points
from app.core.picture import Picture, PixelBox
from app.core.types import RgbImage
from app.core.warping import warped

_MARGIN_PX = 2
"""What bilinear sampling may ask for beyond the square."""


def sample_square(picture: Picture, affine: FloatArray, side_px: int) -> RgbImage:
    """Cut a square out of a picture; beyond the picture its edge pixels are repeated.

    A square that is larger in the picture than in the crop is first read at the crop's scale, averaging areas, and
    then only turned and shifted: a large face must not alias, or its landmarks tremble.

    Args:
        picture: Any picture.
        affine: `(2, 3)` from picture pixels to crop pixels, a similarity.
        side_px: Side `S` of the crop.

    Returns:
        `(S, S, 3)` uint8 RGB.
    """
    if picture.pixel_format.family == "yuv":
        return warped(picture, affine, side_px)
    box = _covering_box(affine, side_px, picture.size_wh)
    scale = min(1.0, float(np.sqrt(abs(np.linalg.det(affine[:, :2])))))
    w, h = box.size_wh
    read_wh = max(1, round(w * scale)), max(1, round(h * scale))
    patch = picture.read(box, read_wh)
    from_patch = _patch_to_picture(box, read_wh)
    matrix = affine[:, :2] @ from_patch[:, :2]
    shift = affine[:, :2] @ from_patch[:, 2] + affine[:, 2]
    crop = cv2.warpAffine(
        patch,
        np.column_stack([matrix, shift]),
        (side_px, side_px),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.asarray(crop, dtype=np.uint8)


def _covering_box(affine: FloatArray, side_px: int, size_wh: tuple[int, int]) -> PixelBox:
    """The part of the picture that the square covers; its nearest pixels where it lies outside."""
    corners = np.array([[0, 0], [side_px, 0], [0, side_px], [side_px, side_px]], np.float32)
    there = transform_points(corners, invert_affine(affine))
    x0, y0 = np.floor(there.min(0)).astype(int) - _MARGIN_PX
    x1, y1 = np.ceil(there.max(0)).astype(int) + _MARGIN_PX
    w, h = size_wh
    left, top = min(max(int(x0), 0), w - 1), min(max(int(y0), 0), h - 1)
    return PixelBox(left, top, max(min(int(x1), w), left + 1), max(min(int(y1), h), top + 1))


def _patch_to_picture(box: PixelBox, read_wh: tuple[int, int]) -> FloatArray:
    """From pixel centers of a scaled patch to those of the picture."""
    step_x, step_y = box.size_wh[0] / read_wh[0], box.size_wh[1] / read_wh[1]
    return np.array(
        [
            [step_x, 0, box.x0 + (step_x - 1) / 2],
            [0, step_y, box.y0 + (step_y - 1) / 2],
        ],
        np.float32,
    )

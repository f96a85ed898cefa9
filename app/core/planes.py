"""Arithmetic on single planes: scale, shorten, change."""

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.uint8] | NDArray[np.uint16]


def add_change_inplace(part: Plane, delta: NDArray[np.float32], bits: int) -> None:
    """Add a change in place, rounded and kept in range; a zero change touches nothing."""
    depth = cv2.CV_8U if bits <= 8 else cv2.CV_16U
    total = cv2.add(part, np.ascontiguousarray(delta), dtype=depth)
    np.minimum(total, (1 << bits) - 1, out=part)


def padded_to_chroma(delta: NDArray[np.float32], shift_x: int, shift_y: int) -> NDArray[np.float32]:
    """Repeat the last row or column where an odd size leaves half a chroma sample."""
    h, w = delta.shape[:2]
    pad_x, pad_y = -w % (1 << shift_x), -h % (1 << shift_y)
    if not (pad_x or pad_y):
        return delta
    return np.pad(delta, ((0, pad_y), (0, pad_x), (0, 0)), mode="edge")


def resized(image: Plane, size_wh: tuple[int, int], *, is_fine: bool = True) -> Plane:
    """Scaled, area-true where it shrinks; chroma, which is not fine, only where it shrinks below half.

    From 960 x 540 to 640 x 360 an exact average takes six times as long, and is most of a 1080p thumbnail.
    """
    h, w = image.shape[:2]
    if (w, h) == size_wh:
        return image
    reach = 1 if is_fine else 2
    shrinks = reach * size_wh[0] < w or reach * size_wh[1] < h
    flag = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return cast("Plane", cv2.resize(image, size_wh, interpolation=flag))


def to_8_bits(image: NDArray[np.generic], bits: int) -> NDArray[np.uint8]:
    """The same tones in 0 to 255."""
    if bits == 8:
        return np.asarray(image, dtype=np.uint8)
    top = float((1 << bits) - 1)
    return np.asarray(np.rint(image.astype(np.float32) * (255.0 / top)), dtype=np.uint8)


def stretched(plane: Plane, bits: int) -> NDArray[np.uint16]:
    """Values of fewer bits over the whole range of 16; `squeezed` is the way back, value for value."""
    top = (1 << bits) - 1
    return ((plane.astype(np.uint32) * 65_535 + top // 2) // top).astype(np.uint16)


def squeezed(plane: Plane, bits: int) -> NDArray[np.uint16]:
    """Values of 16 bits in fewer, rounded."""
    top = (1 << bits) - 1
    return ((plane.astype(np.uint32) * top + 32_767) // 65_535).astype(np.uint16)

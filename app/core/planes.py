"""Arithmetic on single planes: scale, shorten, change."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

import cv2
import numpy as np
from cv2.typing import MatLike
from numpy.typing import NDArray

Plane = NDArray[np.uint8] | NDArray[np.uint16]
T = TypeVar("T")

_BAND_BYTES, _PIXEL_BYTES, _BAND_STEP = 1 << 18, 12, 8
"""A band's change in three float32 a pixel; of a 4K face whole, each step would go through 5 MB of fresh memory."""

_PLACES = 4
"""So many rows and columns are looked at for each pixel of a glimpse."""


def add_change_inplace(part: Plane, delta: MatLike, bits: int) -> None:
    """Add a change in place, rounded and kept in range; a zero change touches nothing."""
    depth = cv2.CV_8U if bits <= 8 else cv2.CV_16U
    total = cv2.add(part, np.ascontiguousarray(delta), dtype=depth)
    np.minimum(total, (1 << bits) - 1, out=part)


def multiplied(rgb: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Three channels `(h, w, 3)` times one weight a pixel, `(h, w)`; four times as fast as by broadcasting."""
    plane = np.ascontiguousarray(weights, np.float32)
    return np.asarray(cv2.multiply(rgb, cv2.merge([plane, plane, plane])), np.float32)


def part_of(plane: Plane, box_xyxy: tuple[int, int, int, int]) -> Plane:
    """The part of a plane in a box, without a copy."""
    x0, y0, x1, y1 = box_xyxy
    return plane[y0:y1, x0:x1]


def one_ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each given out once the one behind it has been made."""
    held: deque[T] = deque()
    for item in items:
        held.append(item)
        if len(held) > 1:
            yield held.popleft()
    yield from held


def row_bands(size_wh: tuple[int, int]) -> Iterator[slice]:
    """Rows of an area that are worked on together: a whole number of chroma samples, and few enough for the cache."""
    w, h = size_wh
    rows = max(_BAND_BYTES // (w * _PIXEL_BYTES) // _BAND_STEP, 1) * _BAND_STEP
    return (slice(start, min(start + rows, h)) for start in range(0, h, rows))


def padded_to_chroma(delta: MatLike, shift_x: int, shift_y: int) -> MatLike:
    """Repeat the last row or column of a plane where an odd size leaves half a chroma sample."""
    h, w = delta.shape[:2]
    pad_x, pad_y = -w % (1 << shift_x), -h % (1 << shift_y)
    if not (pad_x or pad_y):
        return delta
    return np.pad(delta, ((0, pad_y), (0, pad_x)), mode="edge")


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


def thinned(plane: Plane, side_px: int) -> Plane:
    """Rows and columns left out, so that four of each are left for every pixel of a side."""
    h, w = plane.shape[:2]
    step_x, step_y = (max(1, length // (_PLACES * side_px)) for length in (w, h))
    return cast("Plane", np.ascontiguousarray(plane[::step_y, ::step_x]))


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

"""An animated GIF in the making: of each frame only what changes is written.

A frame is held back until the next one is there, since only then is it known whether the picture may stay where it is:
where an opaque pixel has to become see-through, the picture must be taken away as a whole.

Source: GIF89a specification; XMP specification part 3.
"""

import io
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from app.core.picture import PixelBox
from app.media.animation_chunks import GIF_LOOP_ID, GIF_XMP_ID, GIF_XMP_TAIL, gif_blocks

Rgba = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_OPAQUE_FROM: Final = 128
_MOST_COLORS: Final = 256
_STAY, _TAKE_AWAY = 1, 2
"""What happens to a frame when its time is over."""

_UNSEEN: Final = 3
"""Where colors are lost anyway, a sample that moves no farther than this from the one that was drawn stays as it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Indexed:
    """A picture of at most 256 colors.

    Attributes:
        image: With a palette.
        see_through: The index that is see-through, used or not; `None` where 256 colors leave none.
        is_exact: Every visible pixel has its own color.
    """

    image: Image.Image
    see_through: int | None
    is_exact: bool


def gif_indexed(pixels: NDArray[np.uint8], visible: Mask | None = None) -> Indexed:
    """A picture of at most 256 colors: its own ones where they suffice, else the nearest, dithered.

    Args:
        pixels: `(h, w, 3 or 4)`, RGB with or without alpha.
        visible: `(h, w)`; the other pixels are see-through. By their alpha without it.
    """
    if visible is None:
        visible = _opaque(pixels)
    rgb = np.ascontiguousarray(pixels[..., :3])
    found = _exactly_indexed(rgb, visible, _MOST_COLORS - 1)
    if found is None and visible.all():
        found = _exactly_indexed(rgb, visible, _MOST_COLORS)
    indices, palette = found or _nearly_indexed(rgb, visible, _MOST_COLORS - 1)
    # Readers clear to see-through only behind a frame that has such an index, used or not.
    see_through = len(palette) // 3 if len(palette) < 3 * _MOST_COLORS else None
    if see_through is not None:
        indices[~visible] = see_through
        palette += bytes(3)
    image = Image.fromarray(indices)
    image.putpalette(palette)
    return Indexed(image=image, see_through=see_through, is_exact=found is not None)


def _opaque(pixels: NDArray[np.uint8]) -> Mask:
    if pixels.shape[2] == 4:
        return np.asarray(pixels[..., 3] >= _OPAQUE_FROM)
    return np.ones(pixels.shape[:2], bool)


def _exactly_indexed(
    rgb: NDArray[np.uint8], visible: Mask, most: int
) -> tuple[NDArray[np.uint8], bytes] | None:
    packed = rgb.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    colors, found = np.unique(packed[visible], return_inverse=True)
    if len(colors) > most:
        return None
    palette = np.stack([colors >> 16, colors >> 8 & 255, colors & 255], axis=-1)
    indices = np.zeros(visible.shape, np.uint8)
    indices[visible] = found
    return indices, palette.astype(np.uint8).tobytes()


def _nearly_indexed(
    rgb: NDArray[np.uint8], visible: Mask, most: int
) -> tuple[NDArray[np.uint8], bytes]:
    seen = Image.fromarray(np.ascontiguousarray(rgb[visible][None]))
    palette = seen.quantize(most, method=Image.Quantize.MEDIANCUT)
    dithered = Image.fromarray(rgb).quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    return np.array(dithered), bytes(dithered.getpalette() or ())[: 3 * most]


class GifFile:
    """A GIF with a palette of its own for each frame."""

    tick_s = Fraction(1, 100)
    least_ticks = 2

    def __init__(self, file: BinaryIO, size_wh: tuple[int, int], *, plays: int, xmp: bytes) -> None:
        self._file = file
        w, h = size_wh
        self._drawn: Rgba = np.zeros((h, w, 4), np.uint8)
        self._pending: tuple[Rgba, int] | None = None
        self._begins_see_through = False
        file.write(b"GIF89a" + struct.pack("<HHBBB", w, h, 0x70, 0, 0))
        if plays != 1:
            repeats = min(max(plays - 1, 0), 0xFFFF)
            file.write(b"\x21\xff\x0b" + GIF_LOOP_ID + struct.pack("<BBHB", 3, 1, repeats, 0))
        file.write(b"\x21\xff\x0b" + GIF_XMP_ID + xmp + GIF_XMP_TAIL)

    def add(self, pixels: NDArray[np.uint8] | NDArray[np.uint16], ticks: int) -> None:
        """Take a frame, and write the one before it."""
        frame = _with_clear_alpha(np.asarray(pixels, np.uint8))
        if self._pending is None:
            self._begins_see_through = bool((frame[..., 3] == 0).any())
        else:
            shown = self._pending[0]
            self._write_pending(stays=not ((shown[..., 3] > 0) & (frame[..., 3] == 0)).any())
        self._pending = frame, ticks

    def finish(self) -> None:
        """Write the last frame and the end mark."""
        if self._pending is not None:
            self._write_pending(stays=not self._begins_see_through)
        self._file.write(b"\x3b")

    def _write_pending(self, *, stays: bool) -> None:
        assert self._pending is not None
        frame, ticks = self._pending
        changed = self._changed(frame, at_most=0)
        # What is taken away has to hold all that can be seen.
        box = _box_of(changed if stays else changed | (frame[..., 3] > 0))
        part = np.s_[box.y0 : box.y1, box.x0 : box.x1]
        indexed = gif_indexed(frame[part], changed[part])
        if not indexed.is_exact:
            indexed, changed = self._indexed_where_lossy(frame, box)
        self._write(indexed, box, ticks, _STAY if stays else _TAKE_AWAY)
        self._drawn[changed] = frame[changed]
        if not stays:
            self._drawn[:] = 0

    def _indexed_where_lossy(self, frame: Rgba, box: PixelBox) -> tuple[Indexed, Mask]:
        """All pixels of the box if 256 colors suffice for them, else those that visibly change, nearly."""
        part = np.s_[box.y0 : box.y1, box.x0 : box.x1]
        whole = np.zeros(frame.shape[:2], bool)
        whole[part] = frame[part][..., 3] > 0
        if whole[part].all():
            indexed = gif_indexed(frame[part], whole[part])
            if indexed.is_exact:
                return indexed, whole
        changed = self._changed(frame, at_most=_UNSEEN)
        return gif_indexed(frame[part], changed[part]), changed

    def _changed(self, frame: Rgba, *, at_most: int) -> Mask:
        """Opaque pixels that are not there already; see-through ones are never drawn."""
        distance = _distance(frame, self._drawn).max(axis=2)
        return np.asarray((distance > at_most) & (frame[..., 3] > 0))

    def _write(self, indexed: Indexed, box: PixelBox, ticks: int, disposal: int) -> None:
        buffer = io.BytesIO()
        see_through = indexed.see_through
        extra = {} if see_through is None else {"transparency": see_through}
        indexed.image.save(buffer, "GIF", optimize=False, interlace=0, **extra)
        data = buffer.getvalue()
        index = b"\0"
        for block in gif_blocks(data):
            if block.label == 0xF9:
                index = data[block.start + 4 : block.start + 5]
            elif block.label == 0:
                flags = disposal << 2 | (see_through is not None)
                control = struct.pack("<BBH", 4, flags, min(ticks, 0xFFFF))
                self._file.write(b"\x21\xf9" + control + index + b"\0")
                self._file.write(_placed(data, block.start, block.end, box))


def _distance(one: Rgba, other: Rgba) -> Rgba:
    """The distance of each sample."""
    return np.asarray(np.maximum(one, other) - np.minimum(one, other))


def _with_clear_alpha(pixels: NDArray[np.uint8]) -> Rgba:
    """RGBA whose alpha is all or nothing."""
    opaque = _opaque(pixels)
    return np.asarray(np.dstack([pixels[..., :3], np.where(opaque, 255, 0)]), np.uint8)


def _box_of(mask: Mask) -> PixelBox:
    """The smallest box around some pixels; the first pixel where there are none, since a frame has to be there."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return PixelBox(0, 0, 1, 1)
    return PixelBox(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)


def _placed(data: bytes, start: int, end: int, box: PixelBox) -> bytes:
    """A picture block at its place, with the file's palette as its own."""
    palette_bits = data[10] & 7
    palette = data[13 : 13 + (3 << (palette_bits + 1))]
    head = (
        data[start : start + 1] + struct.pack("<HH", box.x0, box.y0) + data[start + 5 : start + 9]
    )
    return head + bytes([0x80 | palette_bits]) + palette + data[start + 10 : end]

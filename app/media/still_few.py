"""Pictures of few colors: gray of 1, 2 or 4 bits, and palettes; they go back as what they were if that loses nothing.

A changed face has more shades than such a picture holds, so usually the result has 8 bits; that is said. Dithering the
face into the few colors that are there would keep the number of bits and spoil the face.

Source: PNG specification, 11.2 (header, palette), 11.3.1 (transparency).
"""

import struct
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from app.core.planes import Plane
from app.core.types import Notice

DEPTH_RAISED = Notice(
    "still.depth_raised",
    "the input holds few shades or a palette; the changed face has more, so the result has 8 bits a channel",
)

_GRAY, _PALETTE = 0, 3
_ROWS = 256
"""In strips: what has got more colors is known after some of them, and nothing of the whole size is held twice."""
_OPAQUE = np.uint32(0xFF00_0000)


@dataclass(frozen=True, kw_only=True, slots=True)
class FewColors:
    """How a file with few colors holds them.

    Attributes:
        bits: Of one pixel, 1 to 8.
        has_palette: The numbers of the pixels name colors, and are no shades of gray.
    """

    bits: int
    has_palette: bool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FewColorsPng:
    """What a PNG needs to hold a picture in few bits.

    Attributes:
        values: `(H, W)` uint8, what each pixel is numbered.
        color_type: As in the header.
        palette: Red, green and blue of each number; empty for gray.
        clear: Content of the transparency chunk; empty where nothing is transparent.
    """

    values: NDArray[np.uint8]
    bits: int
    color_type: int
    palette: bytes = b""
    clear: bytes = b""

    def rows(self) -> NDArray[np.uint8]:
        """`(H, bytes)` uint8: the pixels, several a byte, the first in the highest bits."""
        per_byte = 8 // self.bits
        h, w = self.values.shape
        padded = np.pad(self.values, ((0, 0), (0, -w % per_byte)))
        shifts = np.arange(per_byte, dtype=np.uint8)[::-1] * self.bits
        parts = padded.reshape(h, -1, per_byte) << shifts
        return np.asarray(np.bitwise_or.reduce(parts, axis=2), np.uint8)


def in_few_colors(pixels: Plane, few: FewColors) -> FewColorsPng | None:
    """The picture in as few bits as its file had; `None` where it has colors that do not fit.

    Args:
        pixels: `(H, W)` or `(H, W, 2)` for gray, `(H, W, 3 or 4)` for a palette; uint8, alpha last.
        few: How the file held them.
    """
    if pixels.dtype != np.uint8:
        return None
    if few.has_palette:
        return _in_palette(pixels, few.bits) if pixels.ndim == 3 and pixels.shape[2] > 2 else None
    return _in_gray(pixels, few.bits) if pixels.ndim == 2 or pixels.shape[2] == 2 else None


def _in_gray(pixels: Plane, bits: int) -> FewColorsPng | None:
    step = np.uint8(255 // ((1 << bits) - 1))
    gray = np.asarray(pixels if pixels.ndim == 2 else pixels[..., 0], np.uint8)
    values = np.asarray(gray // step, np.uint8)
    if not np.array_equal(values * step, gray):
        return None
    clear = b"" if pixels.ndim == 2 else _clear_value(values, pixels[..., 1], bits)
    if clear is None:
        return None
    return FewColorsPng(values=values, bits=bits, color_type=_GRAY, clear=clear)


def _clear_value(values: NDArray[np.uint8], alpha: Plane, bits: int) -> bytes | None:
    """The one value that is transparent, wherever it stands, as a PNG says it; `None` where it is not so simple.

    Where nothing is transparent, it is a value that no pixel has.
    """
    is_clear = alpha == 0
    if bool((alpha[~is_clear] != 255).any()):
        return None
    seen = set(np.unique(values[~is_clear]).tolist())
    clear = set(np.unique(values[is_clear]).tolist()) or {*range(1 << bits)} - seen
    if clear & seen or not clear or (is_clear.any() and len(clear) > 1):
        return None
    return struct.pack(">H", min(clear))


def _in_palette(pixels: Plane, bits: int) -> FewColorsPng | None:
    strips = [slice(top, top + _ROWS) for top in range(0, len(pixels), _ROWS)]
    colors = np.empty(0, np.uint32)
    for rows in strips:
        colors = np.union1d(colors, _numbers(pixels[rows]))
        if len(colors) > 1 << bits:
            return None
    values = np.empty(pixels.shape[:2], np.uint8)
    for rows in strips:
        values[rows] = np.searchsorted(colors, _numbers(pixels[rows]))
    # Alpha stands in the highest byte, so what is not opaque comes first, and only that needs an entry.
    # A picture with alpha keeps it also where nothing is transparent.
    see_through = max(int((colors < _OPAQUE).sum()), pixels.shape[2] - 3)
    shown = colors.astype(">u4").view(np.uint8).reshape(-1, 4)
    return FewColorsPng(
        values=values,
        bits=bits,
        color_type=_PALETTE,
        palette=shown[:, 1:].tobytes(),
        clear=shown[:see_through, 0].tobytes(),
    )


def _numbers(pixels: Plane) -> NDArray[np.uint32]:
    """One number a color: alpha, red, green, blue."""
    parts = pixels.astype(np.uint32)
    alpha = parts[..., 3] << 24 if pixels.shape[2] == 4 else _OPAQUE
    return cast(
        "NDArray[np.uint32]", alpha | parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
    )

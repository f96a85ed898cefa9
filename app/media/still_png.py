"""PNG files of 1 to 16 bits a channel, with every chunk placed by us.

Source: PNG specification, 5.3 (chunks), 9 (filters), 11 (chunk contents).
"""

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from app.core.planes import Plane
from app.media.still_few import FewColorsPng
from app.media.still_types import PngChunk, Still

_HEAD_BYTES = 33
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_SUB_FILTER = 1
_LEVEL = 6
_RGB_MATRIX = 0
_FULL_RANGE = 1
_PX_PER_M = 39.37007874


def encode_png(
    pixels: Plane, *, still: Still, xmp: bytes, few: FewColorsPng | None = None
) -> bytes:
    """A PNG of the pixels, with the still's color chunks, EXIF and an XMP packet.

    Args:
        pixels: `(H, W)` or `(H, W, 2 to 4)`, uint8 or uint16; the last of an even number of channels is alpha.
        still: Gives the metadata.
        xmp: The packet.
        few: The same pixels in few bits, where they are to be written so.
    """
    encoded = _pixels(pixels) if few is None else _few(few)
    extras = b"".join(_chunk(name, content) for name, content in _extras(still, xmp))
    return encoded[:_HEAD_BYTES] + extras + encoded[_HEAD_BYTES:]


def _pixels(pixels: Plane) -> bytes:
    return _deep(pixels) if pixels.dtype == np.uint16 else _plain(pixels)


def _plain(pixels: Plane) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=_LEVEL)
    return out.getvalue()


def _deep(pixels: Plane) -> bytes:
    """16 bits a channel: Pillow has them for gray only, OpenCV not for gray with alpha."""
    h, w = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    rows = pixels.reshape(h, w * channels).astype(">u2").view(np.uint8)
    filtered = np.empty((h, rows.shape[1] + 1), np.uint8)
    filtered[:, 0] = _SUB_FILTER
    filtered[:, 1:] = rows
    filtered[:, 1 + 2 * channels :] -= rows[:, : -2 * channels]
    head = struct.pack(">IIBBBBB", w, h, 16, _COLOR_TYPES[channels], 0, 0, 0)
    return _whole((b"IHDR", head), _body(filtered))


def _few(few: FewColorsPng) -> bytes:
    h, w = few.values.shape
    head = struct.pack(">IIBBBBB", w, h, few.bits, few.color_type, 0, 0, 0)
    # Without a filter: neighbors of few bits have no differences that are smaller than they are.
    rows = np.pad(few.rows(), ((0, 0), (1, 0)))
    colors = ((b"PLTE", few.palette), (b"tRNS", few.clear))
    return _whole((b"IHDR", head), *((n, c) for n, c in colors if c), _body(rows))


def _body(filtered: NDArray[np.uint8]) -> PngChunk:
    return b"IDAT", zlib.compress(filtered.data, _LEVEL)


def _whole(*chunks: PngChunk) -> bytes:
    encoded = b"".join(_chunk(name, content) for name, content in (*chunks, (b"IEND", b"")))
    return b"\x89PNG\r\n\x1a\n" + encoded


def _extras(still: Still, xmp: bytes) -> Iterator[PngChunk]:
    """What goes between the header and the pixels; colors first, as the order of chunks demands."""
    if still.png_chunks:
        yield from still.png_chunks
    else:
        if still.icc is not None:
            yield b"iCCP", b"icc\0\0" + zlib.compress(still.icc)
        if (tags := still.color_tags) is not None:
            yield b"cICP", bytes((tags.primaries, tags.transfer, _RGB_MATRIX, _FULL_RANGE))
        if still.dpi is not None:
            x, y = (round(value * _PX_PER_M) for value in still.dpi)
            yield b"pHYs", struct.pack(">IIB", x, y, 1)
    if still.exif:
        yield b"eXIf", still.exif.removeprefix(b"Exif\0\0")
    yield b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(name))
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)

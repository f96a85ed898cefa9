"""Animated WebP and PNG files in the making: each frame is encoded as a picture of its own and put in its place.

Every frame is whole and replaces the one before. The libraries' own writers of animations merge frames that are alike,
or hold all of them in memory; here as many come out as go in, and memory stays flat.

Sources: XMP specification part 3, the APNG specification, RFC 9649 (WebP).
"""

import io
import struct
import zlib
from collections.abc import Iterator
from fractions import Fraction
from typing import BinaryIO, Final, Literal, Protocol, cast

import av
import numpy as np
from av import VideoFrame
from av.video.codeccontext import VideoCodecContext
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import OutputError
from app.media.chunks import png_chunks, read_chunk, webp_chunks

AnimationFormat = Literal["gif", "webp", "apng"]
Pixels = NDArray[np.uint8] | NDArray[np.uint16]

_APNG_UNITS: Final = (10_000, 1000, 100, 10, 1)
_PNG_FORMATS: Final = {(1, 3): "rgb24", (1, 4): "rgba", (2, 3): "rgb48be", (2, 4): "rgba64be"}


class AnimationFile(Protocol):
    """A file that takes pictures one by one.

    Attributes:
        tick_s: Unit of the delays.
        least_ticks: Shortest delay that players keep.
    """

    tick_s: Fraction
    least_ticks: int

    def add(self, pixels: Pixels, ticks: int) -> None:
        """Append a frame.

        Args:
            pixels: `(h, w, 3 or 4)`, RGB with or without alpha; of one shape and type for all frames.
            ticks: How long it is shown.
        """
        ...

    def finish(self) -> None:
        """Write the end, and what is known only then."""
        ...


class WebpFile:
    """An animated WebP; XMP lies behind the frames, as the format wants it."""

    tick_s = Fraction(1, 1000)
    least_ticks = 1

    def __init__(
        self, file: BinaryIO, size_wh: tuple[int, int], *, plays: int, xmp: bytes, quality: int
    ) -> None:
        self._file = file
        self._size = _uint24(size_wh[0] - 1) + _uint24(size_wh[1] - 1)
        self._xmp = xmp
        self._quality = quality
        self._has_alpha = False
        file.write(b"RIFF\0\0\0\0WEBP" + _riff_chunk(b"VP8X", bytes(4) + self._size))
        file.write(_riff_chunk(b"ANIM", bytes(4) + struct.pack("<H", min(plays, 0xFFFF))))

    def add(self, pixels: Pixels, ticks: int) -> None:
        """Append a frame, lossless at quality 100; the colors behind see-through pixels are kept."""
        buffer = io.BytesIO()
        is_lossless = self._quality == 100
        Image.fromarray(np.asarray(pixels, np.uint8)).save(
            buffer,
            "WEBP",
            quality=75 if is_lossless else self._quality,
            lossless=is_lossless,
            exact=True,
        )
        self._has_alpha |= pixels.shape[2] == 4
        head = bytes(6) + self._size + _uint24(min(ticks, (1 << 24) - 1)) + b"\x02"
        parts = (
            _riff_chunk(chunk.name, read_chunk(buffer, chunk, at_most=chunk.size))
            for chunk in webp_chunks(buffer)
            if chunk.name in (b"ALPH", b"VP8 ", b"VP8L")
        )
        self._file.write(_riff_chunk(b"ANMF", head + b"".join(parts)))

    def finish(self) -> None:
        """Write the packet, the flags and the length."""
        self._file.write(_riff_chunk(b"XMP ", self._xmp))
        length = self._file.tell()
        if length - 8 >= 1 << 32:
            raise OutputError("the animation is longer than a WebP can be; write an MP4")
        self._file.seek(4)
        self._file.write(struct.pack("<I", length - 8))
        self._file.seek(20)
        self._file.write(bytes([0x02 | 0x04 | (0x10 if self._has_alpha else 0)]))
        self._file.seek(length)


def _uint24(value: int) -> bytes:
    return value.to_bytes(3, "little")


def _riff_chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


class ApngFile:
    """An animated PNG of 8 or 16 bits a sample."""

    tick_s = Fraction(1, _APNG_UNITS[0])
    least_ticks = 1

    def __init__(self, file: BinaryIO, size_wh: tuple[int, int], *, plays: int, xmp: bytes) -> None:
        self._file = file
        self._size_wh = size_wh
        self._plays = plays
        self._xmp = xmp
        self._frames = self._sequence = 0
        self._counter_at = 0
        self._encoder: VideoCodecContext | None = None

    def add(self, pixels: Pixels, ticks: int) -> None:
        """Append a frame without loss."""
        encoder = self._encoder or self._start(pixels)
        whole = cast("Pixels", np.ascontiguousarray(pixels))
        frame = VideoFrame.from_ndarray(whole, format=encoder.pix_fmt or "")
        picture = io.BytesIO(b"".join(bytes(packet) for packet in encoder.encode(frame)))
        if not self._frames:
            self._begin(picture)
        self._chunk(b"fcTL", self._control(ticks))
        for content in _png_data(picture):
            if self._frames:
                self._chunk(b"fdAT", struct.pack(">I", self._next_number()) + content)
            else:
                self._chunk(b"IDAT", content)
        self._frames += 1

    def finish(self) -> None:
        """Write the end, and the number of frames."""
        self._chunk(b"IEND", b"")
        self._file.seek(self._counter_at)
        self._chunk(b"acTL", struct.pack(">II", self._frames, self._plays))
        self._file.seek(0, io.SEEK_END)

    def _start(self, pixels: Pixels) -> VideoCodecContext:
        encoder = av.CodecContext.create("png", "w")
        encoder.width, encoder.height = self._size_wh
        encoder.pix_fmt = _PNG_FORMATS[pixels.dtype.itemsize, pixels.shape[2]]
        encoder.time_base = Fraction(1, 25)
        self._encoder = encoder
        return encoder

    def _begin(self, picture: BinaryIO) -> None:
        header = next(iter(png_chunks(picture)))
        self._file.write(b"\x89PNG\r\n\x1a\n")
        self._chunk(b"IHDR", read_chunk(picture, header))
        self._counter_at = self._file.tell()
        self._chunk(b"acTL", bytes(8))
        self._chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + self._xmp)

    def _control(self, ticks: int) -> bytes:
        unit = next((u for u in _APNG_UNITS if ticks * u // _APNG_UNITS[0] <= 0xFFFF), 1)
        delay = min(round(Fraction(ticks * unit, _APNG_UNITS[0])), 0xFFFF)
        return struct.pack(
            ">IIIIIHHBB", self._next_number(), *self._size_wh, 0, 0, delay, unit, 0, 0
        )

    def _next_number(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _chunk(self, name: bytes, content: bytes) -> None:
        checksum = struct.pack(">I", zlib.crc32(name + content))
        self._file.write(struct.pack(">I", len(content)) + name + content + checksum)


def _png_data(picture: BinaryIO) -> Iterator[bytes]:
    for chunk in png_chunks(picture):
        if chunk.name == b"IDAT":
            yield read_chunk(picture, chunk, at_most=chunk.size)

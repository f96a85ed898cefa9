"""The pieces that JPEG, PNG and WebP files are made of, found by their lengths alone: nothing is decoded.

Sources: ITU-T T.81 annex B (JPEG markers), the PNG specification 5.3 (chunks), RFC 9649 (WebP chunks).
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal, NamedTuple, TypeVar

from app.core.errors import DamagedMediaError, TruncatedMediaError

Part = TypeVar("Part")

_MOST_PARTS: Final = 500_000
"""Five for each of the most frames that an animation may have."""
_BIG_TIFF = 43
_START_OF_SCAN = 0xDA
_END_OF_IMAGE = 0xD9
_STANDALONE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


class Chunk(NamedTuple):
    """One piece: its name (one byte for a JPEG marker, four otherwise), where its content begins, and its length."""

    name: bytes
    start: int
    size: int


def read_chunk(file: BinaryIO, chunk: Chunk, *, at_most: int = 1 << 24) -> bytes:
    """The content of a piece, cut at a length that no honest piece has."""
    file.seek(chunk.start)
    return file.read(min(chunk.size, at_most))


def jpeg_segments(file: BinaryIO) -> Iterator[Chunk]:
    """The marker segments before the first scan.

    Raises:
        TruncatedMediaError: The file ends before its first scan.
        DamagedMediaError: There is no marker where one has to be.
    """
    at = 2
    while True:
        file.seek(at)
        head = file.read(4)
        if len(head) < 4:
            raise TruncatedMediaError("the JPEG ends before its picture begins; copy it again")
        if head[0] != 0xFF:
            raise DamagedMediaError(
                f"byte {at}: no JPEG marker where one is due; the file is damaged"
            )
        marker = head[1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in (_START_OF_SCAN, _END_OF_IMAGE):
            return
        if marker in _STANDALONE_MARKERS:
            at += 2
            continue
        size = int.from_bytes(head[2:], "big")
        yield Chunk(head[1:2], at + 4, max(size - 2, 0))
        at += 2 + max(size, 2)


class PngHead(NamedTuple):
    """The header chunk: color type is 0 gray, 2 RGB, 3 palette, 4 gray with alpha, 6 RGB with alpha."""

    size_wh: tuple[int, int]
    bits: int
    color_type: int


def png_head(file: BinaryIO) -> PngHead:
    """The header of a PNG.

    Raises:
        TruncatedMediaError: The file ends in its header.
    """
    file.seek(16)
    head = file.read(10)
    if len(head) < 10:
        raise TruncatedMediaError("the PNG ends in its header; copy it again")
    w, h, bits, color_type = struct.unpack(">IIBB", head)
    return PngHead((w, h), bits, color_type)


def budgeted(parts: Iterator[Part]) -> Iterator[Part]:
    """The parts of a file, as long as they are not more than any honest file has.

    Empty ones cost next to nothing to write and a microsecond or two each to read.

    Raises:
        DamagedMediaError: There are more.
    """
    for number, part in enumerate(parts):
        if number == _MOST_PARTS:
            raise DamagedMediaError(
                f"the file is made of more than {_MOST_PARTS} parts, nearly all of them empty; save it anew"
            )
        yield part


def png_chunks(file: BinaryIO) -> Iterator[Chunk]:
    """The chunks of a PNG, from `IHDR` to `IEND`.

    Raises:
        TruncatedMediaError: The file ends before `IEND`.
        DamagedMediaError: There are too many.
    """
    return budgeted(_png_chunks(file))


def _png_chunks(file: BinaryIO) -> Iterator[Chunk]:
    at = 8
    while True:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            raise TruncatedMediaError("the PNG ends before its end mark; copy it again")
        chunk = Chunk(head[4:], at + 8, int.from_bytes(head[:4], "big"))
        yield chunk
        if chunk.name == b"IEND":
            return
        at = chunk.start + chunk.size + 4


def webp_chunks(file: BinaryIO) -> Iterator[Chunk]:
    """The chunks of a WebP.

    Raises:
        TruncatedMediaError: The file ends before its last chunk does.
        DamagedMediaError: There are too many.
    """
    return budgeted(_webp_chunks(file))


def _webp_chunks(file: BinaryIO) -> Iterator[Chunk]:
    file.seek(4)
    end = 8 + int.from_bytes(file.read(4), "little")
    if file.seek(0, 2) < end:
        raise TruncatedMediaError("the WebP is shorter than its header says; copy it again")
    at = 12
    while at + 8 <= end:
        file.seek(at)
        head = file.read(8)
        chunk = Chunk(head[:4], at + 8, int.from_bytes(head[4:], "little"))
        yield chunk
        at = chunk.start + chunk.size + chunk.size % 2


def webp_size_wh(file: BinaryIO) -> tuple[int, int]:
    """The canvas of a WebP, from the head of its first chunk.

    Raises:
        TruncatedMediaError: The file ends before its last chunk does.
        DamagedMediaError: It begins with no known chunk.
    """
    first = next(webp_chunks(file), None)
    head = read_chunk(file, first, at_most=10) if first else b""
    if len(head) < 10 and not (first and first.name == b"VP8L" and len(head) >= 5):
        raise DamagedMediaError("the WebP holds no picture; the file is damaged")
    assert first is not None
    if first.name == b"VP8X":
        return _uint24(head[4:]) + 1, _uint24(head[7:]) + 1
    if first.name == b"VP8L":
        packed = int.from_bytes(head[1:5], "little")
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    return int.from_bytes(head[6:8], "little") & 0x3FFF, int.from_bytes(
        head[8:10], "little"
    ) & 0x3FFF


def tiff_tag_count(file: BinaryIO) -> int:
    """How many tags describe the first picture of a TIFF or BigTIFF.

    Source: TIFF 6.0, section 2; the BigTIFF proposal of 2004, with 8-byte offsets and counts.

    Raises:
        TruncatedMediaError: The file ends before its first directory.
    """
    file.seek(0)
    head = file.read(16)
    order: Literal["big", "little"] = "big" if head[:1] == b"M" else "little"
    is_big = int.from_bytes(head[2:4], order) == _BIG_TIFF
    offset = head[8:16] if is_big else head[4:8]
    file.seek(min(int.from_bytes(offset, order), file.seek(0, 2)))
    wanted = 8 if is_big else 2
    count = file.read(wanted)
    if len(count) < wanted:
        raise TruncatedMediaError("the TIFF ends before its first directory; copy it again")
    return int.from_bytes(count, order)


def _uint24(data: bytes) -> int:
    return int.from_bytes(data[:3], "little")

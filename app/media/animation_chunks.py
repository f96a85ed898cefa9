"""What animated GIF, PNG and WebP files say of themselves: loops, delays and packets, without decoding a pixel.

Sources: GIF89a specification; XMP specification part 3 (the GIF extension); the APNG specification; RFC 9649 (WebP).
"""

import mmap
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from app.core.errors import DamagedMediaError, EmptyMediaError, TruncatedMediaError
from app.media.chunks import budgeted, png_chunks, read_chunk, webp_chunks
from app.media.limits import MediaLimits
from app.media.sniff import MediaKind

GIF_XMP_ID: Final = b"XMP DataXMP"
GIF_LOOP_ID: Final = b"NETSCAPE2.0"
GIF_XMP_TAIL: Final = bytes((1, *range(255, -1, -1), 0))
"""Behind the raw packet, so that readers which skip by block lengths land on the end, wherever they come from."""

_GIF_LEAST_DELAY_CS: Final = 2
_GIF_USUAL_DELAY_CS: Final = 10
"""Shorter delays than the first are shown as the second, by browsers and by our decoder alike."""

_PIECE_BYTES: Final = 1 << 16

_APNG_FINEST: Final = 1 << 20
"""Of a second. An exact sum of 20 000 different units took 0.7 s instead of 0.1, and takes four times that for twice
as many; no honest file mixes units that need a finer one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnimationFacts:
    """How an animation runs.

    Attributes:
        plays: How often it is shown; 0 is for ever.
        frames: How many frames it holds.
        duration_s: How long it is shown once.
    """

    plays: int
    frames: int
    duration_s: Fraction


class GifBlock(NamedTuple):
    """One block of a GIF: `label` is 0 for a picture, the extension's label otherwise; content without its head."""

    label: int
    start: int
    end: int


def animation_facts(
    path: Path, kind: MediaKind, limits: MediaLimits | None = None
) -> AnimationFacts:
    """Read how an animation runs.

    Args:
        path: The file.
        kind: Of animation.
        limits: Where counting stops; without them all frames are counted.

    Raises:
        MediaTooLargeError: It has more frames than the limits allow; what follows them was not looked at.
        TruncatedMediaError: The file ends before its end mark.
        DamagedMediaError: It holds no frame, or something that has no business there.
    """
    most = sys.maxsize if limits is None else limits.max_animation_frames
    with path.open("rb") as file:
        if kind is MediaKind.GIF:
            facts = _gif_facts(file, most)
        elif kind is MediaKind.APNG:
            facts = _apng_facts(file, most)
        else:
            facts = _webp_facts(file, most)
    if limits is not None:
        limits.check_animation(facts.frames)
    if not facts.frames:
        raise DamagedMediaError("the animation holds no frame; the file is damaged")
    return facts


def gif_blocks(data: bytes | mmap.mmap) -> Iterator[GifBlock]:
    """The blocks of a GIF up to its end mark, which sloppy writers leave out.

    Raises:
        TruncatedMediaError: The file ends within a block.
        DamagedMediaError: Something stands where a block is due, or there are too many.
    """
    return budgeted(_gif_blocks(data))


def _gif_blocks(data: bytes | mmap.mmap) -> Iterator[GifBlock]:
    at = 13 + _palette_bytes(data[10] if len(data) > 12 else 0)
    while at < len(data) and data[at] != 0x3B:
        if data[at] == 0:
            # Stray zeros between blocks are common, and skipped by every reader.
            at += _zeros_at(data, at)
            continue
        head = data[at : at + 10]
        if head[0] == 0x2C:
            start = at + 10 + _palette_bytes(head[9] if len(head) == 10 else 0) + 1
            label = 0
        elif head[0] == 0x21:
            start, label = at + 2, head[1] if len(head) > 1 else 0
        else:
            raise DamagedMediaError(f"byte {at}: no GIF block where one is due; file is damaged")
        end = _end_of_blocks(data, start)
        yield GifBlock(label, at if label == 0 else start, end)
        at = end


def _zeros_at(data: bytes | mmap.mmap, at: int) -> int:
    """How many zeros stand here, as far as a piece of the file shows."""
    piece = data[at : at + _PIECE_BYTES]
    return len(piece) - len(piece.lstrip(b"\0"))


def gif_xmp(file: BinaryIO) -> Iterator[bytes]:
    """The XMP packets of a GIF."""
    with _mapped(file) as data:
        for block in gif_blocks(data):
            content = data[block.start + 1 : block.end]
            if block.label == 0xFF and content.startswith(GIF_XMP_ID):
                yield content[len(GIF_XMP_ID) : -len(GIF_XMP_TAIL)]


def _mapped(file: BinaryIO) -> mmap.mmap:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise EmptyMediaError("the file has 0 bytes") from error


def _palette_bytes(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _end_of_blocks(data: bytes | mmap.mmap, at: int) -> int:
    while at < len(data):
        size = data[at]
        at += 1 + size
        if size == 0:
            return at
    raise TruncatedMediaError("the GIF ends within a frame; copy or upload it again")


def _gif_facts(file: BinaryIO, most_frames: int) -> AnimationFacts:
    plays, frames, total_cs, delay_cs = 1, 0, 0, 0
    with _mapped(file) as data:
        for block in gif_blocks(data):
            content = data[block.start : min(block.end, block.start + 20)]
            if block.label == 0xF9:
                delay_cs = int.from_bytes(content[2:4], "little")
            elif block.label == 0xFF and content[1:12] == GIF_LOOP_ID and content[13:14] == b"\1":
                repeats = int.from_bytes(content[14:16], "little")
                plays = repeats + 1 if repeats else 0
            elif block.label == 0:
                frames += 1
                total_cs += delay_cs if delay_cs >= _GIF_LEAST_DELAY_CS else _GIF_USUAL_DELAY_CS
                delay_cs = 0
                if frames > most_frames:
                    break
    return AnimationFacts(plays=plays, frames=frames, duration_s=Fraction(total_cs, 100))


def _apng_facts(file: BinaryIO, most_frames: int) -> AnimationFacts:
    plays, frames = 0, 0
    ticks_of_unit: Counter[int] = Counter()
    for chunk in png_chunks(file):
        if chunk.name == b"acTL":
            plays = int.from_bytes(read_chunk(file, chunk)[4:8], "big")
        elif chunk.name == b"fcTL":
            head = read_chunk(file, chunk, at_most=26)
            frames += 1
            unit = int.from_bytes(head[22:24], "big") or 100
            ticks_of_unit[unit] += int.from_bytes(head[20:22], "big")
            if frames > most_frames:
                break
    total_s = fsum(ticks / unit for unit, ticks in ticks_of_unit.items())
    duration_s = Fraction(total_s).limit_denominator(_APNG_FINEST)
    return AnimationFacts(plays=plays, frames=frames, duration_s=duration_s)


def _webp_facts(file: BinaryIO, most_frames: int) -> AnimationFacts:
    plays, frames, total_ms = 0, 0, 0
    for chunk in webp_chunks(file):
        if chunk.name == b"ANIM":
            plays = int.from_bytes(read_chunk(file, chunk, at_most=6)[4:6], "little")
        elif chunk.name == b"ANMF":
            head = read_chunk(file, chunk, at_most=16)
            frames += 1
            total_ms += int.from_bytes(head[12:15], "little")
            if frames > most_frames:
                break
    return AnimationFacts(plays=plays, frames=frames, duration_s=Fraction(total_ms, 1000))

"""Pixels that are not square, told to the players of Matroska and WebM.

The library leaves the display size out of a track's header, and VP9 and AV1 have no other place for it. So the track
gets a name as long as what is missing, and the finished file gets the display size in the name's place; what is over
becomes a filler. No other byte moves.

Source: RFC 8794 (EBML: lengths, Void, CRC-32), RFC 9559 5.1.4 (Tracks).
"""

import io
import zlib
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from app.core.errors import OutputError
from app.media.ebml import Element, elements

PLACEHOLDER: Final = "room for the display size"

_SEGMENT, _TRACKS, _TRACK = 0x18538067, 0x1654AE6B, 0xAE
_NAME, _VIDEO, _VOID, _CRC = 0x536E, 0xE0, 0xEC, 0xBF
_WIDTH, _HEIGHT, _UNIT = 0x54B0, 0x54BA, 0x54B2


class _Child(NamedTuple):
    """One element of a track, id and content; its length field had `length_bytes`."""

    id: int
    length_bytes: int
    content: bytes


def write_display_size(path: Path, size_wh: tuple[int, int], pixel_aspect: Fraction) -> None:
    """Put the display size into the track that is called `PLACEHOLDER`.

    Args:
        path: A finished Matroska or WebM file; changed in place, its length stays.
        size_wh: Of the picture in pixels.
        pixel_aspect: Width of a pixel over its height.

    Raises:
        OutputError: There is no such track.
        DamagedMediaError: The elements do not add up.
    """
    shown_wh = round(size_wh[0] * pixel_aspect), size_wh[1]
    with path.open("r+b") as file:
        tracks = _child(file, _child(file, Element(0, 0, path.stat().st_size), _SEGMENT), _TRACKS)
        for track in elements(file, tracks.start, tracks.end):
            children = _children(file, track) if track.id == _TRACK else []
            if any(each.id == _NAME and each.content == PLACEHOLDER.encode() for each in children):
                file.seek(track.start)
                file.write(_with_display_size(children, shown_wh, track.end - track.start))
                _renew_checksum(file, tracks)
                return
    raise OutputError("the written file has no room for the display size")


def _with_display_size(children: list[_Child], shown_wh: tuple[int, int], length: int) -> bytes:
    made = b""
    for each in children:
        if each.id == _NAME:
            continue
        content = each.content
        if each.id == _VIDEO:
            content = _without_unit(content)
            content += _coded(_WIDTH, _uint(shown_wh[0])) + _coded(_HEIGHT, _uint(shown_wh[1]))
        made += _coded(each.id, content, least_length_bytes=each.length_bytes)
    # A filler is two bytes at least: its id and its length.
    return made + _coded(_VOID, bytes(length - len(made) - 2))


def _without_unit(video: bytes) -> bytes:
    """The library says that it does not know the unit; without a word it is pixels."""
    children = _children(io.BytesIO(video), Element(_VIDEO, 0, len(video)))
    return b"".join(
        _coded(each.id, each.content, least_length_bytes=each.length_bytes)
        for each in children
        if each.id != _UNIT
    )


def _renew_checksum(file: BinaryIO, tracks: Element) -> None:
    first = next(elements(file, tracks.start, tracks.end))
    if first.id != _CRC:
        return
    file.seek(first.end)
    checksum = zlib.crc32(file.read(tracks.end - first.end))
    file.seek(first.start)
    file.write(checksum.to_bytes(4, "little"))


def _child(file: BinaryIO, parent: Element, wanted: int) -> Element:
    for each in elements(file, parent.start, parent.end):
        if each.id == wanted:
            return each
    raise OutputError("the written file has no tracks")


def _children(file: BinaryIO, parent: Element) -> list[_Child]:
    found, at = [], parent.start
    for each in elements(file, parent.start, parent.end):
        file.seek(each.start)
        id_bytes = (each.id.bit_length() + 7) // 8
        found.append(_Child(each.id, each.start - at - id_bytes, file.read(each.end - each.start)))
        at = each.end
    return found


def _uint(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def _coded(number: int, content: bytes, *, least_length_bytes: int = 1) -> bytes:
    """An element; all ones in its length would mean that nobody knows it."""
    size = least_length_bytes
    while len(content) >= (1 << 7 * size) - 1:
        size += 1
    length = len(content) | 1 << 7 * size
    return _uint(number) + length.to_bytes(size, "big") + content

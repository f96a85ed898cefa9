"""The tags of a Matroska or WebM file, read without a demuxer, so that a repeated tag counts as often as it is there.

Source: RFC 8794 (EBML), RFC 9559 (Matroska).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from app.core.errors import DamagedMediaError

_SEGMENT = 0x18538067
_TAGS = 0x1254C367
_TAG = 0x7373
_SIMPLE_TAG = 0x67C8
_TAG_NAME = 0x45A3
_TAG_STRING = 0x4487
_MAX_TEXT_BYTES = 1 << 20
_CLUSTER = 0x1F43B675
_VOID, _CRC = 0xEC, 0xBF
_IN_SEGMENT = frozenset(
    {0x114D9B74, 0x1549A966, 0x1654AE6B, 0x1C53BB6B, _CLUSTER, 0x1941A469, 0x1043A770, _TAGS}
    | {_VOID, _CRC}
)
_IN_CLUSTER = frozenset({0xE7, 0x5854, 0xA7, 0xAB, 0xA3, 0xA0, 0xAF, _VOID, _CRC})
"""Everything that RFC 9559 puts there: seek head, info, tracks, cues ...; times, positions and blocks."""


class Element(NamedTuple):
    """One EBML element: its id, and where its content begins and ends in the file."""

    id: int
    start: int
    end: int


def tag_values(path: Path, name: str) -> tuple[str, ...]:
    """Every value that the file's tags give a name, whatever its case: muxers write names in capitals.

    Raises:
        DamagedMediaError: The elements do not add up.
    """
    found: list[str] = []
    with path.open("rb") as file:
        whole = Element(0, 0, file.seek(0, os.SEEK_END))
        for simple in _descend(file, whole, (_SEGMENT, _TAGS, _TAG, _SIMPLE_TAG)):
            texts = {e.id: _text(file, e) for e in elements(file, simple.start, simple.end)}
            if texts.get(_TAG_NAME, "").casefold() == name.casefold():
                found.append(texts.get(_TAG_STRING, ""))
    return tuple(found)


def segment_end(path: Path) -> int | None:
    """Where the file ends by its own word; `None` for one of unknown length, as live streams have.

    Raises:
        DamagedMediaError: The elements do not add up.
    """
    with path.open("rb") as file:
        at = 0
        while True:
            file.seek(at)
            head = file.read(16)
            number, id_bytes = _vint(head, at, keep_marker=True)
            size, size_bytes = _vint(head[id_bytes:], at, keep_marker=False)
            end = at + id_bytes + size_bytes + size
            if number == _SEGMENT:
                return None if size == (1 << 7 * size_bytes) - 1 else end
            at = end


def has_foreign_bytes(path: Path) -> bool:
    """True when something lies between the parts of a file that is no part of one: it was damaged.

    A last part that reaches beyond the end is not told here; live recordings, whose parts have no length, never are.
    """
    with path.open("rb") as file:
        held = file.seek(0, os.SEEK_END)
        try:
            segment = next(e for e in elements(file, 0, held) if e.id == _SEGMENT)
            for part in elements(file, segment.start, segment.end):
                if part.id not in _IN_SEGMENT:
                    return True
                if part.id == _CLUSTER and _is_cluster_foreign(file, part, held):
                    return True
        except (DamagedMediaError, StopIteration):
            return True
    return False


def _is_cluster_foreign(file: BinaryIO, cluster: Element, held: int) -> bool:
    inside = (element.id in _IN_CLUSTER for element in elements(file, cluster.start, cluster.end))
    return cluster.end < held and not all(inside)


def elements(file: BinaryIO, start: int, end: int) -> Iterator[Element]:
    """The elements that lie one after the other between two positions.

    An element of unknown length, as live streams have, reaches to `end`.

    Raises:
        DamagedMediaError: An id or a length is malformed.
    """
    at = start
    while at < end:
        file.seek(at)
        number, id_bytes = _vint(file.read(8), at, keep_marker=True)
        file.seek(at + id_bytes)
        size, size_bytes = _vint(file.read(8), at, keep_marker=False)
        content = at + id_bytes + size_bytes
        is_unknown = size == (1 << 7 * size_bytes) - 1
        # A file that was cut in its last element still has its tags where they are.
        stop = end if is_unknown else min(content + size, end)
        yield Element(number, content, stop)
        at = max(stop, content)


def _vint(head: bytes, at: int, *, keep_marker: bool) -> tuple[int, int]:
    """A variable-length integer and its length in bytes."""
    length = 9 - head[0].bit_length() if head else 9
    if length > len(head):
        raise DamagedMediaError(
            f"element at byte {at}: its length is malformed; the file is damaged"
        )
    value = int.from_bytes(head[:length], "big")
    return (value if keep_marker else value ^ (1 << 7 * length)), length


def _descend(file: BinaryIO, parent: Element, ids: tuple[int, ...]) -> Iterator[Element]:
    if not ids:
        yield parent
        return
    for element in elements(file, parent.start, parent.end):
        if element.id == ids[0]:
            yield from _descend(file, element, ids[1:])


def _text(file: BinaryIO, element: Element) -> str:
    file.seek(element.start)
    length = min(element.end - element.start, _MAX_TEXT_BYTES)
    return file.read(length).rstrip(b"\0").decode("utf-8", "replace")

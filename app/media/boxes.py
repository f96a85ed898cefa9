"""The boxes of an mp4 or mov file, as far as labels need them: tags in `moov`, XMP in a box of its own.

Sources: ISO/IEC 14496-12 (boxes), QuickTime File Format (metadata keys), XMP specification part 3 (the `uuid`).
"""

import os
import struct
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from app.core.errors import DamagedMediaError, TruncatedMediaError
from app.media.storage import storage_errors

XMP_UUID = bytes.fromhex("BE7ACFCB97A942E89C71999491E3AFAC")

_MAX_PAYLOAD_BYTES = 1 << 20
_METADATA_PATHS = ((b"moov", b"udta", b"meta"), (b"moov", b"meta"))


class Box(NamedTuple):
    """One box: its type, and where its payload begins and ends in the file."""

    type: bytes
    start: int
    end: int


def boxes(file: BinaryIO, start: int, end: int) -> Iterator[Box]:
    """The boxes that lie one after the other between two positions.

    Raises:
        TruncatedMediaError: A box reaches beyond `end`.
        DamagedMediaError: A box is shorter than its header.
    """
    at = start
    while at + 8 <= end:
        file.seek(at)
        size, name = struct.unpack(">I4s", file.read(8))
        header = 8
        if size == 1:
            size, header = int.from_bytes(file.read(8), "big"), 16
        elif size == 0:
            size = end - at
        if size < header:
            raise DamagedMediaError(
                f"box at byte {at}: its length is malformed; the file is damaged"
            )
        if at + size > end:
            raise TruncatedMediaError(
                f"box at byte {at}: got {end - at} of its {size} bytes; copy the file again"
            )
        yield Box(name, at + header, at + size)
        at += size


def append_xmp_box(path: Path, packet: bytes) -> None:
    """Append an XMP packet to a finished file, as its last box.

    Args:
        path: Grows in place; back at its old length when this fails.
        packet: UTF-8 XMP.

    Raises:
        DamagedMediaError: The boxes do not end where the file ends.
        TruncatedMediaError: The last one reaches beyond it.
        StorageFullError: The disk is full.
        OutputError: The file cannot be written.
    """
    box = struct.pack(">I4s", 24 + len(packet), b"uuid") + XMP_UUID + packet
    with storage_errors(), path.open("r+b") as file:
        length = file.seek(0, os.SEEK_END)
        _check_can_grow(file, length)
        try:
            file.seek(length)
            file.write(box)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(path, length)
            raise


def xmp_boxes(path: Path) -> tuple[bytes, ...]:
    """The XMP packets at the top level of a file.

    Raises:
        DamagedMediaError: The boxes do not add up.
        TruncatedMediaError: The last one reaches beyond the file's end.
    """
    found: list[bytes] = []
    with path.open("rb") as file:
        for box in boxes(file, 0, file.seek(0, os.SEEK_END)):
            if box.type == b"uuid" and box.end - box.start <= _MAX_PAYLOAD_BYTES:
                payload = _payload(file, box)
                if payload.startswith(XMP_UUID):
                    found.append(payload.removeprefix(XMP_UUID))
    return tuple(found)


def metadata_values(path: Path, key: str) -> tuple[str, ...]:
    """Every value that the file's `mdta` metadata gives a key; two entries of one name are two values.

    Raises:
        DamagedMediaError: The boxes do not add up.
        TruncatedMediaError: The last one reaches beyond the file's end.
    """
    found: list[str] = []
    with path.open("rb") as file:
        whole = Box(b"", 0, file.seek(0, os.SEEK_END))
        for names in _METADATA_PATHS:
            for meta in _descend(file, whole, names):
                found.extend(_values(file, meta, key.encode()))
    return tuple(found)


def _check_can_grow(file: BinaryIO, length: int) -> None:
    last = next(iter(deque(boxes(file, 0, length), maxlen=1)), None)
    if last is None or last.end != length:
        raise DamagedMediaError(
            "the file's boxes do not end where the file ends; it was cut or damaged"
        )
    if _is_open_ended(file, last):
        raise DamagedMediaError(
            "the last box has no length of its own; nothing can be appended to it"
        )


def _is_open_ended(file: BinaryIO, last: Box) -> bool:
    """Whether the last box's length is written as 0, "up to the end of the file"."""
    file.seek(last.start - 8)
    return file.read(8) == bytes(4) + last.type


def _payload(file: BinaryIO, box: Box) -> bytes:
    file.seek(box.start)
    return file.read(min(box.end - box.start, _MAX_PAYLOAD_BYTES))


def _descend(file: BinaryIO, parent: Box, names: tuple[bytes, ...]) -> Iterator[Box]:
    if not names:
        yield parent
        return
    for box in boxes(file, parent.start, parent.end):
        if box.type == names[0]:
            yield from _descend(file, box, names[1:])


def _values(file: BinaryIO, meta: Box, key: bytes) -> Iterator[str]:
    """Source: QuickTime File Format, "Metadata": `keys` numbers the names from 1, `ilst` holds a value a number."""
    is_full_box = _payload(file, Box(b"", meta.start, min(meta.start + 8, meta.end)))[4:] != b"hdlr"
    children = tuple(boxes(file, meta.start + 4 * is_full_box, meta.end))
    numbers = {
        number
        for box in children
        if box.type == b"keys"
        for number, name in enumerate(_key_names(_payload(file, box)), 1)
        if name == key
    }
    for ilst in (box for box in children if box.type == b"ilst"):
        for item in boxes(file, ilst.start, ilst.end):
            if int.from_bytes(item.type, "big") in numbers:
                yield from _texts(file, item)


def _key_names(payload: bytes) -> Iterator[bytes]:
    at = 8
    while at + 8 <= len(payload):
        size = max(8, int.from_bytes(payload[at : at + 4], "big"))
        yield payload[at + 8 : at + size]
        at += size


def _texts(file: BinaryIO, item: Box) -> Iterator[str]:
    for data in boxes(file, item.start, item.end):
        if data.type == b"data":
            yield _payload(file, data)[8:].decode("utf-8", "replace")

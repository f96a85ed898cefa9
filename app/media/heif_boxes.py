"""What the boxes of a HEIC or AVIF say of its pictures, read without any decoder.

Source: ISO/IEC 23008-12 (items, properties, references), ISO/IEC 14496-12, 8.11 (meta box) and 12.1.5 (colors).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from app.core.color import ColorTags
from app.core.errors import MediaTooLargeError
from app.media.boxes import Box, boxes

_MAX_META_BYTES = 16 << 20
"""A phone's 48 megapixels in tiles take 20 000; the rest is room for profiles."""

_FULL_BOX = 4
_AV1_FLAGS_AT = 2
_AV1_HIGH_BIT_DEPTH = 0x40
_AV1_TWELVE_BIT = 0x20
_AV1_MONOCHROME = 0x10
_NCLX = struct.Struct(">4sHHHB")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeifHead:
    """The properties of all pictures of a file, and who is made of whom.

    Attributes:
        properties: Type and content of every property, in the file's order.
        main: The properties of the main picture.
        tiles: How many parts all composed pictures have together.
        aux: The kinds of helping pictures: transparency, depth, a gain map...
    """

    properties: tuple[tuple[bytes, bytes], ...] = ()
    main: tuple[tuple[bytes, bytes], ...] = ()
    tiles: int = 0
    aux: tuple[bytes, ...] = ()

    @property
    def av1_bits(self) -> int:
        """Bits a channel of an AVIF's pictures. Source: AV1 in ISOBMFF, 2.3.3: flags in the third byte of `av1C`."""
        flags = self._av1_flags()
        if not flags & _AV1_HIGH_BIT_DEPTH:
            return 8
        return 12 if flags & _AV1_TWELVE_BIT else 10

    @property
    def is_gray_av1(self) -> bool:
        """Whether an AVIF's main picture has no colors."""
        return bool(self._av1_flags() & _AV1_MONOCHROME)

    def _av1_flags(self) -> int:
        """Of the main picture; a composed one has none of its own, and is made like the first of its parts."""
        for name, content in (*self.main, *self.properties):
            if name == b"av1C" and len(content) > _AV1_FLAGS_AT:
                return content[_AV1_FLAGS_AT]
        return 0

    @property
    def tags(self) -> ColorTags:
        """The main picture's color tags, of its RGB; a profile counts for nothing here."""
        for name, content in self.main:
            if name == b"colr" and content[:4] == b"nclx" and len(content) >= _NCLX.size:
                _, primaries, transfer, _, _ = _NCLX.unpack(content[: _NCLX.size])
                return ColorTags(primaries=primaries, transfer=transfer)
        return ColorTags()


def heif_head(file: BinaryIO) -> HeifHead:
    """Read what a file says of its pictures.

    Raises:
        TruncatedMediaError: A box reaches beyond the file's end.
        DamagedMediaError: A box is shorter than its header.
        MediaTooLargeError: There is more of it than any picture needs.
    """
    meta = next(_named(file, Box(b"", 0, file.seek(0, 2)), b"meta"), None)
    if meta is None:
        return HeifHead()
    if meta.end - meta.start > _MAX_META_BYTES:
        raise MediaTooLargeError(
            f"the picture's description has {meta.end - meta.start} bytes, at most {_MAX_META_BYTES} are read; "
            "save the picture anew"
        )
    inside = meta._replace(start=meta.start + _FULL_BOX)
    properties = tuple(_properties(file, inside))
    return HeifHead(
        properties=properties,
        main=tuple(properties[i] for i in _main_indices(file, inside) if i < len(properties)),
        tiles=_tiles(file, inside),
        aux=tuple(
            content[_FULL_BOX:].split(b"\0")[0] for name, content in properties if name == b"auxC"
        ),
    )


def retagged(data: bytes, tags: ColorTags) -> bytes:
    """An AVIF whose pictures say other primaries and another transfer than its encoder wrote; matrix and range stay."""
    at = data.find(b"colrnclx")
    if at < 0:
        return data
    codes = struct.pack(">HH", tags.primaries, tags.transfer)
    return data[: at + 8] + codes + data[at + 8 + len(codes) :]


def _named(file: BinaryIO, parent: Box, *names: bytes) -> Iterator[Box]:
    for box in boxes(file, parent.start, parent.end):
        if box.type == names[0]:
            yield from _named(file, box, *names[1:]) if names[1:] else (box,)


def _content(file: BinaryIO, box: Box) -> bytes:
    file.seek(box.start)
    return file.read(box.end - box.start)


def _properties(file: BinaryIO, meta: Box) -> Iterator[tuple[bytes, bytes]]:
    for held in _named(file, meta, b"iprp", b"ipco"):
        for box in boxes(file, held.start, held.end):
            yield box.type, _content(file, box)


def _main_indices(file: BinaryIO, meta: Box) -> tuple[int, ...]:
    """Places, from 0, of the main picture's properties."""
    main = next((_content(file, box) for box in _named(file, meta, b"pitm")), b"")
    if not main:
        return ()
    number = int.from_bytes(main[_FULL_BOX:], "big")
    for box in _named(file, meta, b"iprp", b"ipma"):
        for item, indices in _associations(_content(file, box)):
            if item == number:
                return indices
    return ()


def _associations(content: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Source: ISO/IEC 23008-12, 9.3.2: the highest bit of an index says that the property is essential."""
    id_bytes = 4 if content[0] else 2
    index_bytes = 2 if content[3] & 1 else 1
    at = 2 * _FULL_BOX
    while at + id_bytes < len(content):
        item = int.from_bytes(content[at : at + id_bytes], "big")
        first = at + id_bytes + 1
        at = first + index_bytes * content[first - 1]
        marks = (content[i : i + index_bytes] for i in range(first, at, index_bytes))
        mask = (1 << (8 * index_bytes - 1)) - 1
        yield item, tuple((int.from_bytes(mark, "big") & mask) - 1 for mark in marks if any(mark))


def _tiles(file: BinaryIO, meta: Box) -> int:
    count = 0
    for box in _named(file, meta, b"iref"):
        file.seek(box.start)
        id_bytes = 4 if file.read(1) != b"\0" else 2
        for reference in boxes(file, box.start + _FULL_BOX, box.end):
            if reference.type == b"dimg":
                count += (reference.end - reference.start - id_bytes - 2) // id_bytes
    return count

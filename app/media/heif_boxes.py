"""What the boxes of a HEIC or AVIF say of its pictures, read without any decoder.

Source: ISO/IEC 23008-12 (pictures as items, their properties and references), ISO/IEC 14496-12, 8.11 (where items
lie), AV1 in ISOBMFF, 2.3 (`av1C`).
"""

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from app.core.color import ColorTags
from app.core.errors import DamagedMediaError, MediaTooLargeError, TruncatedMediaError
from app.media.boxes import Box, boxes

Property = tuple[bytes, bytes]
"""Type and content."""

_MAX_META_BYTES: Final = 4 << 20
"""A phone's 48 megapixels in tiles take 20 000; the rest is room for profiles."""

_FULL_BOX: Final = 4
_NCLX: Final = struct.Struct(">4sHHHB")
_NCLX_BOX: Final = b"colrnclx"
_AV1_HEAD_BYTES: Final = 24
_AV1_FLAGS_AT: Final = 2
_AV1_HIGH_BIT_DEPTH: Final = 0x40
_AV1_TWELVE_BIT: Final = 0x20
_AV1_MONOCHROME: Final = 0x10
_IN_FILE, _IN_BOX = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class HeifItem:
    """One picture, or a packet of text about one.

    Attributes:
        kind: `hvc1`, `grid`, `Exif`...
        is_hidden: Not to be shown by itself.
        properties: In the order in which they apply.
        references: The items it refers to, by the kind of reference.
        extents: Where its bytes lie in the file: start and length.
    """

    number: int
    kind: bytes
    is_hidden: bool = False
    properties: tuple[Property, ...] = ()
    references: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    extents: tuple[tuple[int, int], ...] = ()

    def content_of(self, name: bytes) -> bytes | None:
        """The content of its first property of a type."""
        return next((content for each, content in self.properties if each == name), None)

    @property
    def av1_bits(self) -> int:
        """Bits a channel, if it is coded in AV1."""
        flags = self._av1_flags
        if not flags & _AV1_HIGH_BIT_DEPTH:
            return 8
        return 12 if flags & _AV1_TWELVE_BIT else 10

    @property
    def is_gray_av1(self) -> bool:
        """Whether it has no colors, if it is coded in AV1."""
        return bool(self._av1_flags & _AV1_MONOCHROME)

    @property
    def _av1_flags(self) -> int:
        config = self.content_of(b"av1C") or b""
        return config[_AV1_FLAGS_AT] if len(config) > _AV1_FLAGS_AT else 0

    @property
    def nclx(self) -> ColorTags | None:
        """The color tags, where it has some."""
        for name, content in self.properties:
            if name == b"colr" and content[:4] == b"nclx" and len(content) >= _NCLX.size:
                _, primaries, transfer, matrix, flags = _NCLX.unpack(content[: _NCLX.size])
                return ColorTags(
                    matrix=matrix,
                    is_full_range=flags >= 0x80,
                    primaries=primaries,
                    transfer=transfer,
                )
        return None

    @property
    def profile(self) -> bytes | None:
        """The color profile, where it has one."""
        for name, content in self.properties:
            if name == b"colr" and content[:4] in (b"prof", b"rICC"):
                return content[4:]
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeifHead:
    """All items of a file.

    Attributes:
        items: By number.
        main_number: Of the picture to show.
    """

    items: Mapping[int, HeifItem] = field(default_factory=dict)
    main_number: int = 0

    @property
    def main(self) -> HeifItem | None:
        """The picture to show."""
        return self.items.get(self.main_number)

    @property
    def tags(self) -> ColorTags:
        """What the main picture's RGB is; a profile counts for nothing here."""
        tags = self.main.nclx if self.main is not None else None
        return (
            ColorTags()
            if tags is None
            else ColorTags(primaries=tags.primaries, transfer=tags.transfer)
        )

    @property
    def av1_bits(self) -> int:
        """Bits a channel of an AVIF's pictures."""
        return self._first_part.av1_bits

    @property
    def is_gray_av1(self) -> bool:
        """Whether an AVIF's main picture has no colors."""
        return self._first_part.is_gray_av1

    def about_main(self, reference: bytes) -> Iterator[HeifItem]:
        """The items that say of themselves that they are about the main picture."""
        for item in self.items.values():
            if self.main_number in item.references.get(reference, ()):
                yield item

    @property
    def _first_part(self) -> HeifItem:
        """The main picture, or what it is composed of: all parts are made alike."""
        main = self.main or HeifItem(number=0, kind=b"")
        parts = main.references.get(b"dimg", ())
        return self.items.get(parts[0], main) if parts else main


def heif_head(file: BinaryIO) -> HeifHead:
    """Read what a file says of its pictures.

    Raises:
        TruncatedMediaError: A box, or what it promises, reaches beyond its end.
        DamagedMediaError: A box is shorter than its header.
        MediaTooLargeError: There is more of it than any picture needs.
    """
    length = file.seek(0, 2)
    meta = next((box for box in boxes(file, 0, length) if box.type == b"meta"), None)
    if meta is None:
        return HeifHead()
    if meta.end - meta.start > _MAX_META_BYTES:
        raise MediaTooLargeError(
            f"the picture's description has {meta.end - meta.start} bytes, at most {_MAX_META_BYTES} are read; "
            "save the picture anew"
        )
    return _Meta(file, meta, length).head()


def item_bytes(file: BinaryIO, item: HeifItem) -> bytes:
    """The bytes of an item."""
    parts = []
    for start, size in item.extents:
        file.seek(start)
        parts.append(file.read(size))
    return b"".join(parts)


def retagged(data: bytes, tags: ColorTags) -> bytes:
    """An AVIF whose pictures say other primaries and another transfer than its encoder wrote; matrix and range stay.

    They are said twice: by the boxes, and in the header of the coded picture, where some readers look first.
    """
    at = data.find(_NCLX_BOX) + len(_NCLX_BOX)
    main = heif_head(io.BytesIO(data)).main
    if at < len(_NCLX_BOX) or main is None or not main.extents:
        return data
    old = data[at + 1 : at + 6 : 2]
    new = bytes((tags.primaries, tags.transfer, old[2]))
    start = main.extents[0][0]
    coded = _with_bits(data[start : start + _AV1_HEAD_BYTES], old, new)
    data = data[:start] + coded + data[start + _AV1_HEAD_BYTES :]
    return data[:at] + struct.pack(">HH", tags.primaries, tags.transfer) + data[at + 4 :]


def _with_bits(head: bytes, old: bytes, new: bytes) -> bytes:
    """Replace three codes that begin at any bit, behind the bit that says that they follow.

    Source: AV1 specification, 5.5.2 (color config).
    """
    bits = "".join(f"{byte:08b}" for byte in head)
    before, after = ("1" + "".join(f"{code:08b}" for code in codes) for codes in (old, new))
    at = bits.find(before)
    if at < 0:
        return head
    bits = bits[:at] + after + bits[at + len(after) :]
    return int(bits, 2).to_bytes(len(head), "big")


def _overpromised() -> DamagedMediaError:
    return DamagedMediaError(
        "the picture's boxes promise more than they hold; open it in another program and save it anew"
    )


class _Fields:
    """Whole numbers one after the other, high byte first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> int:
        return int.from_bytes(self.take_bytes(size), "big")

    def take_bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise _overpromised()
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        return self._data[self._at :]


class _Meta:
    """The `meta` box of a file."""

    def __init__(self, file: BinaryIO, meta: Box, file_bytes: int) -> None:
        file.seek(meta.start)
        self._data = file.read(meta.end - meta.start)
        self._file = io.BytesIO(self._data)
        self._start = meta.start
        self._file_bytes = file_bytes
        inside = boxes(self._file, _FULL_BOX, len(self._data))
        self._boxes = {box.type: box for box in inside}

    def head(self) -> HeifHead:
        main = self._fields(b"pitm")
        version = main.take(_FULL_BOX) >> 24
        properties, references = self._properties(), self._references()
        extents = self._extents()
        items = {
            number: HeifItem(
                number=number,
                kind=kind,
                is_hidden=is_hidden,
                properties=properties.get(number, ()),
                references=references.get(number, {}),
                extents=extents.get(number, ()),
            )
            for number, kind, is_hidden in self._infos()
        }
        return HeifHead(items=items, main_number=main.take(4 if version else 2))

    def _fields(self, name: bytes) -> _Fields:
        box = self._boxes.get(name)
        # A box that is missing says 0: no item, no reference.
        return _Fields(bytes(16) if box is None else self._data[box.start : box.end])

    def _infos(self) -> Iterator[tuple[int, bytes, bool]]:
        box = self._boxes.get(b"iinf")
        if box is None:
            return
        count_bytes = 4 if self._data[box.start : box.start + 1] != b"\0" else 2
        for each in boxes(self._file, box.start + _FULL_BOX + count_bytes, box.end):
            fields = _Fields(self._data[each.start : each.end])
            version, flags = fields.take(1), fields.take(3)
            if each.type == b"infe" and version >= 2:
                number = fields.take(4 if version == 3 else 2)
                fields.take(2)
                kind = fields.take_bytes(4)
                yield (
                    number,
                    _text_kind(fields.rest()) if kind == b"mime" else kind,
                    bool(flags & 1),
                )

    def _references(self) -> dict[int, dict[bytes, tuple[int, ...]]]:
        found: dict[int, dict[bytes, tuple[int, ...]]] = {}
        box = self._boxes.get(b"iref")
        if box is None:
            return found
        id_bytes = 4 if self._data[box.start : box.start + 1] != b"\0" else 2
        for each in boxes(self._file, box.start + _FULL_BOX, box.end):
            fields = _Fields(self._data[each.start : each.end])
            number = fields.take(id_bytes)
            targets = tuple(fields.take(id_bytes) for _ in range(fields.take(2)))
            mine = found.setdefault(number, {})
            mine[each.type] = (*mine.get(each.type, ()), *targets)
        return found

    def _properties(self) -> dict[int, tuple[Property, ...]]:
        box = self._boxes.get(b"iprp")
        if box is None:
            return {}
        parts = tuple(boxes(self._file, box.start, box.end))
        held = [
            (each.type, self._data[each.start : each.end])
            for part in parts
            if part.type == b"ipco"
            for each in boxes(self._file, part.start, part.end)
        ]
        found: dict[int, tuple[Property, ...]] = {}
        for part in parts:
            if part.type == b"ipma":
                for number, places in _associations(_Fields(self._data[part.start : part.end])):
                    found.setdefault(
                        number, tuple(held[i - 1] for i in places if 0 < i <= len(held))
                    )
        return found

    def _extents(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """Source: ISO/IEC 14496-12, 8.11.3."""
        fields = self._fields(b"iloc")
        version = fields.take(_FULL_BOX) >> 24
        sizes = fields.take(2)
        offset, length, base, index = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
        id_bytes = 4 if version == 2 else 2
        found = {}
        for _ in range(fields.take(id_bytes)):
            number = fields.take(id_bytes)
            place = fields.take(2) & 15 if version else _IN_FILE
            fields.take(2)
            start = fields.take(base)
            parts = []
            count = fields.take(2)
            if count > 1 and not offset + length:
                # Extents that take no bytes would cost time without end.
                raise _overpromised()
            for _ in range(count):
                fields.take(index if version else 0)
                at, size = start + fields.take(offset), fields.take(length)
                parts.append(self._checked(at, size, place))
            if sum(size for _, size in parts) > self._file_bytes:
                raise _overpromised()
            found[number] = tuple(parts)
        return found

    def _checked(self, at: int, size: int, place: int) -> tuple[int, int]:
        """Where an extent really lies."""
        if place == _IN_BOX and b"idat" in self._boxes:
            at += self._start + self._boxes[b"idat"].start
        if at + size > self._file_bytes:
            raise TruncatedMediaError(
                f"the picture's data end at byte {at + size}, the file at {self._file_bytes}; copy the file again"
            )
        # A length of 0 is "up to the end".
        return at, size or self._file_bytes - at


def _text_kind(names: bytes) -> bytes:
    """`xmp ` for an item of XMP. What stands there: the item's name, then its media type."""
    return b"xmp " if b"application/rdf+xml" in names else b"mime"


def _associations(fields: _Fields) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Source: ISO/IEC 23008-12, 9.3.2: the highest bit of a place says that the property is essential."""
    version, flags = fields.take(1), fields.take(3)
    size = 2 if flags & 1 else 1
    mask = (1 << (8 * size - 1)) - 1
    for _ in range(fields.take(4)):
        number = fields.take(4 if version else 2)
        yield number, tuple(fields.take(size) & mask for _ in range(fields.take(1)))

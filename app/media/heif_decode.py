"""The coded pictures of a HEIC or AVIF, decoded by FFmpeg and put together.

Source: ISO/IEC 14496-15, 8.3.3 (`hvcC`), AV1 in ISOBMFF, 2.3 (`av1C`), ISO/IEC 23008-12, 6.6 (composed pictures),
MIAF (ISO/IEC 23000-22), 7.3.6.4 (colors that nobody states).
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, Final, cast

import av
import numpy as np
from av.error import FFmpegError
from av.video.codeccontext import VideoCodecContext

from app.core.color import BT601, UNSPECIFIED, ColorTags
from app.core.errors import DamagedMediaError, UnsupportedTypeError
from app.core.picture import Picture, PixelBox
from app.core.planes import Plane
from app.media.frames import picture_of
from app.media.heif_boxes import HeifHead, HeifItem, item_bytes
from app.media.limits import MediaLimits

_AV1: Final = b"av01"
CODED_KINDS: Final = frozenset({b"hvc1", b"hev1", _AV1})
GRID: Final = b"grid"
SAME: Final = b"iden"

_CONFIG_BYTES: Final = 23
_CHROMA_AT: Final = 16
_DEPTH_AT: Final = 17
_ROWS: Final = 512


def parts_of(head: HeifHead, item: HeifItem) -> list[HeifItem]:
    """The coded pictures that an item is made of, row by row.

    Raises:
        UnsupportedTypeError: It is made in a way, or coded by a codec, that is not decoded here.
        DamagedMediaError: It is made of nothing.
    """
    if item.kind in CODED_KINDS:
        return [item]
    found = [head.items[n] for n in item.references.get(b"dimg", ()) if n in head.items]
    kinds = {part.kind for part in found}
    if item.kind not in (GRID, SAME) or not kinds <= CODED_KINDS:
        strange = next(iter(kinds - CODED_KINDS), item.kind).decode("latin-1")
        raise UnsupportedTypeError(
            f"the HEIF picture is of kind {strange!r}, wanted HEVC pictures or tiles of them; export it as JPEG or PNG"
        )
    if not found:
        raise DamagedMediaError("the HEIC picture's tiles are missing; save it anew")
    return found


def coded_layout(part: HeifItem) -> tuple[bool, int]:
    """Whether a coded picture is gray, and its bits a channel.

    Raises:
        DamagedMediaError: It has no header.
    """
    if part.kind == _AV1:
        return part.is_gray_av1, part.av1_bits
    config = part.content_of(b"hvcC") or b""
    if len(config) < _CONFIG_BYTES:
        raise _undecodable()
    return config[_CHROMA_AT] & 3 == 0, 8 + (config[_DEPTH_AT] & 7)


def coded_wh(part: HeifItem) -> tuple[int, int]:
    """The size that a coded picture's own header says; nothing is decoded. AV1 keeps it to itself: the boxes' word.

    Raises:
        DamagedMediaError: It has no valid header.
    """
    if part.kind == _AV1:
        return stored_wh(part)
    decoder = _decoder(part, np.iinfo(np.int32).max)
    try:
        decoder.open()
    except FFmpegError as error:
        raise _undecodable() from error
    return decoder.width, decoder.height


def stored_wh(item: HeifItem) -> tuple[int, int]:
    """Width and height before anything is cropped or turned, as the boxes say.

    Raises:
        DamagedMediaError: They do not say it.
    """
    size = item.content_of(b"ispe")
    if size is None or len(size) < 12:
        raise DamagedMediaError("the HEIC picture does not say its size; save it anew")
    w, h = struct.unpack(">II", size[4:12])
    return w, h


def composed_values(head: HeifHead, item: HeifItem, file: BinaryIO, limits: MediaLimits) -> Plane:
    """An item's pixels as stored, all tiles in their places.

    Returns:
        `(H, W)` gray or `(H, W, 3)` RGB over the full range of 8 bits, or of 16 where the file has over 8.

    Raises:
        DamagedMediaError: It cannot be decoded.
        UnsupportedTypeError: Its tiles are not of one kind.
        MediaTooLargeError: It is over the budget.
    """
    return _values(_composed(head, item, file, limits))


def _composed(head: HeifHead, item: HeifItem, file: BinaryIO, limits: MediaLimits) -> Picture:
    parts, size_wh = parts_of(head, item), stored_wh(item)
    limits.check_still(size_wh)
    columns = (item_bytes(file, item) + bytes(4))[3] + 1 if item.kind == GRID else 1
    whole: Picture | None = None
    for index, tile in enumerate(_decoded(parts, file, limits)):
        if index and not _starts_inside(tile, size_wh, divmod(index, columns)):
            # So the size bounds the work: tiles by the thousand cannot hide outside.
            raise _undecodable()
        if whole is None:
            whole = _blank(tile, size_wh, _tags(item, parts[0], tile))
        _place_inplace(whole, tile, divmod(index, columns))
        is_last = index == len(parts) - 1
        if is_last and not _reaches(tile, size_wh, divmod(index, columns)):
            raise _undecodable()
    if whole is None:
        raise _undecodable()
    return whole


def _decoded(parts: list[HeifItem], file: BinaryIO, limits: MediaLimits) -> Iterator[Picture]:
    for part in parts:
        decoder = _decoder(part, limits.max_still_pixels)
        try:
            packet = av.Packet(item_bytes(file, part))
            frames = [*decoder.decode(packet), *decoder.decode(None)]
        except (FFmpegError, ValueError) as error:
            raise _undecodable() from error
        if len(frames) != 1:
            raise _undecodable()
        tile = picture_of(frames[0])
        is_gray, bits = coded_layout(part)
        is_deep = tile.pixel_format.bits > 8
        if (tile.pixel_format.family == "gray") != is_gray or is_deep != (bits > 8):
            raise _undecodable()
        yield tile


def _decoder(part: HeifItem, most_pixels: int) -> VideoCodecContext:
    is_av1 = part.kind == _AV1
    name = "libdav1d" if is_av1 else "hevc"
    decoder = cast("VideoCodecContext", av.CodecContext.create(name, "r"))
    decoder.extradata = part.content_of(b"av1C" if is_av1 else b"hvcC") or b"\0"
    decoder.thread_count = 1
    # A damaged picture is an error, not a gray patch; and none may be larger than its header said.
    decoder.options = {"err_detect": "explode", "max_pixels": str(most_pixels)}
    return decoder


def _tags(item: HeifItem, part: HeifItem, tile: Picture) -> ColorTags:
    """The file's word, else the bit stream's, else what the standard says of files that say nothing."""
    tags = item.nclx or part.nclx or tile.tags
    return replace(
        tags,
        matrix=BT601 if tags.matrix in (UNSPECIFIED, 0) else tags.matrix,
        is_full_range=True if tags.is_full_range is None else tags.is_full_range,
    )


def _blank(tile: Picture, size_wh: tuple[int, int], tags: ColorTags) -> Picture:
    layout = tile.pixel_format
    planes = tuple(np.zeros(shape, layout.dtype) for shape in layout.plane_shapes(size_wh))
    return Picture(cast("tuple[Plane, ...]", planes), layout, tags)


def _place_inplace(whole: Picture, tile: Picture, place: tuple[int, int]) -> None:
    if tile.pixel_format != whole.pixel_format:
        raise UnsupportedTypeError("the HEIC picture's tiles are of several kinds; save it as PNG")
    for target, source in zip(whole.planes, tile.planes, strict=True):
        y, x = place[0] * source.shape[0], place[1] * source.shape[1]
        part = target[y : y + source.shape[0], x : x + source.shape[1]]
        part[...] = source[: part.shape[0], : part.shape[1]]


def _starts_inside(tile: Picture, size_wh: tuple[int, int], place: tuple[int, int]) -> bool:
    w, h = tile.size_wh
    return place[1] * w < size_wh[0] and place[0] * h < size_wh[1]


def _reaches(tile: Picture, size_wh: tuple[int, int], place: tuple[int, int]) -> bool:
    """Whether the last tile ends the picture, so that no place stays empty."""
    w, h = tile.size_wh
    return (place[1] + 1) * w >= size_wh[0] and (place[0] + 1) * h >= size_wh[1]


def _values(picture: Picture) -> Plane:
    layout = picture.pixel_format
    if layout.family == "gray":
        return _full_range(picture)
    if layout.family == "rgb":
        return picture.planes[0]
    w, h = picture.size_wh
    # The curve of HDR is for whoever looks at the picture; what is kept are the code values.
    tags = replace(picture.tags, transfer=UNSPECIFIED)
    plain = Picture(picture.planes, layout, tags)
    read = plain.read_deep if layout.bits > 8 else plain.read
    rows = (PixelBox(0, y, w, min(y + _ROWS, h)) for y in range(0, h, _ROWS))
    return cast("Plane", np.concatenate([read(box) for box in rows]))


def _full_range(picture: Picture) -> Plane:
    gray, bits = picture.planes[0], picture.pixel_format.bits
    if picture.tags.is_full_range:
        return gray
    top, unit = (1 << bits) - 1, 1 << (bits - 8)
    spread = (gray.astype(np.float32) - 16 * unit) * (top / (219 * unit))
    return cast("Plane", np.clip(np.rint(spread), 0, top).astype(gray.dtype))


def _undecodable() -> DamagedMediaError:
    return DamagedMediaError(
        "the picture's data cannot be decoded; open it in another program and save it anew"
    )

"""HEIC pictures: the main picture of a file, cropped, turned and mirrored as its boxes say.

What the EXIF says of the orientation is told by the boxes too, and done by them; it counts for nothing here.

Source: ISO/IEC 23008-12, 6.5 (properties), 6.6 (composed pictures) and annex A (metadata).
"""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

import cv2
import numpy as np
from PIL.ImageFile import ImageFile

from app.core.errors import DamagedMediaError, MediaTooLargeError
from app.core.picture import Picture, PixelBox, PixelFormat
from app.core.planes import Plane, stretched, to_8_bits
from app.media.heif_boxes import HeifHead, HeifItem, heif_head, item_bytes
from app.media.heif_decode import (
    CODED_KINDS,
    GRID,
    SAME,
    coded_layout,
    coded_wh,
    composed_values,
    parts_of,
    stored_wh,
)
from app.media.limits import MediaLimits
from app.media.orientation import Orientation, upright

_PICTURES: Final = CODED_KINDS | {GRID, SAME}
_ALPHA_KINDS: Final = (
    b"urn:mpeg:hevc:2015:auxid:1",
    b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
)
_OVERLAP: Final = 2
"""Tiles may reach beyond the picture, but not cover it more often than this; neither may their bytes."""

_EXIF_PREFIX: Final = b"Exif\0\0"
_MAX_CONFIGS: Final = 64
"""All tiles share one; each takes a decoder a millisecond to look at."""

_LEFT_TURNS: Final = (
    Orientation(),
    Orientation(is_transposed=True, flips_y=True),
    Orientation(flips_x=True, flips_y=True),
    Orientation(is_transposed=True, flips_x=True),
)
_MIRRORS: Final = (Orientation(flips_y=True), Orientation(flips_x=True))


class HeifFile(ImageFile):
    """A HEIC whose boxes are read, as Pillow shows its files; the pixels come from `heif_planes`."""

    format = "HEIF"
    format_description = "HEIC, by its boxes"

    def _open(self) -> None:
        """What Pillow's base class calls."""
        file = cast("BinaryIO", self.fp)
        self.head = heif_head(file)
        item = main_item(self.head)
        is_gray, self.bits = coded_layout(parts_of(self.head, item)[0])
        has_alpha = _alpha_item(self.head) is not None
        self._mode = ("L" if is_gray else "RGB") + ("A" if has_alpha else "")
        self._size = _shown_wh(item)
        self.tile = []
        self.info.update(self._texts(file))
        if item.profile is not None:
            self.info["icc_profile"] = item.profile

    @property
    def is_animated(self) -> bool:
        """Whether the file holds more pictures to show than the main one."""
        items = self.head.items.values()
        parts = {number for item in items for number in item.references.get(b"dimg", ())}
        return any(
            item.kind in _PICTURES
            and not (item.is_hidden or item.number in (*parts, self.head.main_number))
            and not {b"auxl", b"thmb"} & set(item.references)
            for item in items
        )

    @property
    def has_other_helpers(self) -> bool:
        """Whether pictures that are not transparency help the main one: depth, a gain map."""
        alpha = _alpha_item(self.head)
        return any(item is not alpha for item in self.head.about_main(b"auxl"))

    def _texts(self, file: BinaryIO) -> Iterator[tuple[str, bytes]]:
        """The first of each kind: nobody needs more, and each costs its reading."""
        about = tuple(self.head.about_main(b"cdsc"))
        exif = next((item for item in about if item.kind == b"Exif"), None)
        xmp = next((item for item in about if item.kind == b"xmp "), None)
        if exif is not None:
            data = item_bytes(file, exif)
            # What stands before the data says how much of it to skip, the prefix; some say 0 and have it all the same.
            held = data[4 + int.from_bytes(data[:4], "big") :]
            yield "exif", _EXIF_PREFIX + held.removeprefix(_EXIF_PREFIX)
        if xmp is not None:
            yield "xmp", item_bytes(file, xmp)


def check_heif(head: HeifHead, file_bytes: int, limits: MediaLimits) -> None:
    """Refuse by what the coded pictures are, whatever the boxes around them promise.

    Raises:
        MediaTooLargeError: A coded picture is over the budget, or all tiles together are.
        DamagedMediaError: A coded picture has no valid header.
        UnsupportedTypeError: The main picture is of a kind that cannot be decoded here.
    """
    most_bytes, most_pixels = _OVERLAP * file_bytes, _OVERLAP * limits.max_still_pixels
    for item in (main_item(head), _alpha_item(head)):
        parts = [] if item is None else parts_of(head, item)
        # One tile may stand in 65 000 places; it is looked at once.
        places = Counter(part.number for part in parts)
        coded = {part.number: part for part in parts}.values()
        sizes = {part.content_of(b"hvcC"): part for part in coded}
        if len(sizes) > _MAX_CONFIGS:
            raise MediaTooLargeError(
                f"the picture's tiles are coded in {len(sizes)} ways, at most {_MAX_CONFIGS} are read; save it anew"
            )
        areas = {config: _area(part, limits) for config, part in sizes.items()}
        pixels = sum(areas[part.content_of(b"hvcC")] * places[part.number] for part in coded)
        held = sum(size * places[part.number] for part in coded for _, size in part.extents)
        if pixels > most_pixels or held > most_bytes:
            raise MediaTooLargeError(
                f"the picture's {len(parts)} tiles hold {pixels} pixels in {held} bytes, at most {most_pixels} in "
                f"{most_bytes} are allowed; save the picture anew"
            )


def heif_planes(image: HeifFile, layout: PixelFormat, limits: MediaLimits) -> tuple[Plane, ...]:
    """The main picture, upright.

    Args:
        image: An open file.
        layout: What its planes are to be: gray or RGB of 8 or 16 bits, with or without alpha.
        limits: Checked once more for every coded picture.

    Raises:
        DamagedMediaError: It cannot be decoded.
        UnsupportedTypeError: Its tiles are not of one kind.
    """
    planes = stored_planes(image.head, cast("BinaryIO", image.fp), limits)
    picture = Picture(planes, layout)
    for step in _steps(main_item(image.head)):
        picture = _cropped(picture, step) if isinstance(step, PixelBox) else upright(picture, step)
    return picture.planes


def stored_planes(head: HeifHead, file: BinaryIO, limits: MediaLimits) -> tuple[Plane, ...]:
    """The main picture of a HEIC or AVIF as it is stored: not cropped, not turned.

    Returns:
        As the planes of a `Picture` of 8 bits, or of 16 where the file has more.

    Raises:
        DamagedMediaError: It cannot be decoded.
        UnsupportedTypeError: Its tiles are not of one kind.
    """
    planes = [composed_values(head, main_item(head), file, limits)]
    alpha_item = _alpha_item(head)
    if alpha_item is not None:
        planes.append(_alpha(composed_values(head, alpha_item, file, limits), planes[0]))
    if len(planes) > 1 and planes[0].ndim == 3:
        planes = [cast("Plane", np.dstack(planes))]
    return tuple(planes)


def main_item(head: HeifHead) -> HeifItem:
    """The picture to show.

    Raises:
        DamagedMediaError: The file names none.
    """
    if head.main is None:
        raise DamagedMediaError("the HEIC names no main picture; save it anew")
    return head.main


def _alpha_item(head: HeifHead) -> HeifItem | None:
    for item in head.about_main(b"auxl"):
        kind = (item.content_of(b"auxC") or b"")[4:].split(b"\0")[0]
        if kind in _ALPHA_KINDS and item.kind in _PICTURES:
            return item
    return None


def _alpha(values: Plane, colors: Plane) -> Plane:
    """Transparency in the size and depth of the colors."""
    plane = values if values.ndim == 2 else values[..., 0]
    if plane.dtype != colors.dtype:
        plane = stretched(plane, 8) if plane.dtype == np.uint8 else to_8_bits(plane, 16)
    return cast("Plane", cv2.resize(np.ascontiguousarray(plane), colors.shape[1::-1]))


def _area(part: HeifItem, limits: MediaLimits) -> int:
    w, h = coded_wh(part)
    limits.check_still((w, h))
    return w * h


def _shown_wh(item: HeifItem) -> tuple[int, int]:
    size_wh = stored_wh(item)
    for step in _steps(item):
        size_wh = step.size_wh if isinstance(step, PixelBox) else step.size_wh(size_wh)
    return size_wh


def _steps(item: HeifItem) -> Iterator[PixelBox | Orientation]:
    """What is to be done with an item's pixels, in order."""
    size_wh = stored_wh(item)
    for name, content in item.properties:
        if name == b"clap" and len(content) >= 32:
            box = _crop(content, size_wh)
            size_wh = box.size_wh
            yield box
        elif name == b"irot" and content:
            turn = _LEFT_TURNS[content[0] & 3]
            size_wh = turn.size_wh(size_wh)
            yield turn
        elif name == b"imir" and content:
            yield _MIRRORS[content[0] & 1]


def _crop(content: bytes, size_wh: tuple[int, int]) -> PixelBox:
    """Source: ISO/IEC 14496-12, 12.1.4: size, and offset of the center from the picture's, as fractions."""
    numbers = struct.unpack(">IIIIiIiI", content[:32])
    whole = PixelBox(0, 0, *size_wh)
    if 0 in numbers[1::2]:
        return whole
    w, h, dx, dy = (top / bottom for top, bottom in zip(numbers[::2], numbers[1::2], strict=True))
    x0, y0 = round((size_wh[0] - w) / 2 + dx), round((size_wh[1] - h) / 2 + dy)
    box = PixelBox(x0, y0, x0 + round(w), y0 + round(h)).clipped_to(size_wh)
    return whole if box.is_empty else box


def _cropped(picture: Picture, box: PixelBox) -> Picture:
    planes = tuple(
        np.ascontiguousarray(plane[box.y0 : box.y1, box.x0 : box.x1]) for plane in picture.planes
    )
    return Picture(cast("tuple[Plane, ...]", planes), picture.pixel_format)

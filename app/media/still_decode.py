"""From an opened still to upright planes, in the layout that the file has."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
from PIL import Image

from app.core.errors import DamagedMediaError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.planes import Plane
from app.core.types import Notice
from app.media.hdr import is_hdr
from app.media.heif import HeifFile, heif_planes, stored_planes
from app.media.heif_boxes import heif_head
from app.media.orientation import upright
from app.media.pillow_errors import pillow_errors
from app.media.still_inks import Inks, ink_conversion
from app.media.still_metadata import profile_fits
from app.media.still_open import OpenStill
from app.media.still_profile import profile_conversion
from app.media.tiff_file import TiffFile, deep_tiff_planes

_FIRST_PICTURE_ONLY = Notice(
    "still.first_picture_only",
    "the file holds several pictures; only its main or first one is used",
)
_PROFILE_DROPPED = Notice(
    "still.profile_dropped",
    "the color profile is damaged or does not fit the pixels; it was left out",
)
_PILLOW_MODES = {"gray": "L", "ya8": "LA", "rgb24": "RGB", "rgba": "RGBA"}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class DecodedStill:
    """The pixels of a still.

    Attributes:
        icc: The profile that the pixels are in, unless they were converted out of it.
        inks: What the pixels were converted from.
        notices: What could not be kept.
    """

    picture: Picture
    icc: bytes | None
    notices: tuple[Notice, ...]
    inks: Inks | None = None


def decode_still(still: OpenStill) -> DecodedStill:
    """Decode the main picture of a file, turned upright.

    Raises:
        TruncatedMediaError: The data end before the picture does.
        DamagedMediaError: The data make no picture.
        MediaTooLargeError: It does not fit in memory.
    """
    if still.image.mode == "CMYK":
        return _decode_inks(still)
    layout = PIXEL_FORMATS[still.layout]
    with pillow_errors(still.format):
        stored = Picture(_stored_planes(still), layout, still.tags)
    icc = _profile(still)
    is_usable = icc is None or profile_fits(icc, layout)
    icc = icc if is_usable else None
    turned = upright(stored, still.orientation)
    # What a file says of HDR goes before its profile, which can only come near.
    conversion = None if is_hdr(still.tags.transfer) else profile_conversion(icc)
    return DecodedStill(
        picture=Picture(turned.planes, layout, turned.tags, conversion),
        icc=icc,
        notices=(*_notices(still), *(() if is_usable else (_PROFILE_DROPPED,))),
    )


def _decode_inks(still: OpenStill) -> DecodedStill:
    """A picture of inks as the RGB that they show, with the inks beside it."""
    with pillow_errors(still.format):
        stored = Picture((np.asarray(still.image),), PIXEL_FORMATS["rgba"])
    pixels = np.asarray(upright(stored, still.orientation).planes[0], np.uint8)
    icc = _profile(still)
    conversion = ink_conversion(icc)
    rgb = conversion.to_rgb(pixels)
    is_usable = icc is None or conversion.icc is not None
    return DecodedStill(
        picture=Picture.from_rgb(rgb),
        icc=None,
        notices=(*_notices(still), *(() if is_usable else (_PROFILE_DROPPED,))),
        inks=Inks(pixels=pixels, rgb=rgb, conversion=conversion),
    )


def _profile(still: OpenStill) -> bytes | None:
    return still.image.info.get("icc_profile") or None


def _notices(still: OpenStill) -> Iterator[Notice]:
    if still.is_one_of_many:
        yield _FIRST_PICTURE_ONLY


def _stored_planes(still: OpenStill) -> tuple[Plane, ...]:
    """Pillow holds 16 bits for gray only, so the other deep pictures go through other decoders."""
    image, layout = still.image, still.layout
    if isinstance(image, HeifFile):
        return heif_planes(image, PIXEL_FORMATS[layout], still.limits)
    if PIXEL_FORMATS[layout].bits == 8:
        return _planes(image, layout)
    if isinstance(image, TiffFile):
        return deep_tiff_planes(image, still.file)
    if still.format == "avif":
        return stored_planes(heif_head(still.file), still.file, still.limits)
    if image.mode == "I;16":
        return _deep_gray(image, has_alpha=layout == "ya16le")
    return _deep_planes(still)


def _planes(image: Image.Image, layout: str) -> tuple[Plane, ...]:
    mode = _PILLOW_MODES[layout]
    pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    if layout == "ya8":
        return _channel(pixels, 0), _channel(pixels, 1)
    return (pixels,)


def _deep_gray(image: Image.Image, *, has_alpha: bool) -> tuple[Plane, ...]:
    """16-bit gray, of which one value may stand for nothing."""
    gray = np.asarray(image).astype(np.uint16, copy=False)
    if not has_alpha:
        return (gray,)
    alpha = np.where(gray == image.info["transparency"], 0, 65_535).astype(np.uint16)
    return gray, alpha


def _deep_planes(still: OpenStill) -> tuple[Plane, ...]:
    still.file.seek(0)
    data = np.frombuffer(still.file.read(), np.uint8)
    pixels = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    w, h = still.stored_wh
    if pixels is None or pixels.dtype != np.uint16 or pixels.shape[:2] != (h, w):
        raise DamagedMediaError(
            f"the 16-bit {still.format} picture cannot be decoded; save it anew as PNG"
        )
    return _from_bgr(cast("Plane", pixels), still.layout)


def _from_bgr(pixels: Plane, layout: str) -> tuple[Plane, ...]:
    """Planes of what OpenCV decodes: blue first, and gray with alpha as four channels."""
    if layout == "ya16le":
        return _channel(pixels, 0), _channel(pixels, 3)
    order = cv2.COLOR_BGR2RGB if layout == "rgb48le" else cv2.COLOR_BGRA2RGBA
    return (cast("Plane", cv2.cvtColor(pixels, order)),)


def _channel(pixels: Plane, index: int) -> Plane:
    return cast("Plane", cv2.extractChannel(pixels, index))

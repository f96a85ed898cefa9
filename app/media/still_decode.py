"""From an opened still to upright planes, in the layout that the file has."""

import io
from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
from PIL import Image, ImageCms

from app.core.errors import DamagedMediaError
from app.core.picture import PIXEL_FORMATS, Picture, Plane
from app.core.types import Notice
from app.media.orientation import upright
from app.media.pillow_errors import pillow_errors
from app.media.still_open import OpenStill

_PILLOW_MODES = {"gray": "L", "ya8": "LA", "rgb24": "RGB", "rgba": "RGBA", "gray16le": "I;16"}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class DecodedStill:
    """The pixels of a still.

    Attributes:
        icc: The profile that the pixels are in, unless they were converted out of it.
        notices: What could not be kept.
    """

    picture: Picture
    icc: bytes | None
    notices: tuple[Notice, ...]


def decode_still(still: OpenStill) -> DecodedStill:
    """Decode the first picture of a file, turned upright.

    Raises:
        TruncatedMediaError: The data end before the picture does.
        DamagedMediaError: The data make no picture.
        MediaTooLargeError: It does not fit in memory.
    """
    icc = still.image.info.get("icc_profile") or None
    notices = list(_notices(still))
    with pillow_errors(still.format):
        if still.image.mode == "CMYK":
            image, icc = _from_cmyk(still.image, icc), None
            planes = _planes(image, still.layout)
        elif _has_deep_color(still.layout):
            planes = _deep_planes(still)
        else:
            planes = _planes(still.image, still.layout)
        stored = Picture(planes, PIXEL_FORMATS[still.layout])
    picture = upright(stored, still.orientation)
    return DecodedStill(picture=picture, icc=icc, notices=tuple(notices))


def _notices(still: OpenStill) -> list[Notice]:
    notices = []
    if still.is_one_of_many:
        notices.append(
            Notice(
                "still.first_picture_only", "the file holds several pictures; the first one is used"
            )
        )
    if still.image.mode == "CMYK":
        notices.append(Notice("still.cmyk_converted", "the CMYK picture was converted to RGB"))
    return notices


def _has_deep_color(layout: str) -> bool:
    """Pillow holds 16 bits for grey only, so the other 16-bit pictures go through OpenCV."""
    return PIXEL_FORMATS[layout].bits == 16 and layout != "gray16le"


def _from_cmyk(image: Image.Image, icc: bytes | None) -> Image.Image:
    """RGB from ink amounts: through the file's own profile where it has a usable one, else by subtraction."""
    if icc is not None:
        try:
            inks = ImageCms.ImageCmsProfile(io.BytesIO(icc))
            converted = ImageCms.profileToProfile(
                image, inks, ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
        except (ImageCms.PyCMSError, OSError):
            converted = None
        if converted is not None:
            return converted
    return image.convert("RGB")


def _planes(image: Image.Image, layout: str) -> tuple[Plane, ...]:
    mode = _PILLOW_MODES[layout]
    pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    if layout == "gray16le":
        return (pixels.astype(np.uint16, copy=False),)
    if layout == "ya8":
        return _channel(pixels, 0), _channel(pixels, 1)
    return (pixels,)


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
    """Planes of what OpenCV decodes: blue first, and grey with alpha as four channels."""
    if layout == "ya16le":
        return _channel(pixels, 0), _channel(pixels, 3)
    order = cv2.COLOR_BGR2RGB if layout == "rgb48le" else cv2.COLOR_BGRA2RGBA
    return (cast("Plane", cv2.cvtColor(pixels, order)),)


def _channel(pixels: Plane, index: int) -> Plane:
    return cast("Plane", cv2.extractChannel(pixels, index))

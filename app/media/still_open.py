"""Opening a still: everything that its header tells, checked before a single pixel is decoded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    WebPImagePlugin,
    features,
)
from PIL.Image import Exif
from PIL.ImageFile import ImageFile

from app.core.color import ColorTags
from app.core.errors import BadDimensionsError, MediaTooLargeError, UnsupportedTypeError
from app.media.boxes import boxes
from app.media.chunks import png_chunks, png_head, read_chunk, tiff_tag_count, webp_size_wh
from app.media.heif import HeifFile, check_heif
from app.media.heif_boxes import HeifHead, heif_head
from app.media.limits import MediaLimits
from app.media.orientation import Orientation
from app.media.pillow_errors import pillow_errors
from app.media.sniff import MediaKind, sniff
from app.media.still_few import FewColors
from app.media.still_metadata import exif_orientation, parsed_exif, png_tags
from app.media.still_types import StillFormat
from app.media.tiff_file import TiffFile, is_deep

_Opener = tuple[StillFormat, Callable[[BinaryIO], ImageFile]]

_OPENERS: dict[MediaKind, _Opener] = {
    MediaKind.JPEG: ("jpeg", JpegImagePlugin.JpegImageFile),
    MediaKind.PNG: ("png", PngImagePlugin.PngImageFile),
    MediaKind.APNG: ("png", PngImagePlugin.PngImageFile),
    MediaKind.WEBP: ("webp", WebPImagePlugin.WebPImageFile),
    MediaKind.ANIMATED_WEBP: ("webp", WebPImagePlugin.WebPImageFile),
    MediaKind.AVIF: ("avif", AvifImagePlugin.AvifImageFile),
    MediaKind.HEIC: ("heic", HeifFile),
    MediaKind.TIFF: ("tiff", TiffFile),
    MediaKind.BMP: ("bmp", BmpImagePlugin.BmpImageFile),
    MediaKind.GIF: ("gif", GifImagePlugin.GifImageFile),
}
"""The one decoder that may see each kind; `Image.open` would ask them all, whatever the first bytes say."""

_TURNED_BY_READER = frozenset({"tiff", "heic"})
_MIN_SIDE_PX = 2
_PNG_GRAY = 0
_PNG_PALETTE = 3
_PNG_GRAY_ALPHA = 4
_MAX_TIFF_TAGS = 1024
"""Cameras and scanners write under 100; 60 000 took a decoder 0.4 s before it looked at the size."""
_BYTES_PER_PIXEL = 8
_EXTRA_BYTES = 16 << 20

_LAYOUTS = {
    "1": "gray",
    "L": "gray",
    "LA": "ya8",
    "La": "ya8",
    "P": "rgb24",
    "PA": "rgba",
    "RGB": "rgb24",
    "RGBX": "rgb24",
    "RGBA": "rgba",
    "RGBa": "rgba",
    "CMYK": "rgb24",
    "YCbCr": "rgb24",
    "I;16": "gray16le",
    "I;16B": "gray16le",
}
_WITH_ALPHA = {"gray": "ya8", "rgb24": "rgba", "gray16le": "ya16le"}
_WITH_16_BITS = {"gray": "gray16le", "ya8": "ya16le", "rgb24": "rgb48le", "rgba": "rgba64le"}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OpenStill:
    """A still whose header is read and within the budget.

    Attributes:
        image: Its pixels are not decoded yet.
        file: The open file, for whoever needs the bytes as they are.
        stored_wh: Size before it is turned upright.
        layout: Name in `core.picture.PIXEL_FORMATS` of what it decodes to.
        bits: Bits a channel in the file, 8 for fewer; the layout holds 9 to 16 of them as 16.
        few: How a PNG or TIFF of few colors holds them.
        orientation: How to turn it upright.
        tags: What the file says of its colors, beside or instead of a profile.
        limits: The budget that the header was found to be within.
    """

    image: ImageFile
    file: BinaryIO
    kind: MediaKind
    format: StillFormat
    stored_wh: tuple[int, int]
    layout: str
    bits: int
    few: FewColors | None
    exif: Exif
    orientation: Orientation
    tags: ColorTags
    limits: MediaLimits

    @property
    def size_wh(self) -> tuple[int, int]:
        """Size of the upright picture."""
        return self.orientation.size_wh(self.stored_wh)

    @property
    def is_one_of_many(self) -> bool:
        """Whether the file holds more pictures than the first."""
        return bool(getattr(self.image, "is_animated", False))


@contextmanager
def open_still(path: Path, limits: MediaLimits) -> Iterator[OpenStill]:
    """Open a still, or the first picture of an animation, and check its header.

    Raises:
        MediaNotFoundError: There is no such file.
        EmptyMediaError: It has no bytes.
        UnsupportedTypeError: It is no still, or one of a kind that cannot be decoded here.
        BadDimensionsError: A side is under 2 pixels.
        MediaTooLargeError: It is over the budget; nothing was decoded then.
        TruncatedMediaError: Its header ends early.
        DamagedMediaError: Its header makes no sense.
    """
    kind = sniff(path)
    name, opener = _opener(kind)
    with path.open("rb") as file:
        _check_bytes(file, limits)
        with pillow_errors(name):
            head = _checked_head(file, name, limits)
            file.seek(0)
            image = opener(file)
        with image:
            _check_size(image.size, limits)
            yield _described(image, file, kind, head, limits)


def _opener(kind: MediaKind) -> _Opener:
    found = _OPENERS.get(kind)
    if found is None:
        raise UnsupportedTypeError(f"got a {kind} file, wanted a still picture")
    if kind is MediaKind.AVIF and not features.check("avif"):
        raise UnsupportedTypeError(
            "AVIF pictures cannot be read by this installation; save it as PNG"
        )
    return found


def _check_bytes(file: BinaryIO, limits: MediaLimits) -> None:
    """Some decoders take the whole file in before they look at it, so its length has a budget too."""
    size = file.seek(0, 2)
    most = limits.max_still_pixels * _BYTES_PER_PIXEL + _EXTRA_BYTES
    if size > most:
        raise MediaTooLargeError(f"the picture file has {size} bytes, at most {most} are allowed")


def _checked_head(file: BinaryIO, name: StillFormat, limits: MediaLimits) -> HeifHead:
    """What the decoder would not refuse in time, or not by the right name."""
    if name == "webp":
        _check_size(webp_size_wh(file), limits)
    if name == "png":
        _check_size(png_head(file).size_wh, limits)
    if name == "tiff" and (tags := tiff_tag_count(file)) > _MAX_TIFF_TAGS:
        raise MediaTooLargeError(
            f"the TIFF has {tags} tags, at most {_MAX_TIFF_TAGS} are allowed; save the picture anew"
        )
    if name not in ("avif", "heic"):
        return HeifHead()
    file_bytes = file.seek(0, 2)
    for _ in boxes(file, 0, file_bytes):
        pass
    head = heif_head(file)
    if name == "heic":
        check_heif(head, file_bytes, limits)
    return head


def _check_size(size_wh: tuple[int, int], limits: MediaLimits) -> None:
    if min(size_wh) < _MIN_SIDE_PX:
        raise BadDimensionsError(
            f"size: got {size_wh[0]} x {size_wh[1]} pixels, wanted at least {_MIN_SIDE_PX} a side"
        )
    limits.check_still(size_wh)


def _described(
    image: ImageFile, file: BinaryIO, kind: MediaKind, head: HeifHead, limits: MediaLimits
) -> OpenStill:
    name = _OPENERS[kind][0]
    with pillow_errors(name):
        exif = _exif(image, file, name)
        # Pillow turns a TIFF by itself, its `size` included.
        orientation = Orientation() if name in _TURNED_BY_READER else exif_orientation(exif)
        few = _few(image, file)
        mode, bits = _samples(image, file, head)
        layout = _layout(image, mode, bits)
        tags = png_tags(file) if name == "png" else head.tags
    return OpenStill(
        image=image,
        file=file,
        kind=kind,
        format=name,
        stored_wh=image.size,
        layout=layout,
        bits=bits,
        few=few,
        exif=exif,
        orientation=orientation,
        tags=tags,
        limits=limits,
    )


def _exif(image: ImageFile, file: BinaryIO, name: StillFormat) -> Exif:
    if name == "tiff":
        return image.getexif()
    if name == "png":
        found = (read_chunk(file, c) for c in png_chunks(file) if c.name == b"eXIf")
        return parsed_exif(next(found, b""))
    return parsed_exif(image.info.get("exif") or b"")


def _samples(image: ImageFile, file: BinaryIO, head: HeifHead) -> tuple[str, int]:
    """Pillow's name of the pixel type, and the bits of a sample, 8 for fewer."""
    if isinstance(image, PngImagePlugin.PngImageFile):
        png = png_head(file)
        # Pillow, which has no 16-bit gray with alpha, calls it RGBA.
        return "LA" if png.color_type == _PNG_GRAY_ALPHA else image.mode, max(png.bits, 8)
    if isinstance(image, TiffFile):
        return image.mode, 16 if is_deep(image) else 8
    if isinstance(image, AvifImagePlugin.AvifImageFile):
        is_gray = head.is_gray_av1
        mode = {"RGB": "L", "RGBA": "LA"}.get(image.mode, image.mode) if is_gray else image.mode
        return mode, head.av1_bits
    return image.mode, image.bits if isinstance(image, HeifFile) else 8


def _few(image: ImageFile, file: BinaryIO) -> FewColors | None:
    if isinstance(image, TiffFile):
        bits, has_palette = image.bits, image.mode == "P"
    elif isinstance(image, PngImagePlugin.PngImageFile):
        png = png_head(file)
        bits, has_palette = png.bits, png.color_type == _PNG_PALETTE
        if png.color_type == _PNG_GRAY and bits < 8 and image.mode == "L":
            _scale_clear_value(image, bits)
    else:
        return None
    is_few = has_palette or (bits < 8 and image.mode in ("1", "L"))
    return FewColors(bits=bits, has_palette=has_palette) if is_few else None


def _scale_clear_value(image: ImageFile, bits: int) -> None:
    """Pillow spreads gray of 2 and 4 bits over 8, but compares it with the transparent value as the file has it."""
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        image.info["transparency"] = clear * (255 // ((1 << bits) - 1))


def _layout(image: ImageFile, mode: str, bits: int) -> str:
    layout = _LAYOUTS.get(mode)
    if layout is None:
        raise UnsupportedTypeError(
            f"pixels of type {mode} cannot be edited; save the picture with 8 or 16 bits a channel"
        )
    if mode == "CMYK":
        return layout
    if image.has_transparency_data:
        layout = _WITH_ALPHA.get(layout, layout)
    return _WITH_16_BITS.get(layout, layout) if bits > 8 else layout

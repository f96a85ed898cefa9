"""From planes to the bytes of a picture file, with the metadata that goes on."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from PIL import Image, features

from app.core.errors import OutputError, UnsupportedOutputError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.planes import Plane, to_8_bits
from app.core.types import Notice
from app.media.hdr import is_hdr
from app.media.still_avif import AVIF_BITS, encode_avif
from app.media.still_few import DEPTH_RAISED, FewColorsPng, in_few_colors
from app.media.still_inks import Inks
from app.media.still_png import encode_png
from app.media.still_tiff import encode_tiff
from app.media.still_types import JpegCoding, Still, StillFormat

_MAX_SIDES_PX: dict[StillFormat, int] = {"jpeg": 65_500, "webp": 16_383, "avif": 65_535}
_FINE_QUALITY = 90
_CHROMA_WIDENED = Notice(
    "still.chroma_widened",
    "the JPEG keeps its colors in a resolution (4:1:1, 4:4:0 or the like) that is not written; they got the full one",
)
_INK_FORMATS = frozenset({"jpeg", "tiff"})
_CMYK_CONVERTED = Notice(
    "still.cmyk_converted",
    "the picture of printing inks (CMYK) was converted to RGB; a result that ends in .jpg or .tiff keeps the inks",
)
_DEEP_FORMATS = frozenset({"png", "tiff", "avif"})
_HDR_FORMATS = frozenset({"png", "avif"})
_TONE_MAPPED = Notice(
    "still.tone_mapped",
    "the picture is HDR, which only PNG and AVIF results keep; it became an ordinary one",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StillEncoding:
    """How to write a still.

    Attributes:
        format: Of the new file.
        quality: 0 to 100, for a format that loses something and has no example in the input.
    """

    format: StillFormat
    quality: int = 80


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Pixels:
    """What an encoder is given: values of a depth that its format has.

    Attributes:
        values: `(H, W)` or `(H, W, channels)`.
        still: What else the file carries, as it fits to the values.
        few: The same in few bits, where they are to be written so.
        is_inks: Four channels are inks, and not RGB with alpha.
    """

    values: Plane
    still: Still
    few: FewColorsPng | None = None
    is_inks: bool = False

    @property
    def image(self) -> Image.Image:
        mode = "CMYK" if self.is_inks else {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[self.channels]
        return Image.fromarray(self.values, mode)

    @property
    def channels(self) -> int:
        return 1 if self.values.ndim == 2 else self.values.shape[2]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Task:
    """Everything that an encoder needs."""

    pixels: _Pixels
    xmp: bytes
    quality: int

    @property
    def still(self) -> Still:
        return self.pixels.still


def encode_still(
    still: Still, picture: Picture, *, xmp: bytes, encoding: StillEncoding
) -> tuple[bytes, tuple[Notice, ...]]:
    """Encode a picture with what the still carried.

    Args:
        still: Gives profile, EXIF, and the way of coding when the format stays the same.
        picture: The pixels, of the still's size.
        xmp: The packet to write.
        encoding: Format and quality.

    Returns:
        The file's bytes, and what the format could not keep.

    Raises:
        UnsupportedOutputError: The format cannot be labeled, cannot hold the picture, or is not available here.
        OutputError: The encoder failed.
    """
    encoder = _encoder(encoding.format)
    _check_side(picture.size_wh, encoding.format)
    pixels, lost = _prepared(still, picture, encoding.format)
    task = _Task(pixels=pixels, xmp=xmp, quality=encoding.quality)
    try:
        return encoder(task), (*lost, *_coding_notices(still, encoding.format))
    except (OSError, ValueError, MemoryError) as error:
        raise OutputError(
            f"the picture could not be encoded as {encoding.format}; try PNG instead"
        ) from error


def _prepared(
    still: Still, picture: Picture, name: StillFormat
) -> tuple[_Pixels, tuple[Notice, ...]]:
    """What to write, and what of it is not as it was."""
    if still.inks is not None and name in _INK_FORMATS:
        return _in_inks(still, still.inks, picture)
    is_tone_mapped = is_hdr(picture.tags.transfer) and name not in _HDR_FORMATS
    if is_tone_mapped:
        still, picture = _without_hdr(still), _tone_mapped(picture)
    elif _loses_gray_profile(still, picture, name):
        picture = _in_srgb(picture)
    values, notices = _fitted(_interleaved(picture), name, still.bits)
    few, widened = _few(values, still, name)
    tone_mapped = (_TONE_MAPPED,) if is_tone_mapped else ()
    converted = (_CMYK_CONVERTED,) if still.inks is not None else ()
    lost = (*tone_mapped, *converted, *notices, *widened)
    return _Pixels(values=values, still=still, few=few), lost


def _in_inks(still: Still, inks: Inks, picture: Picture) -> tuple[_Pixels, tuple[Notice, ...]]:
    own = replace(still, icc=inks.conversion.icc)
    is_reduced = still.bits > 8
    notice = Notice(
        "still.depth_reduced", f"inks are written in 8 bits, the input had {still.bits}"
    )
    values = inks.changed_to(picture.planes[0])
    return _Pixels(values=values, still=own, is_inks=True), (notice,) * is_reduced


def _without_hdr(still: Still) -> Still:
    """What else a still carries, without what is said of its HDR colors."""
    kept = tuple(chunk for chunk in still.png_chunks if chunk[0] == b"pHYs")
    return replace(still, icc=None, png_chunks=kept)


def _tone_mapped(picture: Picture) -> Picture:
    """An HDR picture as screens without HDR show it, in 8 bits."""
    rgb = picture.read(picture.box)
    if not picture.pixel_format.has_alpha:
        return Picture.from_rgb(rgb)
    alpha = to_8_bits(picture.planes[0][..., 3], picture.pixel_format.bits)
    return Picture((np.dstack([rgb, alpha]),), PIXEL_FORMATS["rgba"])


def _loses_gray_profile(still: Still, picture: Picture, name: StillFormat) -> bool:
    """Formats without gray write it as RGB, to which its profile does not fit."""
    is_gray = still.icc is not None and still.icc[16:20] == b"GRAY"
    is_written_as_rgb = name == "webp" or (name == "avif" and picture.pixel_format.has_alpha)
    return is_gray and is_written_as_rgb and picture.conversion is not None


def _in_srgb(picture: Picture) -> Picture:
    """Gray in 8 bits that needs no profile."""
    gray = np.ascontiguousarray(picture.read(picture.box)[..., 0])
    bits = picture.pixel_format.bits
    alpha = tuple(to_8_bits(plane, bits) for plane in picture.planes[1:])
    return Picture((gray, *alpha), PIXEL_FORMATS["ya8" if alpha else "gray"])


def _few(
    pixels: Plane, still: Still, name: StillFormat
) -> tuple[FewColorsPng | None, tuple[Notice, ...]]:
    """The picture in as few bits as its file had, in a file of the same kind; or a word that it has more now."""
    if still.few is None or name != still.format:
        return None, ()
    few = in_few_colors(pixels, still.few) if name == "png" else None
    return few, (() if few is not None else (DEPTH_RAISED,))


def _coding_notices(still: Still, name: StillFormat) -> tuple[Notice, ...]:
    is_widened = name == "jpeg" and still.jpeg is not None and still.jpeg.is_widened
    return (_CHROMA_WIDENED,) if is_widened else ()


def _encoder(name: StillFormat) -> Callable[[_Task], bytes]:
    encoder = _ENCODERS.get(name)
    if encoder is None:
        raise UnsupportedOutputError(
            f"{name} files cannot carry the label that every result has; name the output .png instead"
        )
    if name == "avif" and not features.check("avif"):
        raise UnsupportedOutputError(
            "AVIF cannot be written by this installation; name the output .png instead"
        )
    return encoder


def _check_side(size_wh: tuple[int, int], name: StillFormat) -> None:
    most = _MAX_SIDES_PX.get(name)
    if most is not None and max(size_wh) > most:
        raise UnsupportedOutputError(
            f"{name} holds at most {most} pixels a side, got {size_wh[0]} x {size_wh[1]}; "
            "name the output .png instead"
        )


def _interleaved(picture: Picture) -> Plane:
    """`(H, W)` or `(H, W, channels)` of the planes of a still."""
    if picture.pixel_format.family == "yuv":
        raise ValueError(f"a still has RGB or gray pixels, got {picture.pixel_format.name}")
    return (
        picture.planes[0] if len(picture.planes) == 1 else cast("Plane", np.dstack(picture.planes))
    )


def _fitted(pixels: Plane, name: StillFormat, bits: int) -> tuple[Plane, tuple[Notice, ...]]:
    """Pixels with the depth and the channels that a format has."""
    notices: list[Notice] = []
    if pixels.dtype == np.uint16 and name not in _DEEP_FORMATS:
        pixels = ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
        notices.append(
            Notice("still.depth_reduced", f"{name} holds 8 bits a channel, the input had {bits}")
        )
    if pixels.dtype == np.uint16 and name == "avif" and bits > AVIF_BITS:
        notices.append(
            Notice("still.depth_reduced", f"the AVIF has 10 bits a channel, the input had {bits}")
        )
    if name == "jpeg" and pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        pixels = _on_white(pixels)
        notices.append(
            Notice("still.alpha_flattened", "JPEG has no transparency; it was filled with white")
        )
    return pixels, tuple(notices)


def _on_white(pixels: Plane) -> Plane:
    alpha = pixels[..., -1:].astype(np.float32) / 255.0
    mixed = np.rint(pixels[..., :-1] * alpha + 255.0 * (1.0 - alpha)).astype(np.uint8)
    return cast("Plane", mixed[..., 0] if mixed.shape[2] == 1 else mixed)


def _jpeg(task: _Task) -> bytes:
    coding, pixels = task.still.jpeg, task.pixels
    is_fine = pixels.is_inks or task.quality >= _FINE_QUALITY
    settings: dict[str, object] = {
        "quality": max(1, task.quality),
        "subsampling": 0 if is_fine else 2,
    }
    if coding is not None and _fits(coding, pixels):
        settings = {
            "qtables": [list(table) for table in coding.tables],
            "subsampling": coding.subsampling,
            "keep_rgb": coding.is_rgb,
        }
    if task.still.dpi is not None:
        settings["dpi"] = task.still.dpi
    is_progressive = coding is not None and coding.is_progressive
    try:
        return _saved(task, "JPEG", progressive=is_progressive, **settings)
    except OSError:
        # A progressive file is built in a buffer whose size Pillow guesses; noise at the finest tables is larger.
        return _saved(task, "JPEG", **settings)


def _fits(coding: JpegCoding, pixels: _Pixels) -> bool:
    """Whether the file's way of coding has what these pixels need: colors and inks have different tables."""
    if coding.is_inks or pixels.is_inks:
        return coding.is_inks == pixels.is_inks
    return len(coding.tables) >= min(pixels.channels, 2)


def _webp(task: _Task) -> bytes:
    is_lossless = task.still.is_lossless
    quality = 75 if is_lossless else task.quality
    return _saved(task, "WEBP", lossless=is_lossless, quality=quality, exact=True)


def _avif(task: _Task) -> bytes:
    return encode_avif(task.pixels.values, still=task.still, xmp=task.xmp, quality=task.quality)


def _saved(task: _Task, name: str, **settings: object) -> bytes:
    out = io.BytesIO()
    icc = task.still.icc
    is_written_as_rgb = name == "WEBP" or task.pixels.channels == 2
    if icc is not None and icc[16:20] == b"GRAY" and is_written_as_rgb:
        icc = None
    task.pixels.image.save(
        out, name, xmp=task.xmp, exif=task.still.exif, icc_profile=icc, **settings
    )
    return out.getvalue()


def _png(task: _Task) -> bytes:
    return encode_png(task.pixels.values, still=task.still, xmp=task.xmp, few=task.pixels.few)


def _tiff(task: _Task) -> bytes:
    values = task.pixels.values
    if values.dtype == np.uint16 and task.pixels.channels == 2:
        # 16-bit gray with alpha is allowed in a TIFF, but hardly any program opens it.
        values = values[..., (0, 0, 0, 1)]
    return encode_tiff(values, still=task.still, xmp=task.xmp, is_inks=task.pixels.is_inks)


_ENCODERS: dict[StillFormat, Callable[[_Task], bytes]] = {
    "jpeg": _jpeg,
    "png": _png,
    "webp": _webp,
    "avif": _avif,
    "tiff": _tiff,
}

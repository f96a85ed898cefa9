"""Still pictures: read upright in their own layout, written back with all that may go on."""

from pathlib import Path

from PIL import JpegImagePlugin

from app.core.errors import UnsupportedOutputError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import Notice
from app.media.chunks import webp_chunks
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.media.packets import xmp_packets
from app.media.still_decode import decode_still
from app.media.still_encode import StillEncoding, encode_still
from app.media.still_extras import has_extras
from app.media.still_metadata import clean_exif, kept_png_chunks
from app.media.still_open import OpenStill, open_still
from app.media.still_types import JpegCoding, PngChunk, Still, StillFormat
from app.media.storage import write_file

_FORMAT_OF_SUFFIX: dict[str, StillFormat] = {
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".jpe": "jpeg",
    ".jfif": "jpeg",
    ".png": "png",
    ".webp": "webp",
    ".avif": "avif",
    ".tif": "tiff",
    ".tiff": "tiff",
}
SUFFIX_OF_FORMAT: dict[StillFormat, str] = {
    "jpeg": ".jpg",
    "png": ".png",
    "webp": ".webp",
    "avif": ".avif",
    "tiff": ".tiff",
}
"""The formats that can be written, with the usual ending of their names."""


def still_info(path: Path, limits: MediaLimits) -> MediaInfo:
    """Tell what a still is from its header; no pixel is decoded.

    Raises:
        MediaError: As `open_still`.
    """
    with open_still(path, limits) as still:
        layout = PIXEL_FORMATS[still.layout]
        return MediaInfo(
            kind="still",
            container=still.kind,
            size_wh=still.size_wh,
            pixel_format=layout.name,
            bits=still.bits,
            tags=still.tags,
            has_alpha=layout.has_alpha,
            rotation_deg=still.orientation.rotation_deg,
            is_mirrored=still.orientation.is_mirrored,
            codec=still.format,
        )


def read_still(path: Path, limits: MediaLimits) -> Still:
    """Read a still, or the first picture of an animation or of several pages.

    Gray, alpha and 16 bits stay what they are; few bits become 8, and a palette RGB, with alpha where it has some; of
    inks the RGB that they show is read, and they are kept beside it. Other pages, text chunks, thumbnails and
    everything private are not taken over.

    Raises:
        MediaNotFoundError: There is no such file.
        EmptyMediaError: It has no bytes.
        UnsupportedTypeError: It is no still, or of a kind that cannot be decoded here.
        BadDimensionsError: A side is under 2 pixels.
        MediaTooLargeError: It is over the budget; no pixel was decoded then.
        TruncatedMediaError: The file ends before its content does.
        DamagedMediaError: The content makes no picture.
    """
    with open_still(path, limits) as still:
        exif = clean_exif(still.exif, still.size_wh)
        decoded = decode_still(still)
        xmp = next(iter(xmp_packets(path)), None)
        dropped = [] if exif is not None else [_EXIF_DROPPED]
        if has_extras(still, xmp):
            dropped.append(_EXTRAS_DROPPED)
        return Still(
            picture=decoded.picture,
            format=still.format,
            icc=decoded.icc,
            exif=exif or b"",
            xmp=xmp,
            dpi=_dpi(still),
            png_chunks=_png_chunks(still, has_profile=decoded.icc is not None),
            jpeg=_jpeg_coding(still),
            is_lossless=_is_lossless(still),
            bits=still.bits,
            inks=decoded.inks,
            few=still.few,
            notices=(*decoded.notices, *dropped),
        )


def write_still(
    path: Path, still: Still, picture: Picture, *, xmp: bytes, encoding: StillEncoding
) -> tuple[Notice, ...]:
    """Write a still with the profile, EXIF and way of coding of the one it was made from.

    Args:
        path: Written as it is named, whatever its suffix; the caller renames it when all is verified.
        still: What was read.
        picture: What to write, of the same size.
        xmp: The packet with the labels.
        encoding: Format, and a quality for a JPEG, WebP or AVIF that is not made from a file of its own kind.

    Returns:
        What the format could not keep.

    Raises:
        UnsupportedOutputError: The format cannot carry a label or cannot hold the picture.
        UnwritableOutputError: The folder is missing or closed to us.
        StorageFullError: The disk is full; no part of the file stays.
    """
    data, notices = encode_still(still, picture, xmp=xmp, encoding=encoding)
    write_file(path, data)
    return notices


def output_format(output: Path, input_format: StillFormat) -> StillFormat:
    """The format that an output's name asks for; without a suffix the input's own, or PNG where that has no labels.

    Raises:
        UnsupportedOutputError: Files of this kind cannot carry the label, or we do not write them.
    """
    suffix = output.suffix.lower()
    if not suffix:
        return input_format if input_format in SUFFIX_OF_FORMAT else "png"
    found = _FORMAT_OF_SUFFIX.get(suffix)
    if found is None:
        raise UnsupportedOutputError(
            f"pictures are not written as {suffix}: only formats that can carry the AI label are; "
            f"end the output's name in {', '.join(SUFFIX_OF_FORMAT.values())}"
        )
    return found


_OTHER_CHROMA = -1
_FULL_CHROMA = 0
_HALF_WIDTH_CHROMA = 1
_LUMA_AND_CHROMA_OF_INKS = 2
_EXIF_DROPPED = Notice(
    "still.exif_dropped", "the EXIF data are damaged or too long and were left out"
)

_EXTRAS_DROPPED = Notice(
    "still.extras_dropped",
    "beside its picture the file holds an HDR gain map, a depth map, a second view or a short video; they show the "
    "face that was there before, and were left out",
)


def _dpi(still: OpenStill) -> tuple[float, float] | None:
    dpi = still.image.info.get("dpi")
    if not isinstance(dpi, tuple) or len(dpi) != 2:
        return None
    x, y = float(dpi[0]), float(dpi[1])
    is_usable = 1 <= x <= 65_535 and 1 <= y <= 65_535
    return ((y, x) if still.orientation.is_transposed else (x, y)) if is_usable else None


def _png_chunks(still: OpenStill, *, has_profile: bool) -> tuple[PngChunk, ...]:
    if still.format != "png":
        return ()
    return tuple(c for c in kept_png_chunks(still.file) if has_profile or c[0] != b"iCCP")


def _jpeg_coding(still: OpenStill) -> JpegCoding | None:
    """How a JPEG was encoded."""
    image = still.image
    if not isinstance(image, JpegImagePlugin.JpegImageFile):
        return None
    tables = tuple(
        tuple(image.quantization[layer[3]])
        for layer in image.layer
        if layer[3] in image.quantization
    )
    if len(tables) != len(image.layer):
        return None
    if image.mode == "CMYK":
        return _ink_coding(still, image, tables)
    if tables[1:2] == tables[2:3]:
        tables = tables[:2]
    sampling = JpegImagePlugin.get_sampling(image)
    is_widened = sampling == _OTHER_CHROMA and len(image.layer) == 3
    if still.orientation.is_transposed:
        tables = tuple(_transposed(table) for table in tables)
        is_widened |= sampling == _HALF_WIDTH_CHROMA
        sampling = _FULL_CHROMA if sampling == _HALF_WIDTH_CHROMA else sampling
    return JpegCoding(
        tables=tables,
        # Pillow cannot write the rarer samplings; full chroma loses nothing against them.
        subsampling=max(sampling, _FULL_CHROMA),
        is_progressive=bool(image.info.get("progressive")),
        is_rgb=image.mode == "RGB" and image.info.get("adobe_transform") == 0,
        is_widened=is_widened,
    )


def _ink_coding(
    still: OpenStill, image: JpegImagePlugin.JpegImageFile, tables: tuple[tuple[int, ...], ...]
) -> JpegCoding:
    """Inks are written as inks: of luma, chroma and black, an ink is most like luma."""
    is_luma_first = image.info.get("adobe_transform") == _LUMA_AND_CHROMA_OF_INKS
    if is_luma_first or len(set(tables)) == 1:
        tables = tables[:1]
    if still.orientation.is_transposed:
        tables = tuple(_transposed(table) for table in tables)
    return JpegCoding(
        tables=tables,
        subsampling=_FULL_CHROMA,
        is_progressive=bool(image.info.get("progressive")),
        is_inks=True,
        is_widened=len({layer[1:3] for layer in image.layer}) > 1,
    )


def _transposed(table: tuple[int, ...]) -> tuple[int, ...]:
    """A quantization table for a picture whose rows have become columns."""
    return tuple(table[8 * x + y] for y in range(8) for x in range(8))


def _is_lossless(still: OpenStill) -> bool:
    if still.format == "webp":
        return any(chunk.name == b"VP8L" for chunk in webp_chunks(still.file))
    return still.format not in ("jpeg", "avif", "heic")

"""What a still carries beside its pixels, and what of it may go on into the result.

Kept: the color profile, the resolution, when and how the picture was taken, its description and rights.
Dropped: where (GPS), with which device, by whom, makers' own notes, and embedded thumbnails, which would show the face
that was there before. The orientation is dropped because the pixels are upright now.
"""

import struct
from typing import BinaryIO

from PIL import Image

from app.core.color import ColorTags
from app.core.picture import PixelFormat
from app.media.chunks import png_chunks, read_chunk
from app.media.orientation import Orientation
from app.media.still_types import PngChunk

_EXIF_IFD = 0x8769
_WIDTH, _HEIGHT = 0xA002, 0xA003
_USER_COMMENT = 0x9286

_ORIENTATION = 0x0112
_ORIENTATIONS = {
    2: Orientation(flips_x=True),
    3: Orientation(flips_x=True, flips_y=True),
    4: Orientation(flips_y=True),
    5: Orientation(is_transposed=True),
    6: Orientation(is_transposed=True, flips_x=True),
    7: Orientation(is_transposed=True, flips_x=True, flips_y=True),
    8: Orientation(is_transposed=True, flips_y=True),
}
"""Source: EXIF 2.32, 4.6.4 A, tag `Orientation`."""

_KEPT_TAGS = frozenset(
    {
        0x010E,  # ImageDescription
        0x011A,  # XResolution
        0x011B,  # YResolution
        0x0128,  # ResolutionUnit
        0x0132,  # DateTime
        0x4746,  # Rating
        0x8298,  # Copyright
        0x9C9B,  # XPTitle
        0x9C9C,  # XPComment
        0x9C9E,  # XPKeywords
        0x9C9F,  # XPSubject
    }
)
_DROPPED_DETAILS = frozenset(
    {
        0x927C,  # MakerNote
        0xA004,  # RelatedSoundFile
        0xA005,  # Interoperability IFD, an offset into the old file
        0xA40B,  # DeviceSettingDescription
        0xA420,  # ImageUniqueID
        *range(0xA430, 0xA436),  # owner, serial numbers, lens
        *range(0xA437, 0xA43D),  # photographer, editor, firmware, software
    }
)
_KEPT_PNG_CHUNKS = frozenset(
    {b"cHRM", b"gAMA", b"sRGB", b"iCCP", b"cICP", b"mDCV", b"cLLI", b"pHYs"}
)
_MAX_EXIF_BYTES = 60_000
_EXIF_ERRORS = (
    struct.error,
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    ZeroDivisionError,
    Warning,
)


def parsed_exif(data: bytes) -> Image.Exif:
    """The EXIF of a file; empty when it cannot be read."""
    exif = Image.Exif()
    try:
        exif.load(data)
        exif.get_ifd(_EXIF_IFD)
    except _EXIF_ERRORS:
        return Image.Exif()
    return exif


def exif_orientation(exif: Image.Exif) -> Orientation:
    """How the stored picture lies; upright where the tag is missing or nonsense."""
    return _ORIENTATIONS.get(exif.get(_ORIENTATION, 1), Orientation())


def clean_exif(exif: Image.Exif, size_wh: tuple[int, int]) -> bytes | None:
    """The part of the EXIF that may go on.

    Args:
        exif: As read.
        size_wh: Size of the upright picture, written where the EXIF tells one.

    Returns:
        EXIF data with its `Exif` prefix, empty when nothing is worth keeping; `None` when they cannot be written.
    """
    kept = Image.Exif()
    try:
        for tag in _KEPT_TAGS & set(exif):
            kept[tag] = exif[tag]
        details = {t: v for t, v in exif.get_ifd(_EXIF_IFD).items() if _is_kept_detail(t, v)}
        details.update(
            {t: v for t, v in zip((_WIDTH, _HEIGHT), size_wh, strict=True) if t in details}
        )
        if details:
            kept[_EXIF_IFD] = details
        data = kept.tobytes() if len(kept) else b""
    except _EXIF_ERRORS:
        return None
    return data if len(data) <= _MAX_EXIF_BYTES else None


def _is_kept_detail(tag: int, value: object) -> bool:
    """A comment that holds another program's AI label goes too: there is one label a file."""
    if tag == _USER_COMMENT and "AIGC" in str(value):
        return False
    return tag not in _DROPPED_DETAILS


def profile_fits(icc: bytes, pixel_format: PixelFormat) -> bool:
    """Whether a profile is one, and is about pixels of this kind. Source: ICC.1:2010, 7.2 (header)."""
    if icc[36:40] != b"acsp" or int.from_bytes(icc[:4], "big") != len(icc):
        return False
    return icc[16:20] == (b"GRAY" if pixel_format.family == "gray" else b"RGB ")


def png_tags(file: BinaryIO) -> ColorTags:
    """What the `cICP` chunk of a PNG says. Source: PNG specification, third edition, 11.3.2.6."""
    for chunk in png_chunks(file):
        if chunk.name == b"cICP" and chunk.size == 4:
            primaries, transfer, _, _ = read_chunk(file, chunk)
            return ColorTags(primaries=primaries, transfer=transfer)
    return ColorTags()


def kept_png_chunks(file: BinaryIO) -> tuple[PngChunk, ...]:
    """The chunks of a PNG that say how its numbers become colors, and its resolution, as they are.

    Raises:
        TruncatedMediaError: The file ends before `IEND`.
    """
    return tuple(
        (chunk.name, read_chunk(file, chunk))
        for chunk in png_chunks(file)
        if chunk.name in _KEPT_PNG_CHUNKS
    )

"""A still in memory: its picture, and what else its file carried."""

from dataclasses import dataclass
from typing import Literal

from app.core.color import UNSPECIFIED, ColorTags
from app.core.picture import Picture
from app.core.types import Notice
from app.media.hdr import is_hdr
from app.media.still_few import FewColors
from app.media.still_inks import Inks

StillFormat = Literal["jpeg", "png", "webp", "avif", "tiff", "bmp", "gif", "heic"]

PngChunk = tuple[bytes, bytes]
"""Type and content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JpegCoding:
    """How a JPEG was encoded, to do it the same way again.

    Attributes:
        tables: One quantization table of 64 numbers a component.
        subsampling: Pillow's number: 0 is 4:4:4, 1 is 4:2:2, 2 is 4:2:0.
        is_inks: It keeps cyan, magenta, yellow and black.
        is_rgb: It keeps red, green and blue instead of luma and chroma.
        is_widened: `subsampling` is finer than the file's own, which cannot be written.
    """

    tables: tuple[tuple[int, ...], ...]
    subsampling: int
    is_progressive: bool = False
    is_inks: bool = False
    is_rgb: bool = False
    is_widened: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Still:
    """One still picture.

    Attributes:
        picture: Upright, in the file's own layout and pixel values.
        format: Of the file it was read from.
        icc: The color profile that the pixel values are in.
        exif: What of the EXIF may go on, with its `Exif` prefix; empty for none.
        xmp: The file's XMP packet as it is: not cleaned, not to be trusted.
        dpi: Horizontal and vertical resolution for print.
        png_chunks: Color and resolution chunks of a PNG.
        jpeg: How a JPEG was encoded.
        is_lossless: The file keeps every pixel value.
        bits: Bits a channel in the file; more than 8 are held as 16.
        inks: Those of a CMYK picture, whose `picture` is the RGB that they show.
        few: How the file holds its few colors; `None` where it has 8 bits a channel or more.
        notices: What could not be kept.
    """

    picture: Picture
    format: StillFormat
    icc: bytes | None = None
    exif: bytes = b""
    xmp: bytes | None = None
    dpi: tuple[float, float] | None = None
    png_chunks: tuple[PngChunk, ...] = ()
    jpeg: JpegCoding | None = None
    is_lossless: bool = True
    bits: int = 8
    inks: Inks | None = None
    few: FewColors | None = None

    @property
    def color_tags(self) -> ColorTags | None:
        """The tags to write: those of HDR always, others where no profile says it better; `None` for none."""
        tags = self.picture.tags
        if UNSPECIFIED in (tags.primaries, tags.transfer):
            return None
        return tags if is_hdr(tags.transfer) or self.icc is None else None

    notices: tuple[Notice, ...] = ()

"""HEIC pictures, by libheif: the main picture of a file, turned upright, in 8 bits or in all that it has.

libheif follows the boxes: tiles, turning and mirroring, cropping, transparency. What the EXIF says of the orientation
has been done then, and counts for nothing.
"""

from typing import BinaryIO, Final, cast

import av
import numpy as np
from av.error import FFmpegError
from PIL.ImageFile import ImageFile

from app.core.errors import DamagedMediaError, MediaTooLargeError
from app.core.planes import Plane, stretched
from app.media.heif_boxes import HeifHead
from app.media.limits import MediaLimits

try:
    from pi_heif import HeifImageFile, open_heif
except ImportError:
    HeifImageFile = open_heif = None

CAN_READ_HEIF: Final = open_heif is not None
"""Whether the library is there: it has no package for every machine."""

_OVERLAP: Final = 2
"""Tiles may reach beyond the picture, but not cover it more often than this."""


def open_heif_file(file: BinaryIO) -> ImageFile:
    """The main picture, of which nothing is decoded yet; its pixels come in 8 bits."""
    file.seek(0)
    return cast("ImageFile", HeifImageFile(file))


def check_heif(head: HeifHead, limits: MediaLimits) -> None:
    """Refuse by what the coded pictures are, whatever the boxes around them promise.

    Raises:
        MediaTooLargeError: A coded picture is over the budget, or all tiles together are.
        DamagedMediaError: A coded picture has no valid header.
    """
    sizes = {_coded_wh(content) for name, content in head.properties if name == b"hvcC"}
    for size_wh in sizes:
        limits.check_still(size_wh)
    area = max((w * h for w, h in sizes), default=0)
    most = _OVERLAP * limits.max_still_pixels
    if head.tiles * area > most:
        raise MediaTooLargeError(
            f"the picture's tiles hold {head.tiles * area} pixels, at most {most} are allowed; save the picture anew"
        )


def heif_bits(image: ImageFile) -> int:
    """Bits a channel of the main picture."""
    return min(int(image.info.get("bit_depth", 8)), 16)


def deep_heif_pixels(file: BinaryIO, bits: int) -> Plane:
    """The main picture with all its bits, stretched to 16.

    Returns:
        `(H, W)` gray or `(H, W, 2 to 4)` uint16, the last of an even number of channels is alpha.
    """
    file.seek(0)
    images = open_heif(file, convert_hdr_to_8bit=False, hdr_to_16bit=False)
    main = images[images.primary_index]
    return stretched(np.asarray(main), bits)


def _coded_wh(config: bytes) -> tuple[int, int]:
    """The size in the parameter sets of an HEVC picture."""
    decoder = av.CodecContext.create("hevc", "r")
    decoder.extradata = config
    try:
        decoder.open()
    except FFmpegError as error:
        raise DamagedMediaError(
            "the HEIC picture's header makes no sense; open it in another program and save it anew"
        ) from error
    return decoder.width, decoder.height

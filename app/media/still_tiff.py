"""TIFF files of 8 and 16 bits a channel: one strip, deflated after horizontal differencing.

Source: TIFF 6.0, sections 4 to 6 and 14 (predictor); Adobe Photoshop TIFF technical notes (deflate); the numbers of XMP
and ICC tags are those of their specifications.
"""

import io
import zlib
from typing import cast

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from app.core.planes import Plane
from app.media.still_types import Still

_EXIF_IFD = 0x8769
_LEVEL = 6


def encode_tiff(pixels: Plane, *, still: Still, xmp: bytes, is_inks: bool = False) -> bytes:
    """A TIFF of the pixels, with the still's profile, EXIF and an XMP packet.

    Args:
        pixels: `(H, W)` or `(H, W, 2 to 4)`, uint8 or uint16; the last of an even number of channels is alpha.
        still: Gives the metadata.
        xmp: The packet.
        is_inks: The four channels are cyan, magenta, yellow and black, 255 is full.
    """
    strip = zlib.compress(_differences(pixels).data, _LEVEL)
    directory = _directory(pixels, len(strip), is_inks=is_inks)
    directory[700] = xmp
    if still.icc is not None:
        directory[34675] = still.icc
    if still.dpi is not None:
        directory[282], directory[283], directory[296] = *still.dpi, 2
    _add_exif_inplace(directory, still.exif)
    out = io.BytesIO()
    directory.save(out)
    return out.getvalue() + strip


def _differences(pixels: Plane) -> Plane:
    """Each sample less its left neighbor of the same channel, little end first, wrapping around."""
    out = pixels.copy(order="C")
    np.subtract(pixels[:, 1:], pixels[:, :-1], out=out[:, 1:])
    return cast("Plane", out.astype(out.dtype.newbyteorder("<"), copy=False))


def _directory(pixels: Plane, strip_bytes: int, *, is_inks: bool) -> ImageFileDirectory_v2:
    h, w = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    directory = ImageFileDirectory_v2()
    directory[256], directory[257] = w, h
    directory[258] = (pixels.dtype.itemsize * 8,) * channels
    directory[259] = 8  # deflate
    directory[262] = (
        5 if is_inks else 2 if channels >= 3 else 1
    )  # inks, RGB, or gray with black as 0
    directory[273] = 0  # the strip follows the directory, which puts the place in
    directory[277] = channels
    directory[278] = h
    directory[279] = strip_bytes
    directory[317] = 2  # horizontal differencing
    if channels in (2, 4) and not is_inks:
        directory[338] = 2  # alpha that the colors are not multiplied with
    return directory


def _add_exif_inplace(directory: ImageFileDirectory_v2, data: bytes) -> None:
    if not data:
        return
    exif = Image.Exif()
    exif.load(data)
    for tag in set(exif) - {_EXIF_IFD}:
        directory[tag] = exif[tag]
    details = exif.get_ifd(_EXIF_IFD)
    if details:
        directory[_EXIF_IFD] = dict(details)

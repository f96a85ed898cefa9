"""AVIF files: of 8 bits by Pillow, of 10 and 12 by OpenCV, both through libavif; the color tags are put right after."""

import io
from typing import Final, cast

import cv2
import numpy as np
from PIL import Image

from app.core.planes import Plane, squeezed
from app.media.heif_boxes import retagged
from app.media.still_types import Still

_FINE_QUALITY: Final = 90
_LOSSLESS: Final = 100
AVIF_BITS: Final = 12
"""The most bits a channel that the format has."""

_USUAL_BITS: Final = 10
_SPEED: Final = 6


def avif_bits(still: Still) -> int:
    """The bits a channel with which a deep picture is written: the file's own where AVIF has so many."""
    return still.bits if 8 < still.bits <= AVIF_BITS else _USUAL_BITS


def encode_avif(pixels: Plane, *, still: Still, xmp: bytes, quality: int) -> bytes:
    """An AVIF of the pixels, with the still's profile, color tags and EXIF, and an XMP packet.

    Args:
        pixels: `(H, W)` or `(H, W, 2 to 4)`, uint8 or uint16; the last of an even number of channels is alpha,
            which is kept value for value.
        still: Gives the metadata, and the bits of a deep picture.
        xmp: The packet.
        quality: 0 to 100.
    """
    encode = _deep if pixels.dtype == np.uint16 else _plain
    data = encode(pixels, still, xmp, quality)
    return data if still.color_tags is None else retagged(data, still.color_tags)


def _plain(pixels: Plane, still: Still, xmp: bytes, quality: int) -> bytes:
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    settings: dict[str, object] = {"quality": quality}
    if quality >= _FINE_QUALITY and channels >= 3:
        settings["subsampling"] = "4:4:4"
    if channels in (2, 4):
        # Alpha is a picture of its own there, and may be lossless while the colors are not.
        settings["advanced"] = {"a:lossless": "1"}
    out = io.BytesIO()
    image = Image.fromarray(pixels, {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels])
    image.save(out, "AVIF", xmp=xmp, exif=still.exif, icc_profile=_icc(still, channels), **settings)
    return out.getvalue()


def _icc(still: Still, channels: int) -> bytes | None:
    """Gray with alpha is written as colors."""
    is_for_gray = still.icc is not None and still.icc[16:20] == b"GRAY"
    return None if is_for_gray and channels != 1 else still.icc


def _deep(pixels: Plane, still: Still, xmp: bytes, quality: int) -> bytes:
    """OpenCV has one quality for colors and alpha, so transparency makes all of it lossless."""
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    bits = avif_bits(still)
    settings = [
        *(cv2.IMWRITE_AVIF_DEPTH, bits, cv2.IMWRITE_AVIF_SPEED, _SPEED),
        *(cv2.IMWRITE_AVIF_QUALITY, _LOSSLESS if channels in (2, 4) else min(quality, 99)),
    ]
    packets = {
        cv2.IMAGE_METADATA_EXIF: still.exif.removeprefix(b"Exif\0\0"),
        cv2.IMAGE_METADATA_XMP: xmp,
        cv2.IMAGE_METADATA_ICCP: _icc(still, channels) or b"",
    }
    held = {kind: np.frombuffer(data, np.uint8) for kind, data in packets.items() if data}
    is_done, data = cv2.imencodeWithMetadata(
        ".avif",
        squeezed(_as_bgr(pixels), bits),
        list(held),
        list(held.values()),
        settings,
    )
    if not is_done:
        raise OSError("the encoder gave no file")
    return data.tobytes()


def _as_bgr(pixels: Plane) -> Plane:
    """The channels as OpenCV wants them: blue first, gray with alpha as colors."""
    if pixels.ndim == 2:
        return pixels
    order = {2: (0, 0, 0, 1), 3: (2, 1, 0), 4: (2, 1, 0, 3)}[pixels.shape[2]]
    return cast("Plane", np.ascontiguousarray(pixels[..., order]))

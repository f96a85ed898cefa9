"""Small pictures of files, for lists and cards."""

import io
from pathlib import Path

from PIL import Image

from app.core.errors import NoVideoError
from app.core.picture import Picture
from app.core.types import RgbImage
from app.media.decode import VideoReader
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.still import read_still

_JPEG_QUALITY = 85


def first_picture(path: Path, limits: MediaLimits) -> Picture:
    """The picture of a still, or the first one of a video, upright.

    Raises:
        MediaError: The file cannot be decoded.
    """
    if probe(path, limits).kind == "still":
        return read_still(path, limits).picture
    with VideoReader(path, limits) as reader:
        for frame in reader.frames():
            # The decoder's memory goes with the reader.
            return frame.picture.copy()
    raise NoVideoError("the video has no frame that can be decoded")


def thumbnail_jpeg(path: Path, side_px: int, limits: MediaLimits) -> bytes:
    """A JPEG of the first picture, its long side at most `side_px`.

    Raises:
        MediaError: The file cannot be decoded.
    """
    return jpeg_of(first_picture(path, limits).thumbnail(side_px)[0])


def jpeg_of(rgb: RgbImage) -> bytes:
    """A small `(h, w, 3)` uint8 RGB picture as JPEG bytes."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, format="JPEG", quality=_JPEG_QUALITY)
    return buffer.getvalue()

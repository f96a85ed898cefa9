"""TIFF files beyond what Pillow decodes: 16 bits a channel, in every order that they may lie in.

Source: TIFF 6.0, sections 8 (tags), 11 (gray) and 18 (extra samples).
"""

from typing import BinaryIO, Final, cast

import av
import cv2
import numpy as np
from av.error import FFmpegError
from PIL.TiffImagePlugin import TiffImageFile

from app.core.errors import DamagedMediaError
from app.core.planes import Plane
from app.media.frames import picture_of
from app.media.orientation import upright
from app.media.still_metadata import exif_orientation

_BITS: Final = 258
_PHOTOMETRIC: Final = 262
_SAMPLES: Final = 277
_LAYOUT: Final = 284
_SAMPLE_FORMAT: Final = 339
_WHITE_IS_ZERO: Final = 0
_GRAY_KINDS: Final = (0, 1)
_PLANAR: Final = 2
_UNSIGNED: Final = 1


class TiffFile(TiffImageFile):
    """A TIFF whose header is read; gray of 16 bits is known also where Pillow cannot decode it."""

    def _setup(self) -> None:
        try:
            super()._setup()
        except SyntaxError:
            mode = {1: "I;16", 2: "LA"}.get(self._samples())
            is_planar = self._samples() > 1 and self.tag_v2.get(_LAYOUT) == _PLANAR
            if mode is None or is_planar or not is_deep(self) or not self._is_gray():
                raise
            self._mode = mode

    @property
    def is_negative(self) -> bool:
        """Whether 0 is white."""
        return bool(self.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO)

    @property
    def bits(self) -> int:
        """Of one sample of the first channel."""
        return int(self.tag_v2.get(_BITS, (1,))[0])

    @property
    def needs_other_decoder(self) -> bool:
        """Whether OpenCV would take the samples for other ones, or leave some out."""
        return self._samples() > 1 and (self._samples() == 2 or self.tag_v2.get(_LAYOUT) == _PLANAR)

    def _samples(self) -> int:
        return int(self.tag_v2.get(_SAMPLES, 1))

    def _is_gray(self) -> bool:
        return self.tag_v2.get(_PHOTOMETRIC) in _GRAY_KINDS


def is_deep(image: TiffImageFile) -> bool:
    """Whether every channel has 16 bits, without a sign."""
    formats = set(image.tag_v2.get(_SAMPLE_FORMAT, (_UNSIGNED,)))
    return set(image.tag_v2.get(_BITS, (8,))) == {16} and formats <= {_UNSIGNED}


def deep_tiff_planes(image: TiffFile, file: BinaryIO) -> tuple[Plane, ...]:
    """The upright pixels of a TIFF with 16 bits a channel, 0 as black.

    Returns:
        As the planes of a `Picture`: gray, gray and alpha, RGB, or RGB with alpha.

    Raises:
        DamagedMediaError: They cannot be decoded.
    """
    file.seek(0)
    data = file.read()
    planes = _other_planes(image, data) if image.needs_other_decoder else _planes(data)
    if image.is_negative:
        planes = (65_535 - planes[0], *planes[1:])
    return planes


def _planes(data: bytes) -> tuple[Plane, ...]:
    """By OpenCV, which knows most ways of compression, and turns the picture by itself."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.dtype != np.uint16:
        raise _undecodable()
    if pixels.ndim == 2:
        return (cast("Plane", pixels),)
    order = cv2.COLOR_BGR2RGB if pixels.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
    return (cast("Plane", cv2.cvtColor(pixels, order)),)


def _other_planes(image: TiffFile, data: bytes) -> tuple[Plane, ...]:
    """By FFmpeg, which turns nothing."""
    decoder = av.CodecContext.create("tiff", "r")
    try:
        frames = [*decoder.decode(av.Packet(data)), *decoder.decode(None)]
    except FFmpegError as error:
        raise _undecodable() from error
    if not frames or not isinstance(frames[0], av.VideoFrame):
        raise _undecodable()
    return upright(picture_of(frames[0]), exif_orientation(image.getexif())).planes


def _undecodable() -> DamagedMediaError:
    return DamagedMediaError("the 16-bit tiff picture cannot be decoded; save it anew as PNG")

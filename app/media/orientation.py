"""How a stored picture is turned and mirrored to be upright.

Source: ISO/IEC 14496-12, the matrix of a track header, as FFmpeg's display matrix: nine numbers, of which the first
two of the first two rows say where the axes of the stored picture point on the screen.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import cv2
import numpy as np
from av import VideoFrame

from app.core.picture import PIXEL_FORMATS, Picture, PixelFormat
from app.core.planes import Plane
from app.media.side_data import side_data_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Orientation:
    """First swap the axes, then flip: together the eight ways in which a picture can lie.

    Attributes:
        is_transposed: Rows become columns.
        flips_x: Left and right are exchanged, after the swap.
        flips_y: Top and bottom are exchanged, after the swap.
    """

    is_transposed: bool = False
    flips_x: bool = False
    flips_y: bool = False

    @property
    def is_upright(self) -> bool:
        """True when nothing has to be done."""
        return self == Orientation()

    @property
    def is_mirrored(self) -> bool:
        """True when the stored picture is seen as in a mirror."""
        return self.is_transposed ^ self.flips_x ^ self.flips_y

    @property
    def rotation_deg(self) -> int:
        """Degrees clockwise by which the picture, mirrored left to right first if it has to be, is turned."""
        if self.is_transposed:
            return 90 if self.flips_x else 270
        return 180 if self.flips_y else 0

    def size_wh(self, stored_wh: tuple[int, int]) -> tuple[int, int]:
        """Width and height of the upright picture."""
        return stored_wh[::-1] if self.is_transposed else stored_wh


_TURNED = MappingProxyType(
    {
        90: Orientation(is_transposed=True, flips_x=True),
        180: Orientation(flips_x=True, flips_y=True),
        270: Orientation(is_transposed=True, flips_y=True),
    }
)


def orientation_of(frame: VideoFrame) -> Orientation:
    """The orientation that a decoded frame carries; upright without one."""
    side_data = side_data_of(frame)
    if side_data is None:
        # Mirroring is lost then, of which there is next to none.
        return _TURNED.get(-frame.rotation % 360, Orientation())
    matrix = side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return Orientation()
    a, b, _, c, d = (int(value) for value in np.frombuffer(bytes(matrix), np.int32)[:5])
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return Orientation(flips_x=a < 0, flips_y=d < 0)
    return Orientation(is_transposed=True, flips_x=c < 0, flips_y=b < 0)


def upright(picture: Picture, orientation: Orientation) -> Picture:
    """The picture as people see it, over contiguous memory of its own; the picture itself when it is upright."""
    if orientation.is_upright:
        return picture
    if not _is_turnable(picture, orientation):
        picture = full_chroma(picture)
    turned = tuple(_turned(plane, orientation) for plane in picture.planes)
    return Picture(turned, _turned_format(picture.pixel_format, orientation), picture.tags)


def _turned(plane: Plane, orientation: Orientation) -> Plane:
    out = cast("Plane", cv2.transpose(plane)) if orientation.is_transposed else plane
    if orientation.flips_x or orientation.flips_y:
        code = -1 if orientation.flips_x and orientation.flips_y else int(orientation.flips_x)
        out = cast("Plane", cv2.flip(out, code))
    return cast("Plane", np.ascontiguousarray(out))


def _turned_format(pixel_format: PixelFormat, orientation: Orientation) -> PixelFormat:
    """4:2:2 that lies on its side is 4:4:0."""
    sx, sy = pixel_format.chroma_shift_xy
    if not orientation.is_transposed or sx == sy:
        return pixel_format
    before, after = ("422", "440") if sx else ("440", "422")
    return PIXEL_FORMATS[pixel_format.name.replace(before, after)]


def _is_turnable(picture: Picture, orientation: Orientation) -> bool:
    """False where turning would leave a chroma sample between two pixels.

    That happens when an axis of odd length is flipped under subsampled chroma, and where a format has no 4:4:0 kin.
    """
    sx, sy = picture.pixel_format.chroma_shift_xy
    if orientation.is_transposed and sx != sy and picture.pixel_format.has_alpha:
        return False
    return fits_chroma(picture.size_wh, picture.pixel_format)


def fits_chroma(size_wh: tuple[int, int], pixel_format: PixelFormat) -> bool:
    """True when the sides are whole numbers of chroma samples."""
    sx, sy = pixel_format.chroma_shift_xy
    return size_wh[0] % (1 << sx) == 0 and size_wh[1] % (1 << sy) == 0


def full_chroma_format(pixel_format: PixelFormat) -> PixelFormat:
    """The 4:4:4 kin of a YUV format."""
    for tag in ("420", "422", "440"):
        name = pixel_format.name.replace(tag, "444")
        if name != pixel_format.name:
            return PIXEL_FORMATS[name]
    return pixel_format


def full_chroma(picture: Picture) -> Picture:
    """The picture in 4:4:4: each chroma sample repeated for every pixel it stands for, so nothing is lost."""
    sx, sy = picture.pixel_format.chroma_shift_xy
    w, h = picture.size_wh
    chroma = tuple(
        plane.repeat(1 << sy, axis=0).repeat(1 << sx, axis=1)[:h, :w]
        for plane in picture.planes[1:3]
    )
    planes = (picture.planes[0], *chroma, *picture.planes[3:])
    return Picture(planes, full_chroma_format(picture.pixel_format), picture.tags)

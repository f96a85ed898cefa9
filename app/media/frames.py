"""Between PyAV's frames and `core.Picture`: the same planes, seen from both sides.

Reading shows a decoder's memory without a copy, row padding left out; the arrays keep the frame alive and are
read-only, since the decoder still predicts from it. A pixel format that `core.PIXEL_FORMATS` lacks is first brought,
without loss, to the nearest one in it.
"""

import math
from typing import Final

import numpy as np
from av import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from app.core.color import UNSPECIFIED, ColorTags
from app.core.errors import UnsupportedCodecError
from app.core.picture import PIXEL_FORMATS, Picture, PixelFormat
from app.core.planes import Plane
from app.media.hdr import dynamic_hdr
from app.media.side_data import side_data_of

EXACT: Final = (
    Interpolation.POINT
    | Interpolation.FULL_CHR_H_INP
    | Interpolation.FULL_CHR_H_INT
    | Interpolation.ACCURATE_RND
    | Interpolation.BITEXACT
)
"""Scaler flags with which every conversion of `_NEAREST` goes there and back unchanged (tested)."""

_FULL_RANGE_NAMES: Final = {
    "yuvj420p": "yuv420p",
    "yuvj422p": "yuv422p",
    "yuvj440p": "yuv440p",
    "yuvj444p": "yuv444p",
}

_NEAREST: Final = {
    **dict.fromkeys(("nv12", "nv21", "yuv410p"), "yuv420p"),
    **dict.fromkeys(("nv16", "yuv411p", "yuyv422", "uyvy422", "yvyu422"), "yuv422p"),
    **dict.fromkeys(("nv24", "nv42", "vuyx"), "yuv444p"),
    **dict.fromkeys(("p010le", "yuv420p9le", "yuv420p10be"), "yuv420p10le"),
    **dict.fromkeys(("p210le", "nv20le", "y210le", "yuv422p9le", "yuv422p10be"), "yuv422p10le"),
    **dict.fromkeys(("p410le", "xv30le", "yuv444p9le", "yuv444p10be"), "yuv444p10le"),
    **dict.fromkeys(("p012le", "yuv420p12be"), "yuv420p12le"),
    **dict.fromkeys(("p212le", "y212le", "yuv422p12be"), "yuv422p12le"),
    **dict.fromkeys(("p412le", "xv36le", "yuv444p12be"), "yuv444p12le"),
    **dict.fromkeys(("yuva420p9le", "yuva420p10le", "yuva422p9le"), "yuva422p10le"),
    **dict.fromkeys(("yuva444p9le", "vuya", "ayuv"), "yuva444p10le"),
    **dict.fromkeys(("bgr24", "bgr0", "rgb0", "0rgb", "0bgr", "gbrp"), "rgb24"),
    **dict.fromkeys(("rgb565le", "rgb555le", "rgb8", "bgr8"), "rgb24"),
    **dict.fromkeys(("bgra", "argb", "abgr", "gbrap", "pal8"), "rgba"),
    **dict.fromkeys(("gbrp9le", "gbrp10le", "gbrp12le", "gbrp14le", "gbrp16le"), "rgb48le"),
    **dict.fromkeys(("rgb48be", "bgr48le", "bgr48be", "gbrp16be"), "rgb48le"),
    **dict.fromkeys(("gbrap10le", "gbrap12le", "gbrap14le", "gbrap16le", "gbrap16be"), "rgba64le"),
    "rgba64be": "rgba64le",
    **dict.fromkeys(("monow", "monob"), "gray"),
    **dict.fromkeys(("gray9le", "gray10le", "gray12le", "gray14le", "gray16be"), "gray16le"),
    "ya16be": "ya16le",
}


class DecodedPicture(Picture):
    """A picture over a decoder's own frame; as long as nobody changes it, an encoder can take that very frame.

    Args:
        planes: The frame's memory.
        pixel_format: Layout of the planes.
        tags: Color tags of the frame.
        frame: The frame.
    """

    __slots__ = ("frame",)

    def __init__(
        self,
        planes: tuple[Plane, ...],
        pixel_format: PixelFormat,
        tags: ColorTags,
        *,
        frame: VideoFrame,
    ) -> None:
        super().__init__(planes, pixel_format, tags)
        self.frame = frame


def native_format(name: str) -> PixelFormat:
    """The format of the pictures that frames of FFmpeg's format `name` become.

    Raises:
        UnsupportedCodecError: No format in `PIXEL_FORMATS` holds it without loss.
    """
    native = _FULL_RANGE_NAMES.get(name) or _NEAREST.get(name, name)
    if native not in PIXEL_FORMATS:
        raise UnsupportedCodecError(
            f"pixel format {name} cannot be kept without loss; convert the file to an 8, 10 or 12 bit format first"
        )
    return PIXEL_FORMATS[native]


def color_tags(frame: VideoFrame) -> ColorTags:
    """The color tags that a frame carries."""
    is_full = frame.format.name in _FULL_RANGE_NAMES or frame.color_range == 2
    return ColorTags(
        matrix=int(frame.colorspace),
        is_full_range=True if is_full else (False if frame.color_range == 1 else None),
        primaries=int(frame.color_primaries) or UNSPECIFIED,
        transfer=int(frame.color_trc) or UNSPECIFIED,
    )


def picture_of(frame: VideoFrame) -> Picture:
    """A picture over a decoded frame's memory, as stored: not turned upright.

    Raises:
        UnsupportedCodecError: Its pixel format is none we can keep.
    """
    pixel_format = native_format(frame.format.name)
    tags = color_tags(frame)
    if frame.format.name in _NEAREST:
        frame = frame.reformat(format=pixel_format.name, interpolation=EXACT)
    shapes = pixel_format.plane_shapes((frame.width, frame.height))
    planes: tuple[Plane, ...]
    if pixel_format.family == "gray" and pixel_format.has_alpha:
        packed = _rows(frame.planes[0], (*shapes[0], 2), pixel_format)
        planes = (packed[..., 0].copy(), packed[..., 1].copy())
    else:
        planes = tuple(
            _rows(plane, shape, pixel_format)
            for plane, shape in zip(frame.planes, shapes, strict=True)
        )
    for plane in planes:
        plane.flags.writeable = False
    # Dynamic HDR, or what we cannot see, would reach the output with the unchanged frames alone.
    side_data = side_data_of(frame)
    is_plain = side_data is not None and not dynamic_hdr(side_data)
    if frame.format.name == pixel_format.name and is_plain:
        return DecodedPicture(planes, pixel_format, tags, frame=frame)
    return Picture(planes, pixel_format, tags)


def frame_of(picture: Picture) -> VideoFrame:
    """A PyAV frame of its own memory, with the picture's planes and color tags."""
    frame = VideoFrame(*picture.size_wh, picture.pixel_format.name)
    fill_inplace(frame, picture)
    return frame


def fill_inplace(frame: VideoFrame, picture: Picture) -> None:
    """Write a picture's planes and color tags into a frame of the same size and format."""
    pixel_format = picture.pixel_format
    set_color_tags(frame, picture.tags)
    if pixel_format.family == "gray" and pixel_format.has_alpha:
        packed = np.stack(picture.planes, axis=-1)
        _rows(frame.planes[0], packed.shape, pixel_format)[...] = packed
        return
    for plane, values in zip(frame.planes, picture.planes, strict=True):
        _rows(plane, values.shape, pixel_format)[...] = values


def set_color_tags(target: VideoFrame, tags: ColorTags) -> None:
    """Write color tags onto a frame; a range that nobody stated stays unstated."""
    target.colorspace = tags.matrix
    target.color_range = color_range(tags)
    target.color_primaries = tags.primaries
    target.color_trc = tags.transfer


def color_range(tags: ColorTags) -> int:
    """FFmpeg's number of a range: 0 not said, 1 limited, 2 full."""
    return 0 if tags.is_full_range is None else 1 + int(tags.is_full_range)


def _rows(plane: VideoPlane, shape: tuple[int, ...], pixel_format: PixelFormat) -> Plane:
    """A plane's pixels without the padding of its rows; a negative line size means that the last row comes first."""
    flat: NDArray[np.uint8] = np.frombuffer(plane, np.uint8)  # type: ignore[call-overload]
    rows: Plane = flat.reshape(-1, abs(plane.line_size))
    if pixel_format.dtype is np.uint16:
        rows = rows.view(np.uint16)
    if plane.line_size < 0:
        rows = rows[::-1]
    return rows[: shape[0], : math.prod(shape[1:])].reshape(shape)

"""Pictures as an encoder wants them: their own planes where it takes them, else the least change that it takes."""

from dataclasses import replace
from typing import Final, cast

import numpy as np
from av import VideoFrame
from av.video.reformatter import Interpolation

from app.core.color import ColorTags
from app.core.picture import Picture, PixelFormat, Plane
from app.media.frames import EXACT, color_range, frame_of, set_color_tags
from app.media.orientation import full_chroma, full_chroma_format

_SMOOTH: Final = (
    Interpolation.BICUBIC
    | Interpolation.FULL_CHR_H_INP
    | Interpolation.ACCURATE_RND
    | Interpolation.BITEXACT
)
"""Chroma of RGB pictures is averaged, not picked, on the way to half its size."""


def encoded_tags(picture: Picture, *, source: ColorTags, source_is_yuv: bool) -> ColorTags:
    """The colour tags of the encoded video.

    YUV keeps what it says, also when that is nothing. RGB gets a matrix, and says which, since nobody could guess it;
    grey is full range unless it says otherwise, as every viewer of grey pictures takes it.
    """
    tags = picture.tags
    if picture.pixel_format.family == "yuv":
        return tags
    if picture.pixel_format.family == "gray":
        return replace(tags, is_full_range=tags.is_full_range is not False)
    like = source if source_is_yuv else ColorTags()
    height_px = picture.size_wh[1]
    return ColorTags(
        matrix=like.effective_matrix(height_px),
        is_full_range=bool(like.is_full_range),
        primaries=like.primaries if source_is_yuv else tags.primaries,
        transfer=like.transfer if source_is_yuv else tags.transfer,
    )


def encodable(picture: Picture, pixel_format: PixelFormat, tags: ColorTags) -> VideoFrame:
    """A frame of `pixel_format` that shows the picture and carries `tags`.

    Args:
        picture: Any picture.
        pixel_format: A YUV format, as `encoded_format` chose it.
        tags: As `encoded_tags` chose them.
    """
    if picture.pixel_format.family == "gray":
        picture = _with_neutral_chroma(picture, pixel_format)
    elif full_chroma_format(picture.pixel_format) == pixel_format:
        picture = full_chroma(picture)
    frame = frame_of(picture)
    if picture.pixel_format != pixel_format:
        is_rgb = picture.pixel_format.family == "rgb"
        frame = frame.reformat(
            format=pixel_format.name,
            interpolation=_SMOOTH if is_rgb else EXACT,
            dst_colorspace=tags.matrix if is_rgb else None,
            src_color_range=2 if is_rgb else color_range(tags),
            dst_color_range=color_range(tags),
        )
    set_color_tags(frame, tags)
    return frame


def _with_neutral_chroma(picture: Picture, pixel_format: PixelFormat) -> Picture:
    """Grey as YUV without a color: the same luma, at the depth wanted, and chroma in the middle."""
    down = picture.pixel_format.bits - pixel_format.bits
    luma, *alpha = (_shifted(plane, down, pixel_format) for plane in picture.planes)
    shape = pixel_format.plane_shapes(picture.size_wh)[1]
    chroma = np.full(shape, 1 << (pixel_format.bits - 1), pixel_format.dtype)
    planes = (luma, chroma, chroma, *(alpha if pixel_format.has_alpha else ()))
    return Picture(planes, pixel_format, picture.tags)


def _shifted(plane: Plane, down: int, pixel_format: PixelFormat) -> Plane:
    return cast("Plane", (plane >> max(down, 0)).astype(pixel_format.dtype))

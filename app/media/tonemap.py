"""HDR video made SDR as a whole, for players and places that know nothing else."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.core.color import BT709, ColorTags
from app.core.picture import Picture
from app.core.types import Frame
from app.media.hdr import is_hdr
from app.media.info import MediaInfo

_SDR_TAGS = ColorTags(matrix=BT709, is_full_range=False, primaries=BT709, transfer=BT709)


def in_sdr(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames as 8-bit BT.709 pictures, through the same curve as the faces; SDR frames as they are."""
    for frame in frames:
        picture = frame.picture
        if not is_hdr(picture.tags.transfer):
            yield frame
            continue
        rgb = picture.read(picture.box)
        tags = replace(_SDR_TAGS, is_full_range=None)
        yield replace(frame, picture=Picture((rgb,), Picture.from_rgb(rgb).pixel_format, tags))


def info_in_sdr(info: MediaInfo) -> MediaInfo:
    """What HDR video is once it is SDR; other video as it is."""
    if not is_hdr(info.tags.transfer):
        return info
    return replace(info, tags=_SDR_TAGS, bits=8, hdr=None, dynamic_hdr=(), has_alpha=False)

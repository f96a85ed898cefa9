"""What a decoder says of a frame beside its pixels."""

from collections.abc import Mapping

from av import VideoFrame
from av.sidedata.sidedata import SideData, SideDataContainer


def side_data_of(frame: VideoFrame) -> Mapping[str, SideData] | None:
    """By FFmpeg's name of each kind: what a frame carries.

    Returns:
        `None` where the library does not know one of the kinds, such as a camera's EXIF or the views of a spatial
        video, and therefore shows none.
    """
    # `frame.side_data` would be kept by the frame that it points back to: a cycle, which holds the frame's memory until
    # the garbage collector comes by; at 4K that is 12 MB a frame.
    try:
        container = SideDataContainer(frame)  # type: ignore[call-arg]  # its stub has no constructor
    except ValueError:
        return None
    return {container[index].type.name: container[index] for index in range(len(container))}


def has_captions(frame: VideoFrame) -> bool:
    """Whether closed captions (ANSI/CTA-708, with those of 608) come with a frame, as in broadcasts."""
    return "A53_CC" in (side_data_of(frame) or {})

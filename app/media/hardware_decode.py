"""Decoders of graphics cards: used only for files of which they give the same first frames as software.

What they give lies in the card's memory; the library brings it back with all that a frame says of itself.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import av
import numpy as np
from av.codec.hwaccel import HWAccel, hwdevices_available

from app.core.errors import MediaError
from app.core.picture import Picture
from app.media.demux import main_video, opened
from app.media.frames import picture_of
from app.media.orientation import orientation_of
from app.media.sniff import MediaKind

_DEVICES: Final = ("cuda", "vaapi", "videotoolbox")
_COMPARED: Final = 4
"""Frames: the first key frame and some that build on it."""


class Sample(NamedTuple):
    """What one decoder makes of one frame."""

    pts: int | None
    picture: Picture
    orientation: object
    is_interlaced: bool


Decode = Callable[[str | None], Sequence[Sample]]


def decoding_device(path: Path, kind: MediaKind) -> str | None:
    """A device that decodes a file to the last bit as software does, as far as its first frames tell.

    Args:
        path: A video.
        kind: What `sniff` said of it.

    Returns:
        FFmpeg's name of the device; `None` where there is none.
    """
    here = [device for device in _DEVICES if device in hwdevices_available()]

    def decode(device: str | None) -> Sequence[Sample]:
        with opened(
            path, kind, hwaccel=None if device is None else accelerator(device)
        ) as container:
            decoded = islice(container.decode(main_video(container)), _COMPARED)
            return [
                Sample(
                    frame.pts,
                    picture_of(frame).copy(),
                    orientation_of(frame),
                    bool(frame.interlaced_frame),
                )
                for frame in decoded
            ]

    return first_that_agrees(here, decode)


def accelerator(device: str) -> HWAccel:
    """Decoding on a device, and on nothing else.

    Raises:
        ValueError: The library knows no such device.
    """
    return HWAccel(device, allow_software_fallback=False)


def first_that_agrees(devices: Sequence[str], decode: Decode) -> str | None:
    """The first device whose frames are those of software.

    Args:
        devices: Their names.
        decode: Gives a file's first frames as a device has them, or software for `None`; may raise.
    """
    if not devices:
        return None
    try:
        wanted = decode(None)
    except (av.FFmpegError, MediaError):
        # Whatever is wrong with the file is said where it is read.
        return None
    for device in devices if wanted else ():
        try:
            found = decode(device)
        except (av.FFmpegError, MediaError, ValueError, RuntimeError):
            continue
        if len(found) == len(wanted) and all(map(_are_equal, found, wanted)):
            return device
    return None


def _are_equal(one: Sample, other: Sample) -> bool:
    return (
        one.pts == other.pts
        and one.orientation == other.orientation
        and one.is_interlaced == other.is_interlaced
        and one.picture.tags == other.picture.tags
        and one.picture.pixel_format == other.picture.pixel_format
        and all(map(np.array_equal, one.picture.planes, other.picture.planes))
    )

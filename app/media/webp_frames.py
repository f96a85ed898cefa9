"""Reading animated WebP, which FFmpeg does not, through Pillow: whole frames with exact times."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from av import VideoFrame
from PIL import Image

from app.media.animation_chunks import animation_facts
from app.media.chunks import read_chunk, webp_chunks, webp_size_wh
from app.media.info import MediaInfo, StreamInfo
from app.media.limits import MediaLimits
from app.media.pillow_errors import pillow_errors
from app.media.sniff import MediaKind

TIME_BASE: Final = Fraction(1, 1000)
_HAS_ALPHA: Final = 0x10


def animated_webp_info(path: Path, limits: MediaLimits) -> MediaInfo:
    """What an animated WebP is, from its chunks alone.

    Raises:
        MediaTooLargeError: It is larger or longer than the limits allow.
        TruncatedMediaError: It ends before its header says.
        DamagedMediaError: It holds no frame.
    """
    with path.open("rb") as file:
        size_wh = webp_size_wh(file)
        file.seek(20)
        has_alpha = bool(file.read(1)[0] & _HAS_ALPHA)
    limits.check_size(size_wh)
    facts = animation_facts(path, MediaKind.ANIMATED_WEBP, limits)
    limits.check_length(float(facts.duration_s), facts.frames)
    duration = round(facts.duration_s / TIME_BASE)
    stream = StreamInfo(
        index=0, type="video", codec="webp", time_base=TIME_BASE, start_pts=0, duration_pts=duration
    )
    return MediaInfo(
        kind="video",
        container=MediaKind.ANIMATED_WEBP,
        size_wh=size_wh,
        pixel_format="rgba" if has_alpha else "rgb24",
        has_alpha=has_alpha,
        codec="webp",
        rate=facts.frames / facts.duration_s if facts.duration_s else None,
        frames=facts.frames,
        duration_s=float(facts.duration_s),
        time_base=TIME_BASE,
        streams=(stream,),
        plays=facts.plays,
    )


def animated_webp_frames(path: Path, info: MediaInfo) -> Iterator[VideoFrame]:
    """The frames in order, with their times.

    Raises:
        DamagedMediaError: One cannot be decoded.
    """
    at_ms = 0
    with pillow_errors("WebP"), Image.open(path, formats=("WEBP",)) as image:
        for index in range(info.frames or 0):
            image.seek(index)
            image.load()
            pixels = np.asarray(image.convert("RGBA" if info.has_alpha else "RGB"))
            frame = VideoFrame.from_ndarray(pixels, format=info.pixel_format)
            frame.pts, frame.time_base = at_ms, TIME_BASE
            at_ms += int(image.info.get("duration", 0))
            yield frame


def animated_webp_times(path: Path) -> Iterator[int]:
    """When each frame is shown, in milliseconds."""
    at_ms = 0
    with path.open("rb") as file:
        for chunk in webp_chunks(file):
            if chunk.name == b"ANMF":
                yield at_ms
                at_ms += int.from_bytes(read_chunk(file, chunk, at_most=16)[12:15], "little")

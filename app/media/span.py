"""A part of a video, exact to the frame: where it begins and ends, and what the file is when only that part counts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from av.container import InputContainer
from av.stream import Stream

from app.core.errors import UsageError
from app.media.clock_jumps import running_on
from app.media.demux import main_video, opened, packets
from app.media.info import MediaInfo, StreamInfo
from app.media.sniff import MediaKind
from app.media.webp_frames import animated_webp_times

_SEEK_FROM_S: Final = 10
"""Earlier starts are read up to: it costs little, and not every file seeks well."""

_SEEKABLE: Final = frozenset(
    {MediaKind.MP4, MediaKind.MOV, MediaKind.THREE_GP, MediaKind.MATROSKA, MediaKind.WEBM}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSpan:
    """From one time to another, in seconds of the file as players show it.

    Attributes:
        start_s: The first frame shown at or after it is the first one of the part.
        end_s: Frames from here on do not belong to it; `None` is the end of the file.

    Raises:
        UsageError: It begins before 0, or ends before it begins.
    """

    start_s: Fraction = Fraction(0)
    end_s: Fraction | None = None

    def __post_init__(self) -> None:
        if self.start_s < 0 or (self.end_s is not None and self.end_s <= self.start_s):
            raise UsageError("trim: the start must not be before 0, and the end must be behind it")

    @property
    def is_whole(self) -> bool:
        """True when nothing is cut off."""
        return self.start_s == 0 and self.end_s is None


WHOLE: Final = TimeSpan()
"""All of a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactSpan:
    """The same in the file's own clock, the start on a frame.

    Attributes:
        start_pts: Time of the first frame, in units of the video's time base.
        end_pts: Frames from here on are left out.
    """

    start_pts: int | None = None
    end_pts: int | None = None

    def holds(self, pts: int | None) -> bool:
        """True for a frame that is not before the part; a frame without a time counts as in it."""
        return pts is None or self.start_pts is None or pts >= self.start_pts

    def is_over(self, pts: int | None) -> bool:
        """True for a frame behind the part."""
        return pts is not None and self.end_pts is not None and pts >= self.end_pts


def exact_span(path: Path, info: MediaInfo, span: TimeSpan) -> ExactSpan:
    """Put a part onto the frames of a file.

    Raises:
        UsageError: No frame lies in it.
        MediaError: The file cannot be read.
    """
    if span.is_whole or info.time_base is None:
        return ExactSpan()
    zero_s = _zero_s(info)
    end = None if span.end_s is None else -((-(span.end_s + zero_s)) // info.time_base)
    if span.start_s == 0:
        return ExactSpan(end_pts=end)
    wanted = -(-(span.start_s + zero_s) // info.time_base)
    start = _first_from(path, info, wanted)
    if start is None or (end is not None and start >= end):
        raise UsageError(
            f"trim: no frame is shown between {float(span.start_s):.3f} s and the end; give an earlier start"
        )
    return ExactSpan(start_pts=start, end_pts=end)


def info_of_span(info: MediaInfo, span: ExactSpan) -> MediaInfo:
    """What a file is when only a part counts; its clock starts with the part."""
    if info.time_base is None or (span.start_pts is None and span.end_pts is None):
        return info
    offset_s = info.clock_offset_s
    if span.start_pts is not None:
        offset_s = span.start_pts * info.time_base
    length_s = info.duration_s
    if length_s is not None:
        end_s = float(span.end_pts * info.time_base - offset_s) if span.end_pts else length_s
        length_s = min(length_s - float(offset_s - info.clock_offset_s), end_s)
    return replace(
        info,
        clock_offset_s=offset_s,
        starts_late=span.start_pts is not None,
        ends_at_s=None if span.end_pts is None else span.end_pts * info.time_base - offset_s,
        duration_s=length_s,
        frames=None,
        missing_frames=0,
        streams=tuple(_shortened(stream, info, span) for stream in info.streams),
    )


def player_clock_s(info: MediaInfo) -> Fraction:
    """What is to be taken off a whole file's frame times to get those that players show."""
    return (
        _zero_s(info) - info.clock_offset_s if info.container is MediaKind.MPEGTS else Fraction(0)
    )


def seek_before(container: InputContainer, stream: Stream, kind: MediaKind, at_s: Fraction) -> None:
    """Skip to a key frame before a time, in files that have an index and are worth it."""
    if kind in _SEEKABLE and at_s > _SEEK_FROM_S and stream.time_base:
        container.seek(int((at_s - 1) / stream.time_base), stream=stream, backward=True)


def _zero_s(info: MediaInfo) -> Fraction:
    """What players show as 0: the beginning of a transport stream, whose clock may start anywhere."""
    stream = info.video_stream
    if info.container is not MediaKind.MPEGTS or stream is None or stream.time_base is None:
        return Fraction(0)
    return (stream.start_pts or 0) * stream.time_base


def _first_from(path: Path, info: MediaInfo, wanted: int) -> int | None:
    if info.container is MediaKind.ANIMATED_WEBP:
        return next((at for at in animated_webp_times(path) if at >= wanted), None)
    with opened(path, info.container) as container:
        stream = main_video(container)
        seek_before(container, stream, info.container, wanted * (stream.time_base or Fraction(1)))
        found = running_on(packets(container, stream), info.clock_jumps)
        times = ((p.pts, p.dts) for p in found if not p.is_discard)
        return _earliest(times, wanted)


def _earliest(times: Iterable[tuple[int | None, int | None]], wanted: int) -> int | None:
    """The lowest presentation time from `wanted` on; done once decoding is behind it, since none can follow."""
    found: int | None = None
    for pts, dts in times:
        at = dts if pts is None else pts
        if at is not None and at >= wanted:
            found = at if found is None else min(found, at)
        if found is not None and dts is not None and dts > found:
            break
    return found


def _shortened(stream: StreamInfo, info: MediaInfo, span: ExactSpan) -> StreamInfo:
    if stream.index != info.video_index or span.end_pts is None:
        return stream
    length = span.end_pts - (stream.start_pts or 0)
    return replace(stream, duration_pts=min(length, stream.duration_pts or length))

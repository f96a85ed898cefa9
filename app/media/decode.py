"""Reading a video: upright pictures over the decoder's own planes, with exact times, over damaged places."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import av
from av import VideoFrame
from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from app.core.errors import (
    DamagedMediaError,
    MediaTooLargeError,
    NoVideoError,
    SizeChangedError,
    TruncatedMediaError,
)
from app.core.picture import Picture
from app.core.types import Frame, Notice
from app.media.clock_jumps import ClockJump, running_on
from app.media.deinterlace import Deinterlacer, Shown
from app.media.demux import codec_name, main_video, opened, packets, video_decoder
from app.media.expected import ExpectedFrames
from app.media.frames import picture_of
from app.media.hardware_decode import accelerator
from app.media.holes import Complaints, Holes
from app.media.info import MediaInfo
from app.media.limits import DEFAULT_LIMITS, MediaLimits
from app.media.orientation import orientation_of, upright
from app.media.probe import probe
from app.media.side_data import has_captions
from app.media.sniff import MediaKind
from app.media.span import WHOLE, TimeSpan, exact_span, info_of_span, seek_before
from app.media.webp_frames import animated_webp_frames
from app.media.whole import end_notice, is_damaged_inside, missing_share

MAX_BAD_SHARE: Final = 0.01
"""A video with more bad frames than this is refused: the result would not be worth its time."""

_HIDES_FRAMES: Final = frozenset({"vp8"})
"""Codecs that keep frames which are never shown as packets of their own."""


_DEINTERLACED: Final = Notice(
    "media.deinterlaced",
    "the video is interlaced; its frames were made whole, one for each pair of fields",
)

_CAPTIONS_DROPPED: Final = Notice(
    "media.captions_dropped",
    "closed captions lie inside the video's frames, where they cannot be kept; subtitle tracks were kept",
)


class VideoReader:
    """One video, read from front to end.

    A frame that cannot be decoded is shown as the last good one, so that the length stays. Such frames, and those that
    the decoder had to patch up, are counted in `notices`.

    Args:
        path: The file, of any kind but a still.
        limits: What is refused.
        span: The part to read; `info` is that of the part, whose clock starts with its first frame.
        probed: What `probe` said of the file, where somebody has asked already.
        device: What decodes, see `decoding_device`; software without it.

    Raises:
        UsageError: No frame lies in the part.
        MediaError: Whatever `probe` refuses; `NoVideoError` for a still, `TruncatedMediaError` for a file of which
            more than 1 % of the frames is missing.
    """

    def __init__(
        self,
        path: Path,
        limits: MediaLimits = DEFAULT_LIMITS,
        *,
        span: TimeSpan = WHOLE,
        probed: MediaInfo | None = None,
        device: str | None = None,
    ) -> None:
        self.info: MediaInfo = probed or probe(path, limits)
        self._path = path
        self._limits = limits
        self._device = device
        self._bad = 0
        self._is_captioned = False
        self._notices: tuple[Notice, ...] = ()
        if self.info.kind == "still":
            raise NoVideoError("the file is a still picture, wanted a video")
        if self.info.frames and self.info.missing_frames > MAX_BAD_SHARE * self.info.frames:
            raise TruncatedMediaError(
                f"the file ends early: {self.info.missing_frames} of {self.info.frames} frames are missing; "
                "copy or upload it again"
            )
        missing = missing_share(path, self.info.container)
        if missing > MAX_BAD_SHARE:
            raise TruncatedMediaError(
                f"the file ends early: {missing:.0%} of it are missing; copy or upload it again"
            )
        notice = end_notice(path, self.info.container)
        self._end_notices = () if notice is None else (notice,)
        self._span = exact_span(path, self.info, span)
        self.info = info_of_span(self.info, self._span)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close nothing: the generator of `frames` owns the open file, in whichever thread it runs."""

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What a person should know of what was read; complete when `frames` has ended."""
        return self._notices

    def frames(self) -> Iterator[Frame]:
        """All frames in the order in which they are shown, with strictly rising times.

        The file is open while the generator lives. Pictures are read-only: `Picture.copy` gives one to write into.

        Raises:
            DamagedMediaError: More than 1 % of the frames are bad; at the latest at the end.
            SizeChangedError: The picture changes its size in mid-stream.
            MediaTooLargeError: There are more frames than the limits allow.
        """
        self._bad = index = 0
        self._is_captioned = False
        self._notices = self._end_notices
        clock = _Clock(self.info)
        with self._shown() as shown:
            for index, (pts, picture) in enumerate(self._pictures(shown), start=1):
                self._check_count(index)
                yield Frame(
                    index=index - 1,
                    pts=clock.tick(pts),
                    time_base=clock.time_base,
                    picture=picture,
                )
        self._judge(index)

    @contextmanager
    def _shown(self) -> Iterator[Iterator[Shown]]:
        if self.info.container is MediaKind.ANIMATED_WEBP:
            frames = animated_webp_frames(self._path, self.info)
            yield self._in_span(Shown(frame.pts, frame) for frame in frames)
            return
        hwaccel = None if self._device is None else accelerator(self._device)
        with opened(self._path, self.info.container, hwaccel=hwaccel) as container:
            stream = main_video(container)
            start_s = (self._span.start_pts or 0) * (stream.time_base or Fraction(1))
            seek_before(container, stream, self.info.container, start_s)
            deinterlacer = Deinterlacer()
            yield self._in_span(
                deinterlacer.passed(
                    _shown(container, self.info.clock_jumps, is_damaged=self._is_damaged)
                )
            )
        if deinterlacer.has_worked:
            self._notices = (*self._notices, _DEINTERLACED)

    def _is_damaged(self) -> bool:
        return is_damaged_inside(self._path, self.info.container)

    def _in_span(self, shown: Iterator[Shown]) -> Iterator[Shown]:
        """What lies in the wanted part; nothing is decoded behind it."""
        for each in shown:
            if self._span.is_over(each.pts):
                return
            if self._span.holds(each.pts):
                yield each

    def _pictures(self, shown: Iterator[Shown]) -> Iterator[tuple[int | None, Picture]]:
        """Times and pictures in the order of showing, gaps filled with the last good picture, or else the first."""
        picture: Picture | None = None
        early: list[int | None] = []
        count = 0
        for pts, decoded in shown:
            count += 1
            if decoded is None or decoded.is_corrupt:
                self._count_bad()
            if decoded is not None:
                picture = self._upright(decoded)
                self._is_captioned = self._is_captioned or has_captions(decoded)
            early.append(pts)
            if picture is not None:
                yield from ((each, picture) for each in early)
                early.clear()
        # The first frame behind the end of the file may have been there in part, and shown as damaged above.
        wanted = self.info.frames if self.info.missing_frames else None
        for _ in range(count, wanted or 0):
            self._count_bad()
            if picture is not None:
                yield None, picture

    def _upright(self, frame: VideoFrame) -> Picture:
        picture = upright(picture_of(frame), orientation_of(frame))
        if picture.size_wh != self.info.size_wh:
            (w, h), (was_w, was_h) = picture.size_wh, self.info.size_wh
            raise SizeChangedError(
                f"the picture changes from {was_w} x {was_h} to {w} x {h} pixels in mid-stream; "
                "cut the video there or scale it to one size first"
            )
        return picture

    def _count_bad(self) -> None:
        """Count a bad frame; stop at once when it is clear that there are too many."""
        self._bad += 1
        if self.info.frames is not None and self._bad > MAX_BAD_SHARE * self.info.frames:
            raise self._too_damaged(self.info.frames)

    def _check_count(self, count: int) -> None:
        if self._limits.max_frames is not None and count > self._limits.max_frames:
            raise MediaTooLargeError(
                f"length: more than the {self._limits.max_frames} frames that are allowed; cut it first"
            )

    def _judge(self, count: int) -> None:
        if count == 0 or self._bad > MAX_BAD_SHARE * count:
            raise self._too_damaged(count)
        if self._is_captioned:
            self._notices = (*self._notices, _CAPTIONS_DROPPED)
        if self._bad:
            self._notices = (
                *self._notices,
                Notice(
                    "media.damaged_frames",
                    f"{self._bad} of {count} frames are damaged in the file; where a frame could not be decoded "
                    "the last good one is shown",
                ),
            )

    def _too_damaged(self, count: int) -> DamagedMediaError:
        return DamagedMediaError(
            f"more than {MAX_BAD_SHARE:.0%} of the frames are damaged: {self._bad} or more of {count}; "
            "copy or upload the file again"
        )


class _Clock:
    """Makes times out of what the file says: strictly rising, without holes where it says nothing."""

    def __init__(self, info: MediaInfo) -> None:
        self.time_base = info.time_base or Fraction(1, 1000)
        self._offset = round(info.clock_offset_s / self.time_base)
        self._step = max(1, round(1 / (info.rate * self.time_base))) if info.rate else 1
        self._last: int | None = None

    def tick(self, pts: int | None) -> int:
        """The time to show the next frame at, given what the file says of it."""
        if pts is not None:
            pts -= self._offset
        if self._last is not None:
            pts = self._last + self._step if pts is None else max(pts, self._last + 1)
        self._last = pts or 0
        return self._last


def _shown(
    container: InputContainer, jumps: tuple[ClockJump, ...], *, is_damaged: Callable[[], bool]
) -> Iterator[Shown]:
    """Everything that should be shown, in order, with and without a frame.

    A gap is only believed once somebody has complained, the file's own structure, the demuxer or the decoder: some
    codecs drop frames by design, and video of a variable rate has gaps.
    """
    stream = main_video(container)
    expected = ExpectedFrames(is_reliable=codec_name(stream) not in _HIDES_FRAMES)
    complaints = Complaints(is_damaged)
    found = _expected(running_on(packets(container, stream), jumps), stream, expected, complaints)
    yield from Holes(complaints).filled(found)


def _expected(
    found: Iterator["Packet[Stream]"],
    stream: VideoStream,
    expected: ExpectedFrames,
    complaints: Complaints,
) -> Iterator[Shown]:
    for decoded in _decoded(found, stream, expected, complaints):
        lost = expected.came_out(decoded.pts)
        if complaints.were_heard:
            yield from (Shown(pts, None) for pts in lost)
        yield Shown(decoded.pts, decoded)
    yield from (Shown(pts, None) for pts in expected.never_came())


def _decoded(
    found: Iterator["Packet[Stream]"],
    stream: VideoStream,
    expected: ExpectedFrames,
    complaints: Complaints,
) -> Iterator[VideoFrame]:
    """The decoder's frames in the order of showing."""
    decoder = video_decoder(stream)
    decoder.thread_type = "AUTO"
    for packet in _then_none(found):
        if packet is not None and not packet.is_discard:
            expected.sent(packet.pts)
            if packet.is_corrupt:
                complaints.hear()
        try:
            yield from decoder.decode(packet)
        except av.FFmpegError:
            complaints.hear()


def _then_none(items: Iterator["Packet[Stream]"]) -> Iterator["Packet[Stream] | None"]:
    """The packets, and the `None` with which a decoder is asked for what it still holds."""
    yield from items
    yield None

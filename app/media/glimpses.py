"""A sparse look through a video: enough pictures to see who is in it, decoding no more than that takes."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Final

import av
from av import VideoFrame
from av.codec.context import ThreadType
from av.container import InputContainer
from av.video.stream import VideoStream

from app.core.errors import DamagedMediaError
from app.core.types import Frame
from app.media.demux import indexed_frames, main_video, opened, packets, video_decoder
from app.media.frames import picture_of
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.media.orientation import orientation_of, upright
from app.media.probe import probe
from app.media.sniff import MediaKind
from app.media.webp_frames import animated_webp_frames

_READ_THROUGH_S: Final = 600.0
"""Longer files with an index are seen by their key frames alone."""
_SEEKABLE: Final = frozenset(
    {MediaKind.MP4, MediaKind.MOV, MediaKind.THREE_GP, MediaKind.MATROSKA, MediaKind.WEBM}
)


def glimpses(path: Path, limits: MediaLimits, *, every_s: float) -> Iterator[Frame]:
    """Frames of a video in the order of showing, at least one in each `every_s` seconds where that is cheap.

    Where key frames lie that close, only they are decoded; else every frame that others are predicted from; of long
    files only the key frame before each step. Damaged frames are left out. More frames come than are asked for:
    whoever looks at them chooses, for instance the first of each shot.

    Args:
        path: A video or an animation.
        limits: What is refused.
        every_s: Seconds from one wanted frame to the next.

    Yields:
        Frames with strictly rising times; `index` counts what is yielded. Pictures are read-only, and good until
        the next one is asked for unless copied.

    Raises:
        DamagedMediaError: Not one frame can be decoded.
        MediaError: Whatever `probe` refuses.
    """
    info = probe(path, limits)
    index, last = 0, None
    for pts, frame in _decoded(path, info, every_s):
        at = pts - round(info.clock_offset_s / _time_base(info))
        if last is not None and at <= last:
            continue
        last = at
        picture = upright(picture_of(frame), orientation_of(frame))
        if picture.size_wh == info.size_wh:
            yield Frame(index=index, pts=at, time_base=_time_base(info), picture=picture)
            index += 1
    if index == 0:
        raise DamagedMediaError("not one frame of the video can be decoded; the file is damaged")


def _time_base(info: MediaInfo) -> Fraction:
    return info.time_base or Fraction(1, 1000)


def _decoded(path: Path, info: MediaInfo, every_s: float) -> Iterator[tuple[int, VideoFrame]]:
    if info.container is MediaKind.ANIMATED_WEBP:
        yield from ((frame.pts or 0, frame) for frame in animated_webp_frames(path, info))
        return
    with opened(path, info.container) as container:
        stream = main_video(container)
        step = every_s / _time_base(info)
        if info.container in _SEEKABLE and (info.duration_s or 0) > _READ_THROUGH_S:
            yield from _by_seeking(container, stream, round(step))
        elif _has_dense_keys(stream, step):
            yield from _key_frames(container, stream, step)
        else:
            yield from _read_through(container, stream, info)


def _has_dense_keys(stream: VideoStream, step: Fraction | float) -> bool:
    """True where the index is whole and its key frames lie close together."""
    if not indexed_frames(stream):
        return False
    entries = stream.index_entries
    times = [entries[at].timestamp for at in range(len(entries)) if entries[at].is_keyframe]
    times.append(entries[len(entries) - 1].timestamp)
    return len(times) > 2 and max(b - a for a, b in pairwise(times)) <= step


def _key_frames(
    container: InputContainer, stream: VideoStream, step: Fraction | float
) -> Iterator[tuple[int, VideoFrame]]:
    """One key frame a step; no other packet goes to the decoder, or of a file of key frames all would be decoded."""
    decoder = video_decoder(stream)
    decoder.thread_type = "AUTO"
    due: float | None = None
    for packet in packets(container, stream):
        at = packet.pts if packet.pts is not None else packet.dts
        if packet.is_keyframe and at is not None and (due is None or at >= due):
            due = at + float(step) * 0.75
            try:
                yield from _timed(decoder.decode(packet))
            except av.FFmpegError:
                continue
    yield from _timed(decoder.decode(None))


def _read_through(
    container: InputContainer, stream: VideoStream, info: MediaInfo
) -> Iterator[tuple[int, VideoFrame]]:
    decoder = video_decoder(stream)
    decoder.thread_type = "AUTO"
    decoder.skip_frame = "NONREF"
    for packet in packets(container, stream):
        try:
            yield from _timed(decoder.decode(packet))
        except av.FFmpegError:
            continue
    yield from _timed(decoder.decode(None))


def _by_seeking(
    container: InputContainer, stream: VideoStream, step: int
) -> Iterator[tuple[int, VideoFrame]]:
    decoder = video_decoder(stream)
    decoder.thread_type = ThreadType.SLICE
    start = stream.start_time or 0
    for at in range(start, start + (stream.duration or _length(container, stream)), max(1, step)):
        try:
            container.seek(at, stream=stream, backward=True)
            decoder.flush_buffers()
            packet = next((p for p in packets(container, stream) if p.is_keyframe), None)
            if packet is None:
                continue
            yield from _timed([*decoder.decode(packet), *decoder.decode(None)])
        except av.FFmpegError:
            continue


def _length(container: InputContainer, stream: VideoStream) -> int:
    """Length of a stream that does not say it itself, in its own time base."""
    length_s = Fraction(container.duration or 0, av.time_base)
    return round(length_s / (stream.time_base or Fraction(1, 1000)))


def _timed(frames: list[VideoFrame]) -> Iterator[tuple[int, VideoFrame]]:
    return ((frame.pts, frame) for frame in frames if frame.pts is not None)

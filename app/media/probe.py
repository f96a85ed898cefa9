"""What a file is: kind, size, rate, length, streams, colors, without decoding more than one frame."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final, get_args

import av
from av import AudioStream, VideoFrame
from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from app.core.color import UNSPECIFIED, ColorTags
from app.core.errors import DamagedMediaError
from app.media.animation_chunks import AnimationFacts, animation_facts
from app.media.clock_jumps import ClockWatch, clock_jumps
from app.media.demux import (
    codec_name,
    indexed_frames,
    is_cover,
    main_video,
    missing_samples,
    opened,
    packets,
    video_decoder,
)
from app.media.frames import color_tags, native_format
from app.media.hdr import dynamic_hdr, hdr_metadata
from app.media.info import MediaInfo, StreamInfo, StreamType
from app.media.limits import DEFAULT_LIMITS, MediaLimits
from app.media.orientation import Orientation, orientation_of
from app.media.side_data import side_data_of
from app.media.sniff import MediaKind, sniff
from app.media.still import still_info
from app.media.webp_frames import animated_webp_info
from app.media.whole import TOLD_BY_THEIR_ENDS, missing_frames

_COUNT_UP_TO_BYTES: Final = 512 << 20
"""Files without an index are read through once to count their frames, up to this size: a second or two."""

_MAX_START_S: Final = 10
"""Broadcast clocks start anywhere in 26 hours; a start beyond this is no start offset that anybody wants kept."""


def probe(path: Path, limits: MediaLimits = DEFAULT_LIMITS) -> MediaInfo:
    """Look at a picture or video.

    Everything that can be refused from the header is refused before anything is decoded.

    Raises:
        MediaError: A kind of it: not found, empty, of no kind we read, too large, truncated, damaged, without video.
    """
    kind = sniff(path)
    if kind.is_still:
        return still_info(path, limits)
    if kind is MediaKind.ANIMATED_WEBP:
        return animated_webp_info(path, limits)
    facts = _facts(path, kind, limits)
    with opened(path, kind) as container:
        limits.check_streams(len(container.streams))
        stream = main_video(container)
        limits.check_length(_duration_s(container), stream.frames or None)
        file_bytes = path.stat().st_size
        clock = ClockWatch()
        frame, frames = _first_frame(container, stream, limits, clock)
        info = _video_info(kind, container, frame, frames)
        if kind is MediaKind.MPEGTS and clock.has_jumped:
            info = replace(info, clock_jumps=clock_jumps(path))
        if kind not in TOLD_BY_THEIR_ENDS:
            info = replace(info, missing_frames=missing_samples(stream, file_bytes))
    if facts is not None:
        return _as_animation(info, facts)
    if kind not in TOLD_BY_THEIR_ENDS or info.frames is None:
        return info
    missing = missing_frames(path, info)
    return replace(info, frames=info.frames + missing, missing_frames=missing)


def _facts(path: Path, kind: MediaKind, limits: MediaLimits) -> AnimationFacts | None:
    if kind.family != "animation":
        return None
    return animation_facts(path, kind, limits)


def _as_animation(info: MediaInfo, facts: AnimationFacts) -> MediaInfo:
    """What the library leaves out of animated pictures: loops, and how long the last frame stays."""
    stream = info.streams[0]
    duration_pts = round(facts.duration_s / stream.time_base) if stream.time_base else None
    return replace(
        info,
        plays=facts.plays,
        duration_s=float(facts.duration_s),
        streams=(replace(stream, start_pts=0, duration_pts=duration_pts),),
    )


def _duration_s(container: InputContainer) -> float | None:
    return None if container.duration is None else container.duration / av.time_base


def _first_frame(
    container: InputContainer, stream: VideoStream, limits: MediaLimits, clock: ClockWatch
) -> tuple[VideoFrame, int | None]:
    """The first frame that can be decoded, and the number of frames where it can be had cheaply."""
    if stream.codec_context.width or stream.codec_context.height:
        limits.check_size((stream.codec_context.width, stream.codec_context.height))
    first, frames, decoder = None, indexed_frames(stream), video_decoder(stream)
    wants_count = frames is None and container.size <= _COUNT_UP_TO_BYTES
    count = 0
    for packet in packets(container, stream):
        count += not packet.is_discard
        clock.see(packet)
        if first is None:
            first = next(_decoded(decoder, packet), None)
        elif not wants_count:
            break
    first = first or next(_decoded(decoder, None), None)
    if first is None:
        raise DamagedMediaError("not one frame of the video can be decoded; the file is damaged")
    limits.check_size((first.width, first.height))
    return first, count if wants_count else frames


def _decoded(decoder: VideoCodecContext, packet: "Packet[Stream] | None") -> Iterator[VideoFrame]:
    try:
        yield from decoder.decode(packet)
    except av.FFmpegError:
        return


def _video_info(
    kind: MediaKind, container: InputContainer, frame: VideoFrame, frames: int | None
) -> MediaInfo:
    stream = main_video(container)
    orientation = orientation_of(frame)
    pixel_format = native_format(frame.format.name)
    return MediaInfo(
        kind="video",
        container=kind,
        size_wh=orientation.size_wh((frame.width, frame.height)),
        pixel_format=pixel_format.name,
        bits=pixel_format.bits,
        tags=_tags(frame, stream),
        has_alpha=pixel_format.has_alpha,
        rotation_deg=orientation.rotation_deg,
        is_mirrored=orientation.is_mirrored,
        codec=codec_name(stream),
        rate=stream.average_rate or stream.guessed_rate,
        frames=frames,
        duration_s=_duration_s(container),
        time_base=stream.time_base,
        pixel_aspect=_pixel_aspect(stream, orientation),
        is_interlaced=frame.interlaced_frame,
        streams=tuple(_stream_info(each) for each in container.streams),
        video_index=stream.index,
        clock_offset_s=_clock_offset_s(kind, container),
        hdr=hdr_metadata(frame),
        dynamic_hdr=dynamic_hdr(side_data_of(frame)),
    )


def _tags(frame: VideoFrame, stream: VideoStream) -> ColorTags:
    """The frame's tags; the stream's where a decoder leaves them out."""
    tags, context = color_tags(frame), stream.codec_context
    is_full_range = tags.is_full_range
    if is_full_range is None and context.color_range:
        is_full_range = context.color_range == 2
    return ColorTags(
        matrix=int(context.colorspace) if tags.matrix == UNSPECIFIED else tags.matrix,
        is_full_range=is_full_range,
        primaries=tags.primaries if tags.primaries != UNSPECIFIED else int(context.color_primaries),
        transfer=tags.transfer if tags.transfer != UNSPECIFIED else int(context.color_trc),
    )


def _pixel_aspect(stream: VideoStream, orientation: Orientation) -> Fraction:
    stored = stream.sample_aspect_ratio or Fraction(1)
    return 1 / stored if orientation.is_transposed else stored


def _clock_offset_s(kind: MediaKind, container: InputContainer) -> Fraction:
    start_s = Fraction(container.start_time or 0, av.time_base)
    return start_s if kind is MediaKind.MPEGTS and start_s > _MAX_START_S else Fraction(0)


def _stream_info(stream: Stream) -> StreamInfo:
    type_: StreamType = stream.type if stream.type in get_args(StreamType) else "unknown"
    sound = stream if isinstance(stream, AudioStream) else None
    return StreamInfo(
        index=stream.index,
        type=type_,
        codec=codec_name(stream),
        time_base=stream.time_base,
        start_pts=stream.start_time,
        duration_pts=_duration_pts(stream),
        language=stream.language,
        channels=None if sound is None else sound.channels,
        sample_rate_hz=None if sound is None else sound.rate,
        is_cover=is_cover(stream),
    )


def _duration_pts(stream: Stream) -> int | None:
    """The stream's length; Matroska keeps it as a tag that counts from 0, not from the stream's start."""
    tag = re.fullmatch(r"(\d+):(\d+):(\d+)\.(\d{1,9})\d*", stream.metadata.get("DURATION", ""))
    if stream.duration is not None or tag is None or not stream.time_base:
        return stream.duration
    hours, minutes, seconds, fraction = tag.groups()
    end_s = int(hours) * 3600 + int(minutes) * 60 + int(seconds) + Fraction(f"0.{fraction}")
    return round(end_s / stream.time_base) - (stream.start_time or 0)

"""What `probe` tells of a file."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from app.core.color import ColorTags
from app.media.clock_jumps import ClockJump
from app.media.hdr import HdrMetadata
from app.media.sniff import MediaKind

StreamType = Literal["video", "audio", "subtitle", "data", "attachment", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamInfo:
    """One stream of a video file.

    Attributes:
        index: Position in the file.
        codec: FFmpeg's name, such as `h264` or `aac`; empty when nobody knows it.
        start_pts: First presentation time, in units of `time_base`, where the file tells it.
        duration_pts: Length in units of `time_base`, where the file tells it.
        is_cover: A picture that goes with the file, not a video.
    """

    index: int
    type: StreamType
    codec: str
    time_base: Fraction | None = None
    start_pts: int | None = None
    duration_pts: int | None = None
    language: str | None = None
    channels: int | None = None
    sample_rate_hz: int | None = None
    is_cover: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaInfo:
    """One picture or video file, as far as its header and first frame tell.

    Attributes:
        kind: `video` is everything with frames in time, animated pictures included.
        container: The file format.
        size_wh: Size of the upright picture in pixels.
        pixel_format: Name in `core.picture.PIXEL_FORMATS` of the pictures that the reader gives.
        bits: Significant bits a sample.
        tags: Color tags as the file states them.
        rotation_deg: Degrees clockwise by which the stored picture is turned to be upright.
        is_mirrored: The stored picture is mirrored left to right before it is turned.
        codec: FFmpeg's name of the video codec; for a still the name of its format.
        rate: Average frames a second.
        frames: How many frames the file holds, counted from its index or packets; `None` when that would take long.
        duration_s: Length of the longest stream.
        time_base: Unit of the video's time stamps in seconds.
        pixel_aspect: Width of a pixel over its height, in the upright picture.
        video_index: Index of the video stream among `streams`.
        starts_late: It is a part of the file, and the file's beginning does not belong to it.
        ends_at_s: Where the part ends, in the part's own clock; `None` is the end of the file.
        hdr: What HDR10 video says of its screen and its light; `None` when it says nothing.
        dynamic_hdr: Names of what it says anew for each scene, such as `HDR10+`; none of it can be written.
        plays: How often an animation is shown, 0 for ever; `None` for what is no animation.
        missing_frames: How many of `frames` lie beyond the end of a file that was cut off.
        clock_jumps: Where the file's own clock starts again, and what makes it run on.
        clock_offset_s: What the reader takes off all time stamps; not 0 only for broadcast clocks.
    """

    kind: Literal["still", "video"]
    container: MediaKind
    size_wh: tuple[int, int]
    pixel_format: str
    bits: int = 8
    tags: ColorTags = field(default_factory=ColorTags)
    has_alpha: bool = False
    rotation_deg: int = 0
    is_mirrored: bool = False
    codec: str = ""
    rate: Fraction | None = None
    frames: int | None = 1
    duration_s: float | None = None
    time_base: Fraction | None = None
    pixel_aspect: Fraction = Fraction(1)
    is_interlaced: bool = False
    streams: tuple[StreamInfo, ...] = ()
    video_index: int = 0
    clock_offset_s: Fraction = Fraction(0)
    clock_jumps: tuple[ClockJump, ...] = ()
    missing_frames: int = 0
    hdr: HdrMetadata | None = None
    dynamic_hdr: tuple[str, ...] = ()
    plays: int | None = None
    starts_late: bool = False
    ends_at_s: Fraction | None = None

    @property
    def frames_estimate(self) -> int | None:
        """`frames`, or what rate and length make likely; for progress only."""
        if self.frames is not None or self.rate is None or self.duration_s is None:
            return self.frames
        return max(1, round(self.duration_s * self.rate))

    @property
    def video_stream(self) -> StreamInfo | None:
        """The stream that holds the video; `None` for a still."""
        return next((s for s in self.streams if s.index == self.video_index), None)

    def to_json(self) -> dict[str, object]:
        """The same as plain JSON values; rates as `"30000/1001"`, sizes as lists."""
        return {
            "kind": self.kind,
            "container": str(self.container),
            "size_wh": list(self.size_wh),
            "rate": _ratio(self.rate),
            "frames": self.frames,
            "missing_frames": self.missing_frames,
            "duration_s": None if self.duration_s is None else round(self.duration_s, 6),
            "codec": self.codec,
            "pixel_format": self.pixel_format,
            "bits": self.bits,
            "has_alpha": self.has_alpha,
            "color": {
                "matrix": self.tags.matrix,
                "primaries": self.tags.primaries,
                "transfer": self.tags.transfer,
                "is_full_range": self.tags.is_full_range,
            },
            "rotation_deg": self.rotation_deg,
            "is_mirrored": self.is_mirrored,
            "pixel_aspect": _ratio(self.pixel_aspect),
            "is_interlaced": self.is_interlaced,
            "plays": self.plays,
            "time_base": _ratio(self.time_base),
            "streams": [_stream_json(stream) for stream in self.streams],
        }


def _ratio(value: Fraction | None) -> str | None:
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _stream_json(stream: StreamInfo) -> dict[str, object]:
    return {
        "index": stream.index,
        "type": stream.type,
        "codec": stream.codec,
        "language": stream.language,
        "start_s": _seconds(stream.start_pts, stream.time_base),
        "duration_s": _seconds(stream.duration_pts, stream.time_base),
        "channels": stream.channels,
        "sample_rate_hz": stream.sample_rate_hz,
        "is_cover": stream.is_cover,
    }


def _seconds(pts: int | None, time_base: Fraction | None) -> float | None:
    return None if pts is None or time_base is None else round(float(pts * time_base), 6)

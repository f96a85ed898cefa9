"""The pictures of a video file in the making: encoder settings, colors, times, and the count of what went in."""

from fractions import Fraction
from typing import Final, cast

from av.codec.context import Flags
from av.container import OutputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from app.core.color import ColorTags
from app.core.errors import SizeChangedError
from app.core.picture import PIXEL_FORMATS, Picture, PixelFormat
from app.core.types import Frame, Notice
from app.media.display_size import PLACEHOLDER
from app.media.encodable import EncodableFrames, encoded_tags
from app.media.encoders import EncoderSpec, VideoEncoding, codec_of, encoded_format, encoder_for
from app.media.frames import color_range
from app.media.hardware import HARDWARE_ENCODERS, device_of, working_encoder
from app.media.info import MediaInfo
from app.media.orientation import fits_chroma

_USUAL_RATE: Final = Fraction(25)
_LARGE_PX: Final = 8_000_000
_SHORT_LOOKAHEAD: Final = "5"
"""Of x264, which takes 130 MB less with it at 4K than with the 10 frames of its preset `veryfast`."""


class VideoTrack:
    """The video stream of an output file, set up for its first frame.

    Each frame is held back until the next one comes, since only then is it known how long it is shown.

    Args:
        output: The file; its header must not have been written yet.
        first: The first frame, which is not written by this.
        info: What `probe` says of the video that the frames come from.
        encoding: How to encode.

    Attributes:
        frames: How many have gone in so far.
        size_wh: Of the pictures.
        notices: What the file cannot hold.

    Raises:
        FFmpegError: The library refuses the settings.
        ValueError: Likewise.
    """

    def __init__(
        self, output: OutputContainer, first: Frame, *, info: MediaInfo, encoding: VideoEncoding
    ) -> None:
        self.frames = 0
        self._output = output
        self._info = info
        self._time_base = first.time_base
        self.size_wh = first.picture.size_wh
        self._pending: Frame | None = None
        self._step = max(1, round(1 / ((info.rate or _USUAL_RATE) * self._time_base)))
        source = PIXEL_FORMATS.get(info.pixel_format, first.picture.pixel_format)
        self.notices: tuple[Notice, ...] = ()
        encoder = encoder_for(encoding)
        self._format = encoded_format(
            first.picture.pixel_format, source=source, size_wh=self.size_wh, encoder=encoder
        )
        if encoding.uses_hardware:
            encoder = self._hardware(encoder, encoding)
        tags = encoded_tags(first.picture, source=info.tags, source_is_yuv=source.family == "yuv")
        self._encodable = EncodableFrames(self._format, tags)
        self._stream = self._added_stream(encoder, encoding, tags)
        self.notices = (
            *self.notices,
            *_conversion_notices(first.picture, self._format),
            *_hdr_notices(info, encoder),
        )

    def write(self, frame: Frame) -> None:
        """Take a frame, and encode the one before it.

        Raises:
            SizeChangedError: It has another size than the first one.
            FFmpegError: The encoder or the file does not take it.
        """
        if frame.picture.size_wh != self.size_wh:
            raise SizeChangedError(
                f"frame {frame.index}: got {frame.picture.size_wh} pixels, wanted {self.size_wh} as before"
            )
        if self._pending is not None:
            self._step = max(1, frame.pts - self._pending.pts)
            self._encode(self._pending, self._step)
        self._pending = frame

    def finish(self) -> None:
        """Encode the last frame, and all that the encoder still holds.

        Raises:
            FFmpegError: The encoder or the file does not take it.
        """
        if self._pending is not None:
            self._encode(self._pending, self._last_duration(self._pending.pts))
            self._pending = None
        self._output.mux(self._stream.encode(None))

    def _encode(self, frame: Frame, duration: int) -> None:
        encoded = self._encodable.of(frame.picture)
        encoded.pts, encoded.time_base, encoded.duration = frame.pts, self._time_base, duration
        self.frames += 1
        self._output.mux(self._stream.encode(encoded))

    def _last_duration(self, pts: int) -> int:
        """Up to the end of the source's video if that is about one frame away, else as long as the frame before."""
        stream = self._info.video_stream
        if stream is None or stream.duration_pts is None or stream.time_base != self._time_base:
            return self._step
        offset = round(self._info.clock_offset_s / self._time_base)
        left = (stream.start_pts or 0) + stream.duration_pts - offset - pts
        is_likely = self._info.plays is not None or left <= 2 * self._step
        return left if left > 0 and is_likely else self._step

    def _hardware(self, software: EncoderSpec, encoding: VideoEncoding) -> EncoderSpec:
        """The card's encoder if it takes these very frames; else the software, said in a notice."""
        candidates = HARDWARE_ENCODERS.get(codec_of(encoding), ())
        fits = fits_chroma(self.size_wh, self._format)
        found = working_encoder(candidates, self._format.name, self.size_wh) if fits else None
        if found is None:
            self.notices = (
                Notice(
                    "media.software_encoder",
                    "no hardware encoder that takes this video works here; it was encoded in software",
                ),
            )
        return found or software

    def _options(self, encoder: EncoderSpec, encoding: VideoEncoding) -> dict[str, str]:
        options = encoder.codec_options(encoding)
        hdr = self._info.hdr.encoder_options(encoder.name) if self._info.hdr else {}
        for name, value in hdr.items():
            options[name] = ":".join(each for each in (options.get(name), value) if each)
        return options

    def _thrift(self, encoder: EncoderSpec, encoding: VideoEncoding) -> dict[str, str]:
        """Look less far ahead where every frame that waits costs 25 MB, or more."""
        w, h = self.size_wh
        is_ahead = encoder.name == "libx264" and encoding.preset != "ultrafast"
        return {"rc-lookahead": _SHORT_LOOKAHEAD} if is_ahead and w * h >= _LARGE_PX else {}

    def _added_stream(
        self, encoder: EncoderSpec, encoding: VideoEncoding, tags: ColorTags
    ) -> VideoStream:
        stream = cast(
            "VideoStream",
            self._output.add_stream(
                encoder.name,
                rate=self._info.rate or _USUAL_RATE,
                hwaccel=device_of(encoder),
                options={
                    **self._options(encoder, encoding),
                    **self._thrift(encoder, encoding),
                },
            ),
        )
        context = stream.codec_context
        context.width, context.height = self.size_wh
        context.pix_fmt = encoder.sent_as.get(self._format.name, self._format.name)
        context.time_base = stream.time_base = self._time_base
        # Only with this flag does the encoder hand each frame's duration on to its packet.
        context.flags |= Flags.frame_duration
        if self._info.pixel_aspect != 1:
            context.sample_aspect_ratio = self._info.pixel_aspect
            if encoding.container in ("matroska", "webm"):
                stream.metadata["title"] = PLACEHOLDER
        if encoder.codec_tag and encoding.container in ("mp4", "mov"):
            context.codec_tag = encoder.codec_tag
        if self._format.has_alpha:
            stream.metadata["alpha_mode"] = "1"
        _set_stream_colors(context, tags)
        return stream


def _set_stream_colors(context: VideoCodecContext, tags: ColorTags) -> None:
    context.colorspace = tags.matrix
    context.color_range = color_range(tags)
    context.color_primaries = tags.primaries
    context.color_trc = tags.transfer


def _conversion_notices(picture: Picture, encoded: PixelFormat) -> tuple[Notice, ...]:
    """What the encoder's pixel format cannot hold."""
    notices = []
    own = picture.pixel_format
    if own.has_alpha and not encoded.has_alpha and _is_see_through(picture):
        notices.append(
            Notice("media.alpha_dropped", "the output format has no transparency; it was left out")
        )
    if encoded.bits < own.bits:
        notices.append(
            Notice(
                "media.depth_reduced",
                f"the output format holds {encoded.bits} bits a sample, the input has {own.bits}",
            )
        )
    pairs = zip(own.chroma_shift_xy, encoded.chroma_shift_xy, strict=True)
    if own.family == "yuv" and any(before < after for before, after in pairs):
        notices.append(
            Notice(
                "media.chroma_reduced",
                "the output format keeps colors in a lower resolution than the input",
            )
        )
    return tuple(notices)


def _hdr_notices(info: MediaInfo, encoder: EncoderSpec) -> tuple[Notice, ...]:
    """What HDR video says of itself and the encoder cannot."""
    notices = []
    if info.dynamic_hdr:
        notices.append(
            Notice(
                "media.dynamic_hdr_dropped",
                f"{' and '.join(info.dynamic_hdr)}: what it says of each scene was left out; the picture that it "
                "builds on was kept",
            )
        )
    if info.hdr is not None and not info.hdr.encoder_options(encoder.name):
        notices.append(
            Notice(
                "media.hdr_facts_dropped",
                "this encoder cannot say which screen the video was made on and how bright it gets; "
                "H.264, HEVC and AV1 in software can",
            )
        )
    return tuple(notices)


def _is_see_through(picture: Picture) -> bool:
    alpha = (
        picture.planes[-1] if picture.pixel_format.family != "rgb" else picture.planes[0][..., 3]
    )
    return bool((alpha < (1 << picture.pixel_format.bits) - 1).any())

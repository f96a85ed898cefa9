"""Encoders of graphics cards and processors: used only where they really encode a frame, not where they are listed.

VAAPI is not among them: it takes frames in its own memory only, which PyAV cannot fill.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final, cast

import av
from av import VideoFrame
from av.video.codeccontext import VideoCodecContext

from app.media.encoders import NO_CAPTIONS, Container, EncoderSpec, Preset, VideoCodec

_TRIED_WH: Final = (256, 256)
"""Some of them refuse smaller pictures."""

_NVENC_PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {
    "ultrafast": {"preset": "p1"},
    "veryfast": {"preset": "p3"},
    "medium": {"preset": "p5"},
    "slow": {"preset": "p7"},
}
_QSV_PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {
    "ultrafast": {"preset": "veryfast"},
    "veryfast": {"preset": "faster"},
    "medium": {"preset": "medium"},
    "slow": {"preset": "veryslow"},
}
_NO_PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {name: {} for name in _QSV_PRESETS}
_ISO_AND_MATROSKA: Final[tuple[Container, ...]] = ("mp4", "mov", "matroska")


def _nvenc(name: str, containers: tuple[Container, ...], tag: str | None = None) -> EncoderSpec:
    return EncoderSpec(
        name=name,
        containers=containers,
        formats=("yuv420p", "yuv444p"),
        rate_factor=(51, 20),
        rate_option="cq",
        presets=_NVENC_PRESETS,
        options={"rc": "vbr", "b": "0", **NO_CAPTIONS},
        codec_tag=tag,
    )


def _quick_sync(name: str, tag: str | None = None) -> EncoderSpec:
    return EncoderSpec(
        name=name,
        containers=_ISO_AND_MATROSKA,
        formats=("yuv420p",),
        rate_factor=(51, 20),
        rate_option="global_quality",
        presets=_QSV_PRESETS,
        codec_tag=tag,
    )


def _video_toolbox(name: str, tag: str | None = None) -> EncoderSpec:
    """Its quality is 1 to 100, times 118 (FFmpeg's lambda unit)."""
    return EncoderSpec(
        name=name,
        containers=_ISO_AND_MATROSKA,
        formats=("yuv420p",),
        rate_factor=(118, 7670),
        rate_option="global_quality",
        presets=_NO_PRESETS,
        options={"flags": "+qscale"},
        codec_tag=tag,
    )


HARDWARE_ENCODERS: Final[Mapping[VideoCodec, Sequence[EncoderSpec]]] = MappingProxyType(
    {
        "h264": (
            _nvenc("h264_nvenc", _ISO_AND_MATROSKA),
            _quick_sync("h264_qsv"),
            _video_toolbox("h264_videotoolbox"),
        ),
        "hevc": (
            _nvenc("hevc_nvenc", _ISO_AND_MATROSKA, "hvc1"),
            _quick_sync("hevc_qsv", "hvc1"),
            _video_toolbox("hevc_videotoolbox", "hvc1"),
        ),
        "av1": (_nvenc("av1_nvenc", ("mp4", "matroska", "webm")),),
    }
)


def working_encoder(candidates: Sequence[EncoderSpec], pixel_format: str) -> EncoderSpec | None:
    """The first encoder that encodes a frame of a pixel format here and now; `None` when there is none."""
    return next(
        (
            each
            for each in candidates
            if pixel_format in each.formats and encodes(each, pixel_format)
        ),
        None,
    )


def encodes(encoder: EncoderSpec, pixel_format: str) -> bool:
    """Try an encoder on one frame."""
    try:
        context = cast("VideoCodecContext", av.CodecContext.create(encoder.name, "w"))
        context.width, context.height = _TRIED_WH
        context.pix_fmt = pixel_format
        context.time_base = Fraction(1, 25)
        frame = VideoFrame(*_TRIED_WH, pixel_format)
        frame.pts = 0
        return bool([*context.encode(frame), *context.encode(None)])
    except (av.FFmpegError, ValueError):
        return False

"""Encoders of graphics cards and processors: used only where they really encode a frame, not where they are listed.

Which of them there are is the library's affair: PyAV's own wheels for Linux bring NVENC and Quick Sync, those for macOS
VideoToolbox; VAAPI comes with builds against a system's FFmpeg. What is missing is as good as what does not work.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final, cast

import av
from av import VideoFrame
from av.codec.hwaccel import HWAccel
from av.video.codeccontext import VideoCodecContext

from app.media.encoders import NO_CAPTIONS, Container, EncoderSpec, Preset, VideoCodec

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
_AV1_CONTAINERS: Final[tuple[Container, ...]] = ("mp4", "matroska", "webm")
_VP9_CONTAINERS: Final[tuple[Container, ...]] = ("webm", "matroska", "mp4")


_DEEP: Final[Mapping[str, str]] = {"yuv420p10le": "p010le"}
_PACKED: Final[Mapping[str, str]] = {"yuv420p": "nv12", **_DEEP}
"""The same samples in the order in which graphics hardware has them."""


def _nvenc(name: str, containers: tuple[Container, ...], tag: str | None = None) -> EncoderSpec:
    is_deep = not name.startswith("h264")
    return EncoderSpec(
        name=name,
        containers=containers,
        formats=("yuv420p", "yuv444p", *(_DEEP if is_deep else ())),
        sent_as=_DEEP,
        rate_factor=(51, 20),
        rate_option="cq",
        presets=_NVENC_PRESETS,
        options={"rc": "vbr", "b": "0", **NO_CAPTIONS},
        codec_tag=tag,
    )


def _quick_sync(
    name: str, containers: tuple[Container, ...] = _ISO_AND_MATROSKA, tag: str | None = None
) -> EncoderSpec:
    is_deep = not name.startswith("h264")
    return EncoderSpec(
        name=name,
        containers=containers,
        formats=tuple(_PACKED if is_deep else ("yuv420p",)),
        sent_as=_PACKED,
        rate_factor=(51, 20),
        rate_option="global_quality",
        presets=_QSV_PRESETS,
        codec_tag=tag,
    )


def _vaapi(
    name: str, containers: tuple[Container, ...] = _ISO_AND_MATROSKA, tag: str | None = None
) -> EncoderSpec:
    """Its number is a quantizer: up to 51, for AV1 and VP9 up to 255."""
    has_wide_scale = name.startswith(("av1", "vp9"))
    return EncoderSpec(
        name=name,
        containers=containers,
        formats=tuple(("yuv420p",) if name.startswith("h264") else _PACKED),
        sent_as=_PACKED,
        device="vaapi",
        rate_factor=(255, 90) if has_wide_scale else (51, 20),
        rate_option="global_quality",
        presets=_NO_PRESETS,
        options={"rc_mode": "CQP"},
        codec_tag=tag,
    )


def _video_toolbox(name: str, tag: str | None = None) -> EncoderSpec:
    """Its quality is 1 to 100, times 118 (FFmpeg's lambda unit)."""
    return EncoderSpec(
        name=name,
        containers=_ISO_AND_MATROSKA,
        formats=tuple(("yuv420p",) if name.startswith("h264") else _PACKED),
        sent_as=_PACKED,
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
            _vaapi("h264_vaapi"),
            _video_toolbox("h264_videotoolbox"),
        ),
        "hevc": (
            _nvenc("hevc_nvenc", _ISO_AND_MATROSKA, "hvc1"),
            _quick_sync("hevc_qsv", tag="hvc1"),
            _vaapi("hevc_vaapi", tag="hvc1"),
            _video_toolbox("hevc_videotoolbox", "hvc1"),
        ),
        "av1": (
            _nvenc("av1_nvenc", _AV1_CONTAINERS),
            _quick_sync("av1_qsv", _AV1_CONTAINERS),
            _vaapi("av1_vaapi", _AV1_CONTAINERS),
        ),
        "vp9": (
            _quick_sync("vp9_qsv", _VP9_CONTAINERS),
            _vaapi("vp9_vaapi", _VP9_CONTAINERS),
        ),
    }
)


def working_encoder(
    candidates: Sequence[EncoderSpec], pixel_format: str, size_wh: tuple[int, int]
) -> EncoderSpec | None:
    """The first encoder that encodes a frame of this format and size here and now; `None` when there is none."""
    return next(
        (
            each
            for each in candidates
            if pixel_format in each.formats and encodes(each, pixel_format, size_wh)
        ),
        None,
    )


def device_of(encoder: EncoderSpec) -> HWAccel | None:
    """The device that an encoder works on; `None` for one that needs none named.

    Raises:
        ValueError: The library knows no such device.
    """
    return None if encoder.device is None else HWAccel(encoder.device)


def encodes(encoder: EncoderSpec, pixel_format: str, size_wh: tuple[int, int]) -> bool:
    """Try an encoder on one frame of the very size: each of them has a smallest and a largest picture."""
    try:
        context = cast(
            "VideoCodecContext",
            av.CodecContext.create(encoder.name, "w", hwaccel=device_of(encoder)),
        )
        context.width, context.height = size_wh
        context.pix_fmt = encoder.sent_as.get(pixel_format, pixel_format)
        context.time_base = Fraction(1, 25)
        frame = VideoFrame(*size_wh, pixel_format)
        frame.pts = 0
        return bool([*context.encode(frame), *context.encode(None)])
    except (av.FFmpegError, ValueError, RuntimeError):
        return False

"""Which encoder makes what, in which pixel format, and how one quality scale maps to each encoder's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from app.core.errors import UnsupportedOutputError
from app.core.picture import PIXEL_FORMATS, PixelFormat
from app.media.orientation import fits_chroma

Container = Literal["mp4", "mov", "matroska", "webm"]
VideoCodec = Literal["h264", "hevc", "av1", "vp9", "prores", "ffv1"]
Preset = Literal["ultrafast", "veryfast", "medium", "slow"]

_CONTAINERS: Final[Mapping[str, Container]] = MappingProxyType(
    {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoEncoding:
    """How a video is written.

    Attributes:
        container: File format; the file's name is not asked.
        codec: `None` is the container's usual one: VP9 in WebM, H.264 elsewhere.
        quality: 0 to 100; 80 is hard to tell from the input.
        preset: Speed of the encoder; a slower one makes a smaller file of the same quality.
        uses_hardware: Let the graphics card or processor encode, where it can.
    """

    container: Container = "mp4"
    codec: VideoCodec | None = None
    quality: int = 80
    preset: Preset = "veryfast"
    uses_hardware: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.quality <= 100:
            raise ValueError(f"quality: got {self.quality}, wanted 0 to 100")


def container_of(path: Path) -> Container:
    """The file format that a file name asks for.

    Raises:
        UnsupportedOutputError: No video format that we write has this suffix.
    """
    container = _CONTAINERS.get(path.suffix.lower())
    if container is None:
        raise UnsupportedOutputError(
            f"output suffix: got {path.suffix or 'none'}, wanted one of {', '.join(_CONTAINERS)} for a video, "
            "or .gif, .webp or .apng"
        )
    return container


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderSpec:
    """One encoder of the library.

    Attributes:
        name: FFmpeg's name of the encoder.
        containers: Where its codec may lie.
        formats: Pixel formats that it takes, of those in `PIXEL_FORMATS`.
        rate_factor: The encoder's own quality number at quality 0 and at quality 80; linear beyond.
        presets: Its options for each preset.
        options: What it always gets.
        takes_odd_sizes: Subsampled chroma may have half a sample at the edge.
        codec_tag: Four letters that players of MP4 and MOV want to see.
        rate_option: What the encoder calls its quality number.
        sent_as: The layout in which it wants the samples of a format, where that is another one.
        device: The kind of device into whose memory frames are sent; `None` for an encoder that takes ours.
    """

    name: str
    containers: tuple[Container, ...]
    formats: tuple[str, ...]
    rate_factor: tuple[float, float] | None
    presets: Mapping[Preset, Mapping[str, str]]
    options: Mapping[str, str] = field(default_factory=dict)
    takes_odd_sizes: bool = False
    codec_tag: str | None = None
    rate_option: str = "crf"
    sent_as: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None

    def codec_options(self, encoding: VideoEncoding) -> dict[str, str]:
        """The encoder's options for a quality and a preset."""
        options = {**self.options, **self.presets[encoding.preset]}
        if self.rate_factor is not None:
            worst, at_80 = self.rate_factor
            options[self.rate_option] = (
                f"{max(0.0, worst + (at_80 - worst) * encoding.quality / 80):.2f}"
            )
        return options


def _formats(tags: str, bits: tuple[int, ...]) -> tuple[str, ...]:
    depths = [f"p{b}le" if b > 8 else "p" for b in bits]
    return tuple(f"yuv{tag}{depth}" for tag in tags.split() for depth in depths)


_X26X_PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {
    name: {"preset": name} for name in ("ultrafast", "veryfast", "medium", "slow")
}
_VP9_PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {
    "ultrafast": {"deadline": "realtime", "cpu-used": "8"},
    "veryfast": {"deadline": "realtime", "cpu-used": "6"},
    "medium": {"deadline": "good", "cpu-used": "4"},
    "slow": {"deadline": "good", "cpu-used": "2"},
}

_AV1_PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {
    "ultrafast": {"preset": "10"},
    "veryfast": {"preset": "9"},
    "medium": {"preset": "7"},
    "slow": {"preset": "4"},
}

NO_CAPTIONS: Final = MappingProxyType({"a53cc": "0"})
"""Captions hidden in the decoder's frames would reach the output with the unchanged frames only."""

ENCODERS: Final[Mapping[VideoCodec, EncoderSpec]] = MappingProxyType(
    {
        "h264": EncoderSpec(
            name="libx264",
            containers=("mp4", "mov", "matroska"),
            formats=_formats("420 422 444", (8, 10)),
            rate_factor=(51, 18),
            presets=_X26X_PRESETS,
            options=NO_CAPTIONS,
        ),
        "hevc": EncoderSpec(
            name="libx265",
            containers=("mp4", "mov", "matroska"),
            formats=_formats("420 422 444", (8, 10, 12)),
            rate_factor=(51, 20),
            presets=_X26X_PRESETS,
            options={"x265-params": "log-level=none"},
            codec_tag="hvc1",
        ),
        "vp9": EncoderSpec(
            name="libvpx-vp9",
            containers=("webm", "matroska", "mp4"),
            formats=_formats("420 422 440 444 a420 a422 a444", (8,)),
            rate_factor=(63, 24),
            presets=_VP9_PRESETS,
            options={"b": "0", "row-mt": "1"},
            takes_odd_sizes=True,
        ),
        "av1": EncoderSpec(
            name="libsvtav1",
            containers=("mp4", "matroska", "webm"),
            formats=_formats("420", (8, 10)),
            rate_factor=(63, 24),
            presets=_AV1_PRESETS,
            takes_odd_sizes=True,
        ),
        "prores": EncoderSpec(
            name="prores_ks",
            containers=("mov", "matroska"),
            formats=_formats("422 444 a444", (10,)),
            rate_factor=None,
            presets={name: {} for name in _X26X_PRESETS},
            options={"vendor": "apl0"},
            takes_odd_sizes=True,
        ),
        "ffv1": EncoderSpec(
            name="ffv1",
            containers=("matroska", "mov"),
            formats=_formats("420 422 440 444", (8, 10, 12))
            + _formats("a420", (8,))
            + _formats("a422 a444", (8, 10, 12)),
            rate_factor=None,
            presets={name: {} for name in _X26X_PRESETS},
            options={"level": "3", "slicecrc": "1"},
            takes_odd_sizes=True,
        ),
    }
)
"""Rate factors: 18 of x264 and its like in the others are what their makers call visually lossless."""


def codec_of(encoding: VideoEncoding) -> VideoCodec:
    """The codec of an encoding: the one it names, or the container's usual one."""
    return encoding.codec or ("vp9" if encoding.container == "webm" else "h264")


def encoder_for(encoding: VideoEncoding) -> EncoderSpec:
    """The encoder of an encoding.

    Raises:
        UnsupportedOutputError: The container does not take the codec.
    """
    codec = codec_of(encoding)
    encoder = ENCODERS[codec]
    if encoding.container not in encoder.containers:
        raise UnsupportedOutputError(
            f"codec {codec} does not go into {encoding.container}; wanted one of {', '.join(encoder.containers)}"
        )
    return encoder


def encoded_format(
    picture: PixelFormat, *, source: PixelFormat, size_wh: tuple[int, int], encoder: EncoderSpec
) -> PixelFormat:
    """The pixel format to encode pictures in: their own wherever the encoder takes it, so that nothing is converted.

    Args:
        picture: Format of the pictures.
        source: Format of the video they come from: gives the chroma for pictures that were made RGB on the way.
        size_wh: Size of the pictures.
        encoder: Who has to take it.

    Returns:
        A YUV format; odd sizes get full chroma, since most encoders cannot halve them.
    """
    like = next(
        (each for each in (picture, source) if each.family == "yuv"), PIXEL_FORMATS["yuv420p"]
    )
    depth = min(picture.bits, 12)
    tags = [tag for tag in ("420", "422", "440", "444") if tag in like.name]
    if not any("420" in name for name in encoder.formats):
        # Half the chroma of 4:2:0 is nearer to 4:2:2 than all of it.
        tags.append("422")
    tags += ["444", "420"]
    for alpha in ("a", "") if picture.has_alpha else ("",):
        for bits in _depths(depth):
            for tag in tags:
                name = f"yuv{alpha}{tag}p{bits}le" if bits > 8 else f"yuv{alpha}{tag}p"
                if name in encoder.formats and (
                    encoder.takes_odd_sizes or fits_chroma(size_wh, PIXEL_FORMATS[name])
                ):
                    return PIXEL_FORMATS[name]
    return PIXEL_FORMATS["yuv444p"]


def _depths(bits: int) -> list[int]:
    """Depths to try: the picture's own, the next lower ones, then the next higher ones."""
    lower = [each for each in (12, 10, 8) if each <= bits]
    return lower + [each for each in (8, 10, 12) if each > bits]

"""HDR10: depth, tags, mastering display and light level come out as they went in."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from app.core.color import ColorTags
from app.core.tone import PQ
from app.media.choices import CodecChoice
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.encoder_choice import chosen_codec
from app.media.encoders import Container, VideoCodec
from app.media.hdr import HdrMetadata, is_hdr
from app.media.info import MediaInfo
from app.media.probe import probe
from app.media.sniff import MediaKind
from tests.media.clips import noise_frame
from tests.media.conftest import MakeClip

FACTS = HdrMetadata(
    primaries_xy=(
        (Fraction(34_000, 50_000), Fraction(16_000, 50_000)),
        (Fraction(13_250, 50_000), Fraction(34_500, 50_000)),
        (Fraction(7500, 50_000), Fraction(3000, 50_000)),
        (Fraction(15_635, 50_000), Fraction(16_450, 50_000)),
    ),
    luminance=(Fraction(50, 10_000), Fraction(1000)),
    light_level=(1000, 400),
)
BT2020_PQ = {"color_primaries": 9, "color_trc": 16, "colorspace": 9, "color_range": 1}


@pytest.fixture
def hdr10(make_clip: MakeClip) -> Path:
    params = (
        "log-level=none:hdr10=1:max-cll=1000,400:"
        "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)"
    )
    return make_clip(
        "hdr.mp4",
        frames=5,
        codec="libx265",
        pixel_format="yuv420p10le",
        options={"x265-params": params, "preset": "ultrafast"},
        context=BT2020_PQ,
    )


def copy(source: Path, path: Path, encoding: VideoEncoding) -> MediaInfo:
    with (
        VideoReader(source) as reader,
        VideoWriter(
            path, source=source, info=reader.info, encoding=encoding, metadata={}
        ) as writer,
    ):
        for frame in reader.frames():
            writer.write(frame)
    assert not writer.notices
    return probe(path)


def test_probe_reads_the_facts(hdr10: Path) -> None:
    info = probe(hdr10)
    assert info.hdr == FACTS
    assert is_hdr(info.tags.transfer)


@pytest.mark.parametrize("codec", ["hevc", "av1"])
@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_facts_depth_and_tags_are_kept(
    codec: VideoCodec, container: Container, hdr10: Path, tmp_path: Path
) -> None:
    encoding = VideoEncoding(container=container, codec=codec, preset="ultrafast")
    after = copy(hdr10, tmp_path / "out", encoding)
    before = probe(hdr10)
    assert after.bits == 10
    assert after.tags == before.tags
    assert after.hdr is not None
    assert after.hdr.light_level == FACTS.light_level
    assert after.hdr.primaries_xy is not None
    assert after.hdr.luminance is not None
    for was, now in zip(FACTS.primaries_xy or (), after.hdr.primaries_xy, strict=True):
        assert max(abs(a - b) for a, b in zip(was, now, strict=True)) < Fraction(1, 20_000)
    assert abs(after.hdr.luminance[1] - 1000) < 1
    assert abs(after.hdr.luminance[0] - Fraction(5, 1000)) < Fraction(1, 1000)


def test_video_that_says_nothing_gets_nothing(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=3)
    assert copy(source, tmp_path / "out", VideoEncoding(codec="hevc")).hdr is None


@pytest.mark.parametrize(
    ("facts", "encoder"), [(HdrMetadata(light_level=(1, 2)), "libx265"), (FACTS, "libx264")]
)
def test_no_encoder_gets_what_it_does_not_know(facts: HdrMetadata, encoder: str) -> None:
    options = "".join(facts.encoder_options(encoder).values())
    assert "display" not in options


def info(codec: str, *, bits: int = 8, transfer: int = 1, has_alpha: bool = False) -> MediaInfo:
    return MediaInfo(
        kind="video",
        container=MediaKind.MP4,
        size_wh=(64, 48),
        pixel_format="yuv420p",
        bits=bits,
        tags=ColorTags(transfer=transfer),
        has_alpha=has_alpha,
        codec=codec,
    )


@pytest.mark.parametrize(
    ("choice", "container", "source", "codec"),
    [
        pytest.param("auto", "mp4", info("hevc"), "h264", id="plays everywhere"),
        pytest.param("auto", "mp4", info("h264", bits=10), "h264", id="10 bit"),
        pytest.param("auto", "mp4", info("hevc", bits=10, transfer=PQ), "hevc", id="HDR"),
        pytest.param("auto", "mov", info("prores", bits=12), "hevc", id="12 bit"),
        pytest.param("auto", "mov", info("prores", has_alpha=True), "prores", id="alpha in MOV"),
        pytest.param("auto", "matroska", info("ffv1", has_alpha=True), "vp9", id="alpha in MKV"),
        pytest.param("auto", "webm", info("h264"), "vp9", id="WebM"),
        pytest.param("auto", "webm", info("h264", bits=10, transfer=PQ), "av1", id="HDR in WebM"),
        pytest.param("like-input", "mp4", info("av1"), "av1", id="like the input"),
        pytest.param("like-input", "mp4", info("prores"), "h264", id="a codec that does not fit"),
        pytest.param("like-input", "mp4", info("mpeg2video"), "h264", id="one we do not write"),
        pytest.param("prores", "mov", info("h264"), "prores", id="as named"),
    ],
)
def test_the_codec_follows_choice_container_and_input(
    choice: CodecChoice, container: Container, source: MediaInfo, codec: VideoCodec
) -> None:
    assert chosen_codec(choice, container=container, info=source) == codec


@pytest.mark.parametrize(
    ("codec", "container", "size_wh", "pixel_format"),
    [
        ("av1", "mp4", (64, 48), "yuv420p"),
        ("av1", "webm", (65, 49), "yuv420p"),
        ("prores", "mov", (64, 48), "yuv422p10le"),
        ("prores", "mov", (65, 49), "yuv422p10le"),
    ],
)
def test_av1_and_prores_hold_every_frame(
    codec: VideoCodec,
    container: Container,
    size_wh: tuple[int, int],
    pixel_format: str,
    make_clip: MakeClip,
    tmp_path: Path,
) -> None:
    source = make_clip("a.mkv", frames=10, codec="ffv1", options={}, size_wh=size_wh)
    path = tmp_path / "out"
    after = copy(source, path, VideoEncoding(container=container, codec=codec, preset="ultrafast"))
    assert (after.codec, after.frames, after.size_wh) == (codec, 10, size_wh)
    assert after.pixel_format == pixel_format


def test_prores_keeps_alpha(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=3, codec="ffv1", options={}, pixel_format="yuva444p10le")
    path = tmp_path / "out.mov"
    assert copy(source, path, VideoEncoding(container="mov", codec="prores")).has_alpha
    with av.open(str(path)) as file:
        shown = next(file.decode(video=0)).reformat(format="yuva444p10le")
    wanted = noise_frame((64, 48), "yuva444p10le", 0)
    assert bytes(shown.planes[3])[:96] == bytes(wanted.planes[3])[:96]

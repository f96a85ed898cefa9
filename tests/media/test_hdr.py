"""HDR10: depth, tags, mastering display and light level come out as they went in."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from app.core.color import ColorTags
from app.core.tone import PQ
from app.media.choices import CodecChoice
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding
from app.media.encoder_choice import chosen_codec
from app.media.encoders import Container, VideoCodec
from app.media.frames import DecodedPicture
from app.media.hdr import HdrMetadata, is_hdr
from app.media.info import MediaInfo
from app.media.probe import probe
from app.media.sniff import MediaKind
from app.media.tonemap import info_in_sdr
from tests.media.clips import noise_frame, put_before_each_frame
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video

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


def copied(source: Path, path: Path, encoding: VideoEncoding) -> list[str]:
    """Copy a video; codes of what was said."""
    return copy_video(source, path, encoding).written_codes


def copy(source: Path, path: Path, encoding: VideoEncoding) -> MediaInfo:
    assert not copied(source, path, encoding)
    return probe(path)


def test_probe_reads_the_facts(hdr10: Path) -> None:
    info = probe(hdr10)
    assert info.hdr == FACTS
    assert is_hdr(info.tags.transfer)


@pytest.mark.parametrize("codec", ["h264", "hevc", "av1"])
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
    ("facts", "encoder"), [(HdrMetadata(light_level=(1, 2)), "libx265"), (FACTS, "ffv1")]
)
def test_no_encoder_gets_what_it_does_not_know(facts: HdrMetadata, encoder: str) -> None:
    options = "".join(facts.encoder_options(encoder).values())
    assert "display" not in options


@pytest.mark.parametrize(
    ("codec", "container"), [("ffv1", "matroska"), ("prores", "mov"), ("vp9", "webm")]
)
def test_facts_that_an_encoder_cannot_write_are_said_to_be_lost(
    codec: VideoCodec, container: Container, hdr10: Path, tmp_path: Path
) -> None:
    encoding = VideoEncoding(container=container, codec=codec, preset="ultrafast")
    notices = copied(hdr10, tmp_path / "out", encoding)
    assert "media.hdr_facts_dropped" in notices
    assert ("media.depth_reduced" in notices) == (codec == "vp9")
    assert probe(tmp_path / "out").tags == probe(hdr10).tags


def with_hdr10_plus(source: Path, path: Path) -> None:
    """Put a message of SMPTE ST 2094-40 before each frame of an HEVC file.

    Source: CTA-861.4 (the message), ITU-T H.265 7.3.1, 7.3.2.4 (where it lies, and the bytes that keep it unique).
    """
    fields = [(0xB5, 8), (0x3C, 16), (1, 16), (4, 8), (1, 8), (1, 2), (400, 27), (0, 1)]
    fields += [(1000, 17), (1100, 17), (1200, 17), (300, 17), (0, 4), (5, 10), (0, 1), (0, 1)]
    fields += [(0, 1)]
    bits = "".join(f"{value:0{width}b}" for value, width in fields)
    message = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    payload = bytes((4, len(message))) + message + b"\x80"
    for number in range(4):
        payload = payload.replace(bytes((0, 0, number)), bytes((0, 0, 3, number)))
    unit = bytes((39 << 1, 1)) + payload
    put_before_each_frame(unit, source, path)


def test_frames_that_carry_dynamic_hdr_do_not_go_on_as_decoded(hdr10: Path, tmp_path: Path) -> None:
    """Else it would be in the frames without a swapped face only."""
    plus = tmp_path / "plus.mp4"
    with_hdr10_plus(hdr10, plus)
    for path, goes_on in ((hdr10, True), (plus, False)):
        with VideoReader(path) as reader:
            pictures = [frame.picture for frame in reader.frames()]
        assert {isinstance(picture, DecodedPicture) for picture in pictures} == {goes_on}


def test_what_changes_from_scene_to_scene_is_said_to_be_lost(hdr10: Path, tmp_path: Path) -> None:
    plus, path = tmp_path / "plus.mp4", tmp_path / "out"
    with_hdr10_plus(hdr10, plus)
    assert probe(hdr10).dynamic_hdr == ()
    assert probe(plus).dynamic_hdr == ("HDR10+",)
    encoding = VideoEncoding(codec="hevc", preset="ultrafast")
    assert copied(plus, path, encoding) == ["media.dynamic_hdr_dropped"]
    after = probe(path)
    assert after.hdr is not None
    assert (after.hdr.light_level, after.bits) == (FACTS.light_level, 10)
    assert info_in_sdr(probe(plus)).dynamic_hdr == ()


@pytest.mark.parametrize(
    ("codec", "pixel_format", "is_reduced"),
    [
        ("av1", "yuv444p", True),
        ("av1", "yuv422p10le", True),
        ("hevc", "yuv422p10le", False),
        ("h264", "yuv444p", False),
        ("vp9", "yuv444p", False),
        ("vp9", "yuv422p", False),
        ("prores", "yuv444p", False),
    ],
)
def test_colors_in_a_lower_resolution_are_said(
    codec: VideoCodec, pixel_format: str, is_reduced: bool, make_clip: MakeClip, tmp_path: Path
) -> None:
    source = make_clip("a.mkv", frames=3, codec="ffv1", options={}, pixel_format=pixel_format)
    container: Container = "mov" if codec == "prores" else "matroska"
    notices = copied(source, tmp_path / "out", VideoEncoding(container=container, codec=codec))
    assert notices == (["media.chroma_reduced"] if is_reduced else [])


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
        pytest.param("auto", "webm", info("h264", bits=10), "av1", id="10 bit in WebM"),
        pytest.param("like-input", "mp4", info("av1"), "av1", id="like the input"),
        pytest.param("like-input", "webm", info("vp9"), "vp9", id="VP9"),
        pytest.param("like-input", "webm", info("vp9", bits=10), "av1", id="10-bit VP9"),
        pytest.param("like-input", "webm", info("vp9", bits=12, transfer=PQ), "av1", id="HDR VP9"),
        pytest.param(
            "like-input", "matroska", info("vp9", bits=10, transfer=PQ), "hevc", id="HDR VP9 in MKV"
        ),
        pytest.param("like-input", "mov", info("prores", bits=12), "prores", id="12-bit ProRes"),
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

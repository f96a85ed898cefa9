from pathlib import Path

import av
import pytest

from app.core.errors import UnsupportedOutputError
from app.core.picture import PIXEL_FORMATS
from app.media.encoders import (
    ENCODERS,
    VideoCodec,
    VideoEncoding,
    container_of,
    encoded_format,
    encoder_for,
)


@pytest.mark.parametrize("codec", ENCODERS)
def test_the_library_takes_every_listed_pixel_format(codec: VideoCodec) -> None:
    encoder = ENCODERS[codec]
    taken = {each.name for each in av.codec.Codec(encoder.name, "w").video_formats or ()}
    assert set(encoder.formats) <= taken
    assert set(encoder.formats) <= set(PIXEL_FORMATS)


@pytest.mark.parametrize("codec", ENCODERS)
def test_every_preset_has_options(codec: VideoCodec) -> None:
    assert set(ENCODERS[codec].presets) == {"ultrafast", "veryfast", "medium", "slow"}


@pytest.mark.parametrize(
    ("quality", "crf"), [(0, "51.00"), (80, "18.00"), (100, "9.75"), (50, "30.38")]
)
def test_quality_maps_to_the_rate_factor(quality: int, crf: str) -> None:
    encoding = VideoEncoding(quality=quality, preset="slow")
    assert encoder_for(encoding).codec_options(encoding) == {
        "crf": crf,
        "preset": "slow",
        "a53cc": "0",
    }


def test_a_quality_beyond_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="got 101"):
        VideoEncoding(quality=101)


def test_a_container_has_its_usual_codec() -> None:
    assert encoder_for(VideoEncoding(container="mp4")).name == "libx264"
    assert encoder_for(VideoEncoding(container="webm")).name == "libvpx-vp9"


def test_a_container_that_cannot_hold_the_codec_is_refused() -> None:
    with pytest.raises(UnsupportedOutputError, match="h264 does not go into webm"):
        encoder_for(VideoEncoding(container="webm", codec="h264"))


@pytest.mark.parametrize(
    ("name", "container"),
    [("a.mp4", "mp4"), ("a.M4V", "mp4"), ("a.mov", "mov"), ("a.mkv", "matroska"), ("a.webm", "webm")],
)  # fmt: skip
def test_the_suffix_names_the_container(name: str, container: str) -> None:
    assert container_of(Path(name)) == container


@pytest.mark.parametrize("name", ["a.avi", "a", "a.mp4.part", "a.jpg"])
def test_a_suffix_that_is_not_written_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedOutputError, match="wanted one of"):
        container_of(Path(name))


@pytest.mark.parametrize(
    ("codec", "picture", "source", "size_wh", "wanted"),
    [
        pytest.param("h264", "yuv420p", "yuv420p", (64, 48), "yuv420p", id="as it is"),
        pytest.param("h264", "yuv422p10le", "yuv422p10le", (64, 48), "yuv422p10le", id="10 bit as it is"),
        pytest.param("h264", "yuv444p12le", "yuv444p12le", (64, 48), "yuv444p10le", id="12 bit to 10"),
        pytest.param("hevc", "yuv444p12le", "yuv444p12le", (64, 48), "yuv444p12le", id="12 bit as it is"),
        pytest.param("h264", "yuv420p", "yuv420p", (63, 48), "yuv444p", id="odd width gets full chroma"),
        pytest.param("h264", "yuv420p", "yuv420p", (64, 47), "yuv444p", id="odd height gets full chroma"),
        pytest.param("h264", "yuv422p", "yuv422p", (64, 47), "yuv422p", id="4:2:2 may be odd in height"),
        pytest.param("vp9", "yuv420p", "yuv420p", (63, 47), "yuv420p", id="VP9 takes odd sizes"),
        pytest.param("h264", "yuv440p", "yuv440p", (64, 48), "yuv444p", id="4:4:0 to 4:4:4"),
        pytest.param("h264", "rgb24", "yuv420p", (64, 48), "yuv420p", id="RGB made of 4:2:0"),
        pytest.param("h264", "rgb24", "yuv444p", (64, 48), "yuv444p", id="RGB made of 4:4:4"),
        pytest.param("h264", "rgb24", "rgb24", (64, 48), "yuv420p", id="RGB plays everywhere"),
        pytest.param("h264", "rgb48le", "rgb48le", (64, 48), "yuv420p10le", id="deep RGB stays deep"),
        pytest.param("h264", "gray", "gray", (64, 48), "yuv420p", id="grey"),
        pytest.param("h264", "rgba", "rgba", (64, 48), "yuv420p", id="no alpha in H.264"),
        pytest.param("vp9", "rgba", "rgba", (64, 48), "yuva420p", id="alpha in VP9"),
        pytest.param("vp9", "yuv420p10le", "yuv420p10le", (64, 48), "yuv420p", id="8 bit VP9"),
    ],
)  # fmt: skip
def test_pictures_keep_their_format_where_the_encoder_takes_it(
    codec: VideoCodec, picture: str, source: str, size_wh: tuple[int, int], wanted: str
) -> None:
    got = encoded_format(
        PIXEL_FORMATS[picture],
        source=PIXEL_FORMATS[source],
        size_wh=size_wh,
        encoder=ENCODERS[codec],
    )
    assert got.name == wanted

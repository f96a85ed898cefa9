"""Hardware encoders: taken when they encode, else software does it and says so."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from app.core.picture import PIXEL_FORMATS
from app.core.types import Notice
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.encoders import ENCODERS, EncoderSpec, VideoCodec
from app.media.hardware import HARDWARE_ENCODERS, encodes, working_encoder
from app.media.probe import probe
from tests.media.clips import noise_frame
from tests.media.conftest import MakeClip

MISSING = replace(ENCODERS["h264"], name="h264_of_nowhere")


def test_an_encoder_that_is_not_there_does_not_encode() -> None:
    assert not encodes(MISSING, "yuv420p", (256, 256))
    assert not encodes(ENCODERS["h264"], "rgb24", (256, 256))
    assert encodes(ENCODERS["h264"], "yuv420p", (256, 256))


@pytest.mark.parametrize(
    ("candidates", "pixel_format", "found"),
    [
        ((MISSING, ENCODERS["h264"]), "yuv420p", "libx264"),
        ((MISSING,), "yuv420p", None),
        ((ENCODERS["h264"],), "yuv420p12le", None),
        ((), "yuv420p", None),
    ],
)
def test_the_first_one_that_encodes_is_taken(
    candidates: tuple[EncoderSpec, ...], pixel_format: str, found: str | None
) -> None:
    encoder = working_encoder(candidates, pixel_format, (64, 48))
    assert (encoder.name if encoder else None) == found


def test_one_that_refuses_the_very_size_is_not_taken() -> None:
    """H.263 knows five sizes; a card's encoder, a smallest and a largest one."""
    choosy = replace(ENCODERS["h264"], name="h263")
    assert working_encoder([choosy], "yuv420p", (176, 144)) is choosy
    assert working_encoder([choosy], "yuv420p", (256, 256)) is None


@pytest.mark.parametrize("codec", HARDWARE_ENCODERS)
def test_every_one_has_all_presets_and_a_quality(codec: VideoCodec) -> None:
    for encoder in HARDWARE_ENCODERS[codec]:
        options = encoder.codec_options(VideoEncoding(preset="slow", quality=80))
        assert encoder.rate_option in options
        assert set(encoder.containers) <= set(ENCODERS[codec].containers)


@pytest.mark.parametrize("codec", HARDWARE_ENCODERS)
def test_every_one_gets_the_layout_that_it_takes(codec: VideoCodec) -> None:
    """As far as the library at hand has the encoder; whether there is a device is another matter."""
    for encoder in HARDWARE_ENCODERS[codec]:
        assert set(encoder.sent_as) <= set(PIXEL_FORMATS)
        try:
            taken = {each.name for each in av.codec.Codec(encoder.name, "w").video_formats or ()}
        except ValueError:
            continue
        sent = {encoder.sent_as.get(name, name) for name in encoder.formats}
        assert sent <= taken, encoder.name


@pytest.mark.parametrize("codec", HARDWARE_ENCODERS)
def test_trying_one_that_is_not_there_is_no_error(codec: VideoCodec) -> None:
    for encoder in HARDWARE_ENCODERS[codec]:
        for pixel_format in encoder.formats:
            assert encodes(encoder, pixel_format, (256, 256)) in (True, False)


def test_a_device_that_is_not_there_is_no_error() -> None:
    assert not encodes(replace(ENCODERS["h264"], device="vaapi"), "yuv420p", (256, 256))
    assert not encodes(replace(ENCODERS["h264"], device="nonsense"), "yuv420p", (256, 256))


@pytest.mark.parametrize(
    ("name", "sent", "shift"), [("yuv420p", "nv12", 0), ("yuv420p10le", "p010le", 6)]
)
@pytest.mark.parametrize("color_range", [0, 1, 2])
def test_another_layout_holds_the_same_samples(
    name: str, sent: str, shift: int, color_range: int
) -> None:
    context = av.CodecContext.create("rawvideo", "w")
    context.width, context.height, context.pix_fmt = 64, 48, sent
    context.time_base = Fraction(1, 25)
    frame = noise_frame((64, 48), name, 1)
    frame.color_range, frame.pts = color_range, 0
    (packet,) = context.encode(frame)
    dtype = np.uint16 if shift else np.uint8
    samples = np.frombuffer(bytes(packet), dtype) >> shift
    planes = [
        np.frombuffer(plane, dtype).reshape(plane.height, -1)[:, : plane.width]
        for plane in frame.planes
    ]
    np.testing.assert_array_equal(samples[: 64 * 48], planes[0].reshape(-1))
    np.testing.assert_array_equal(samples[64 * 48 :: 2], planes[1].reshape(-1))
    np.testing.assert_array_equal(samples[64 * 48 + 1 :: 2], planes[2].reshape(-1))


def write(source: Path, path: Path, encoding: VideoEncoding) -> tuple[Notice, ...]:
    with (
        VideoReader(source) as reader,
        VideoWriter(path, source=None, info=reader.info, encoding=encoding, metadata={}) as writer,
    ):
        for frame in reader.frames():
            writer.write(frame)
    return writer.notices


@pytest.mark.parametrize("codec", ["h264", "ffv1"])
def test_a_wish_for_hardware_never_fails_the_job(
    codec: VideoCodec, make_clip: MakeClip, tmp_path: Path
) -> None:
    source, path = make_clip("a.mp4", size_wh=(256, 256), frames=5), tmp_path / "out"
    encoding = VideoEncoding(codec=codec, container="matroska", uses_hardware=True)
    notices = write(source, path, encoding)
    assert probe(path).frames == 5
    has_hardware = (
        working_encoder(HARDWARE_ENCODERS.get(codec, ()), "yuv420p", (64, 48)) is not None
    )
    assert [notice.code for notice in notices] == (
        [] if has_hardware else ["media.software_encoder"]
    )

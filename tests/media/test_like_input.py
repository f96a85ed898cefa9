"""Encoding like the input: about as many bytes, and no more lost than that costs."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av import VideoFrame
from numpy.typing import NDArray

from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.encoders import Container, VideoCodec
from app.media.like_input import _nearest, quality_like_input
from app.media.probe import probe
from tests.media.conftest import MakeClip

WH = (320, 240)
QUIET = {"x265-params": "log-level=none"}


def pan(path: Path, encoder: str, options: dict[str, str], photo: NDArray[np.uint8]) -> None:
    """A camera that swings over a photo, with some grain."""
    rng = np.random.default_rng(1)
    with av.open(str(path), "w") as output:
        stream = output.add_stream(encoder, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = *WH, "yuv420p"
        for index in range(75):
            x, y = 80 + int(60 * np.sin(index / 12)), 30 + index
            view = photo[y : y + WH[1], x : x + WH[0]] + rng.normal(0, 3, (WH[1], WH[0], 1))
            pixels = np.clip(view, 0, 255).astype(np.uint8)
            frame = VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 25)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def video_bytes(path: Path) -> int:
    with av.open(str(path)) as file:
        return sum(packet.size for packet in file.demux(video=0))


def psnr_db(one: Path, other: Path) -> float:
    errors = []
    with VideoReader(one) as before, VideoReader(other) as after:
        for a, b in zip(before.frames(), after.frames(), strict=True):
            lumas: list[Any] = [each.picture.planes[0].astype(float) for each in (a, b)]
            errors.append(((lumas[0] - lumas[1]) ** 2).mean())
    return float(10 * np.log10(255**2 / np.mean(errors)))


@pytest.mark.parametrize(
    ("encoder", "options", "codec", "container", "least_db"),
    [
        pytest.param("libx264", {"crf": "16"}, "h264", "mp4", 41, id="h264, very good"),
        pytest.param("libx264", {"crf": "23"}, "h264", "matroska", 39, id="h264, usual"),
        pytest.param("libx264", {"crf": "36"}, "h264", "mp4", 32, id="h264, poor"),
        pytest.param("libx264", {"b": "300k"}, "h264", "mp4", 39, id="h264 of steady rate"),
        pytest.param("libx264", {"crf": "23", "g": "8"}, "h264", "mp4", 39, id="many key frames"),
        pytest.param("libx265", {"crf": "26", **QUIET}, "hevc", "mp4", 39, id="hevc"),
        pytest.param("libx265", {"crf": "33", **QUIET}, "hevc", "mp4", 33, id="hevc, poor"),
        pytest.param("libvpx-vp9", {"crf": "30", "b": "0", "cpu-used": "5"}, "vp9", "webm", 39, id="vp9"),
        pytest.param("libsvtav1", {"crf": "45", "preset": "9"}, "av1", "mp4", 40, id="av1"),
    ],
)  # fmt: skip
def test_bytes_and_picture_are_about_the_inputs(
    encoder: str,
    options: dict[str, str],
    codec: VideoCodec,
    container: Container,
    least_db: float,
    astronaut: NDArray[np.uint8],
    tmp_path: Path,
) -> None:
    source, path = tmp_path / f"a.{'webm' if container == 'webm' else 'mkv'}", tmp_path / "out"
    pan(source, encoder, options, astronaut)
    info = probe(source)
    asked = VideoEncoding(container=container, codec=codec)
    quality = quality_like_input(source, info, asked)
    encoding = VideoEncoding(container=container, codec=codec, quality=quality)
    with (
        VideoReader(source) as reader,
        VideoWriter(path, source=None, info=info, encoding=encoding, metadata={}) as writer,
    ):
        for frame in reader.frames():
            writer.write(frame)
    assert 0.7 < video_bytes(path) / video_bytes(source) < 1.4
    assert psnr_db(source, path) > least_db


@pytest.mark.parametrize("codec", ["prores", "ffv1"])
def test_an_encoder_without_a_quality_keeps_what_was_asked(
    codec: VideoCodec, make_clip: MakeClip
) -> None:
    path = make_clip("a.mov", frames=3, codec="prores_ks", pixel_format="yuv422p10le", options={})
    encoding = VideoEncoding(container="mov", codec=codec, quality=61)
    assert quality_like_input(path, probe(path), encoding) == 61


def test_one_frame_is_enough(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=1)
    assert 20 <= quality_like_input(path, probe(path), VideoEncoding(codec="h264")) <= 98


@pytest.mark.parametrize(
    ("best", "first", "wanted"), [(70, 80, 70), (30, 80, 30), (200, 80, 98), (-5, 20, 20)]
)
def test_the_search_ends_at_the_nearest_quality(best: int, first: int, wanted: int) -> None:
    assert abs(_nearest(lambda quality: 0.05 * (quality - best), first) - wanted) <= 1

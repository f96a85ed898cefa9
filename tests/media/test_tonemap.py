"""HDR video written as SDR: 8 bits, BT.709, and the light that people saw."""

from pathlib import Path

import numpy as np
import pytest

from app.core.color import BT709, ColorTags
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.probe import probe
from app.media.tonemap import in_sdr, info_in_sdr
from tests.media.conftest import MakeClip

PQ_TAGS = {"color_primaries": 9, "color_trc": 16, "colorspace": 9, "color_range": 1}


@pytest.fixture
def hdr(make_clip: MakeClip) -> Path:
    return make_clip(
        "hdr.mkv",
        frames=3,
        codec="ffv1",
        options={},
        pixel_format="yuv420p10le",
        context=PQ_TAGS,
    )


def test_the_result_is_8_bit_bt709_and_shows_the_same(hdr: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    with VideoReader(hdr) as reader:
        before = list(reader.frames())
        encoding = VideoEncoding(quality=100, preset="ultrafast")
        info = info_in_sdr(reader.info)
        with VideoWriter(path, source=None, info=info, encoding=encoding, metadata={}) as writer:
            for frame in in_sdr(before):
                writer.write(frame)
    after = probe(path)
    assert (after.pixel_format, after.frames) == ("yuv420p", 3)
    assert after.tags == ColorTags(
        matrix=BT709, is_full_range=False, primaries=BT709, transfer=BT709
    )
    with VideoReader(path) as reader:
        shown = next(reader.frames()).picture
    wanted = before[0].picture.thumbnail(32)[0].astype(int)
    assert np.abs(shown.thumbnail(32)[0].astype(int) - wanted).mean() < 6


def test_sdr_video_is_left_alone(make_clip: MakeClip) -> None:
    with VideoReader(make_clip("a.mp4", frames=3)) as reader:
        frames = list(reader.frames())
        assert [a is b for a, b in zip(in_sdr(frames), frames, strict=True)] == [True] * 3
        assert info_in_sdr(reader.info) is reader.info

"""Interlaced video: as many frames at the same times, without combs; progressive video goes through untouched."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av import VideoFrame
from av.filter import Graph
from numpy.typing import NDArray

from app.core.errors import SizeChangedError
from app.media.decode import VideoReader
from app.media.deinterlace import Deinterlacer, Shown
from app.media.encode import VideoEncoding, VideoWriter
from app.media.probe import probe
from tests.media.conftest import MakeClip


def combed(index: int, *, is_interlaced: bool = True) -> VideoFrame:
    """A white bar that moves 4 pixels a field: its edges are combs."""
    luma = np.full((64, 128), 30, np.uint8)
    for field in (0, 1):
        x = 10 + 8 * index + 4 * field
        luma[field::2, x : x + 20] = 220
    yuv = np.vstack([luma, np.full((32, 128), 128, np.uint8)])
    frame = VideoFrame.from_ndarray(yuv, format="yuv420p")
    frame.pts, frame.time_base = index * 512, Fraction(1, 12_800)
    return flagged(frame) if is_interlaced else frame


def flagged(frame: VideoFrame) -> VideoFrame:
    """The frame, saying of itself that it holds two fields."""
    graph = Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base
    )
    graph.link_nodes(source, graph.add("setfield", "tff"), graph.add("buffersink")).configure()
    graph.push(frame)
    out = graph.pull()
    assert isinstance(out, VideoFrame)
    return out


@pytest.fixture
def interlaced(tmp_path: Path) -> Path:
    path = tmp_path / "interlaced.mkv"
    with av.open(str(path), "w") as output:
        options = {"crf": "5", "x264-params": "tff=1", "flags": "+ildct+ilme"}
        stream = output.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 128, 64, "yuv420p"
        for index in range(10):
            output.mux(stream.encode(combed(index)))
        output.mux(stream.encode(None))
    return path


def comb(luma: NDArray[np.uint8]) -> float:
    """How much lines differ from the mean of their neighbors."""
    values = luma.astype(float)
    return float(np.abs(values[1:-1] - (values[:-2] + values[2:]) / 2).mean())


def test_frames_come_out_whole_with_their_times(interlaced: Path) -> None:
    with av.open(str(interlaced)) as container:
        stored = list(container.decode(video=0))
    assert probe(interlaced).is_interlaced
    with VideoReader(interlaced) as reader:
        frames = list(reader.frames())
    assert [notice.code for notice in reader.notices] == ["media.deinterlaced"]
    assert [frame.pts for frame in frames] == [frame.pts for frame in stored]
    for frame, was in zip(frames, stored, strict=True):
        assert comb(np.asarray(frame.picture.planes[0])) < comb(was.to_ndarray()[:64]) / 3


def test_the_result_is_progressive(interlaced: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    with (
        VideoReader(interlaced) as reader,
        VideoWriter(
            path, source=None, info=reader.info, encoding=VideoEncoding(), metadata={}
        ) as writer,
    ):
        for frame in reader.frames():
            writer.write(frame)
    assert not probe(path).is_interlaced
    assert probe(path).frames == 10


def test_progressive_frames_are_the_same_objects() -> None:
    shown = [Shown(index, combed(index, is_interlaced=False)) for index in range(3)]
    shown.insert(1, Shown(7, None))
    deinterlacer = Deinterlacer()
    assert [a.frame is b.frame for a, b in zip(deinterlacer.passed(shown), shown, strict=True)]
    assert not deinterlacer.has_worked


def test_gaps_stay_in_their_place() -> None:
    shown = [Shown(index, combed(index)) for index in range(4)]
    shown[2] = Shown(2, None)
    passed = list(Deinterlacer().passed(shown))
    assert [each.pts for each in passed] == [0, 1, 2, 3]
    assert [each.frame is None for each in passed] == [False, False, True, False]


def test_progressive_video_says_nothing(make_clip: MakeClip) -> None:
    with VideoReader(make_clip("a.mp4")) as reader:
        assert len(list(reader.frames())) == 25
    assert reader.notices == ()


def test_a_change_of_size_is_still_the_callers_to_refuse(interlaced: Path) -> None:
    other = VideoFrame(64, 64, "yuv420p")
    passed = list(Deinterlacer().passed([Shown(0, combed(0)), Shown(1, other)]))
    assert passed[-1].frame is other
    assert SizeChangedError.code == "media.size_changed"

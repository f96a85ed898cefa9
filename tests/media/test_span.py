"""Parts of videos: exact to the frame, with the sound, the subtitles and the chapters that belong to them."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from app.core.errors import UsageError
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding
from app.media.encoders import Container
from app.media.span import TimeSpan
from tests.media.clips import Sound, stored_packets
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video


def span(start: str, end: str | None = None) -> TimeSpan:
    return TimeSpan(start_s=Fraction(start), end_s=None if end is None else Fraction(end))


def cut(source: Path, path: Path, part: TimeSpan, container: Container = "mp4") -> None:
    copy_video(source, path, VideoEncoding(container=container, preset="ultrafast"), span=part)


@pytest.mark.parametrize(
    ("start", "end", "first", "count"),
    [
        pytest.param("0", None, 0, 50, id="all of it"),
        pytest.param("0.4", None, 10, 40, id="on a frame"),
        pytest.param("0.41", None, 11, 39, id="right behind a frame"),
        pytest.param("0", "0.4", 0, 10, id="an end is not in it"),
        pytest.param("0.4", "0.6", 10, 5, id="both"),
        pytest.param("1.96", None, 49, 1, id="the last frame"),
        pytest.param("0.4", "99", 10, 40, id="an end behind the end"),
    ],
)
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_a_part_holds_exactly_its_frames(
    name: str, start: str, end: str | None, first: int, count: int, make_clip: MakeClip
) -> None:
    path = make_clip(name, frames=50, options={"crf": "10", "bf": "3", "g": "12"})
    with VideoReader(path) as reader:
        whole = list(reader.frames())
    with VideoReader(path, span=span(start, end)) as reader:
        part = list(reader.frames())
    assert len(part) == count
    shift = whole[first].pts if first else 0
    wanted = whole[first : first + count]
    assert [frame.pts for frame in part] == [frame.pts - shift for frame in wanted]
    for was, now in zip(wanted, part, strict=True):
        assert (was.picture.planes[0] == now.picture.planes[0]).all()


def test_a_part_far_into_a_file_is_found_by_its_index(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=400, options={"crf": "30", "bf": "3", "g": "25"})
    with VideoReader(path) as reader:
        wanted = list(reader.frames())[350:360]
    with VideoReader(path, span=span("14", "14.4")) as reader:
        part = list(reader.frames())
    assert not reader.notices
    assert [frame.index for frame in part] == list(range(10))
    for was, now in zip(wanted, part, strict=True):
        assert (was.picture.planes[0] == now.picture.planes[0]).all()


@pytest.mark.parametrize(("start", "end"), [("2", None), ("9", None), ("0.41", "0.43")])
def test_a_part_without_a_frame_is_refused(
    start: str, end: str | None, make_clip: MakeClip
) -> None:
    path = make_clip("a.mp4", frames=50)
    with pytest.raises(UsageError, match="trim"):
        VideoReader(path, span=span(start, end))


@pytest.mark.parametrize(("start", "end"), [("-1", None), ("1", "1"), ("1", "0.5")])
def test_a_part_that_ends_before_it_begins_is_refused(start: str, end: str | None) -> None:
    with pytest.raises(UsageError, match="trim"):
        span(start, end)


@pytest.mark.parametrize(("container", "name"), [("mp4", "b.mp4"), ("mov", "b.mov")])
def test_sound_is_cut_with_the_picture(
    container: Container, name: str, make_clip: MakeClip, tmp_path: Path
) -> None:
    source = make_clip("a.mp4", frames=50, sounds=(Sound(seconds=2),))
    path = tmp_path / name
    cut(source, path, span("0.6", "1.4"), container)
    before = {data: at for at, data in stored_packets(source)[0]}
    after = stored_packets(path)[0]
    # Each packet is one of the source's, as far from the picture as it was.
    assert all(abs(before[data] - at - Fraction("0.6")) <= Fraction(1, 1000) for at, data in after)
    assert -0.13 < after[0][0] <= 0
    assert abs(after[-1][0] - Fraction("0.8")) < 0.03
    with av.open(str(path)) as file:
        assert file.duration is not None
        assert abs(file.duration / av.time_base - 0.8) < 0.0001
        assert file.streams.video[0].start_time == 0


def test_heard_sound_begins_with_the_part(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=50, sounds=(Sound(seconds=2),))
    path = tmp_path / "b.mp4"
    cut(source, path, span("0.6"))
    with av.open(str(path)) as file:
        frames = list(file.decode(audio=0))
    assert abs(float(frames[0].pts * frames[0].time_base)) < 0.03
    assert abs(sum(frame.samples for frame in frames) / 48_000 - 1.4) < 0.05


def test_chapters_are_cut_with_the_picture(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=50)
    chaptered, path = tmp_path / "chapters.mkv", tmp_path / "b.mkv"
    unit = Fraction(1, 1000)
    with av.open(str(source)) as file, av.open(str(chaptered), "w") as output:
        stream = file.streams.video[0]
        target = output.add_stream_from_template(stream)
        output.set_chapters(
            [
                {"id": n, "start": a, "end": b, "time_base": unit, "metadata": {"title": str(n)}}
                for n, (a, b) in enumerate([(0, 500), (500, 1200), (1200, 2000)])
            ]
        )
        for packet in file.demux(stream):
            if packet.dts is not None:
                packet.stream = target
                output.mux(packet)
    cut(chaptered, path, span("0.6", "1"), "matroska")
    with av.open(str(path)) as file:
        kept = [
            (c["metadata"]["title"], c["start"] * c["time_base"], c["end"] * c["time_base"])
            for c in file.chapters()
        ]
    assert kept == [("1", 0, Fraction("0.4"))]


@pytest.mark.parametrize(("container", "lead_s"), [("webm", 0.007), ("mp4", 0)])
def test_converted_sound_is_cut_to_the_sample(
    container: Container, lead_s: float, make_clip: MakeClip, tmp_path: Path
) -> None:
    source = make_clip(
        "a.mkv", frames=50, sounds=(Sound(codec="mp2" if container == "mp4" else "aac", seconds=2),)
    )
    path = tmp_path / "out"
    cut(source, path, span("0.6", "1.4"), container)
    with av.open(str(path)) as file:
        stream = file.streams.audio[0]
        frames = list(file.decode(stream))
    first_s = float(frames[0].pts * frames[0].time_base)
    assert -lead_s - 0.001 <= first_s <= 0.001
    length_s = sum(frame.samples for frame in frames) / frames[0].sample_rate
    assert abs(length_s - 0.8) < 0.05

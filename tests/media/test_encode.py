import hashlib
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import av
import numpy as np
import pytest

from app.core.color import ColorTags
from app.core.errors import (
    OutputError,
    SizeChangedError,
    StorageFullError,
    UnwritableOutputError,
)
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import Frame, Notice
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.probe import probe
from tests.media.clips import Sound, stored_frames, stored_packets
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video

FAST = VideoEncoding(preset="ultrafast")
LOSSLESS = VideoEncoding(container="matroska", codec="ffv1")
LABEL = '{"Label":"1","ContentProducer":"facedock","ProduceID":"0123"}'


def copy(
    source: Path, target: Path, encoding: VideoEncoding = FAST, **metadata: str
) -> tuple[Notice, ...]:
    """Read and write without touching a frame; what both had to say."""
    copied = copy_video(source, target, encoding, metadata=metadata)
    return copied.read + copied.written


def write_pictures(
    target: Path, like: Path, pictures: Sequence[Picture], encoding: VideoEncoding = FAST
) -> None:
    """Write pictures in place of a clip's own."""
    info = probe(like)
    with VideoWriter(target, source=None, info=info, encoding=encoding, metadata={}) as writer:
        for index, picture in enumerate(pictures):
            writer.write(
                Frame(index=index, pts=index * 512, time_base=Fraction(1, 12_800), picture=picture)
            )


def times(path: Path) -> list[Fraction]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        return [frame.pts * stream.time_base for frame in container.decode(stream)]


def boxes(
    content: bytes, start: int = 0, end: int | None = None
) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and end of the payloads of the boxes that lie one after the other."""
    at, end = start, len(content) if end is None else end
    while at + 8 <= end:
        size, name = struct.unpack(">I4s", content[at : at + 8])
        yield name, at + 8, at + size
        at += size


def payload(content: bytes, *path: bytes) -> bytes:
    start, end = 0, len(content)
    for wanted in path:
        start, end = next((a, b) for name, a, b in boxes(content, start, end) if name == wanted)
        if wanted == b"meta":
            start += 4
    return content[start:end]


@pytest.mark.parametrize(
    ("pixel_format", "size_wh"),
    [
        pytest.param("yuv420p", (64, 48), id="8 bit"),
        pytest.param("yuv420p", (63, 47), id="odd size"),
        pytest.param("yuv422p10le", (64, 48), id="4:2:2 10 bit"),
        pytest.param("yuv444p12le", (63, 47), id="4:4:4 12 bit of odd size"),
        pytest.param("yuva420p", (64, 48), id="alpha"),
    ],
)
def test_untouched_pixels_arrive_bit_for_bit(
    make_clip: MakeClip, tmp_path: Path, pixel_format: str, size_wh: tuple[int, int]
) -> None:
    source = make_clip(
        "a.mkv", frames=5, codec="ffv1", options={}, pixel_format=pixel_format, size_wh=size_wh
    )
    target = tmp_path / "out.part"
    assert copy(source, target, LOSSLESS) == ()
    for before, after in zip(stored_frames(source), stored_frames(target), strict=True):
        assert before.format.name == after.format.name
        for one, other in zip(before.planes, after.planes, strict=True):
            rows, copied = (
                np.frombuffer(each, np.uint8).reshape(each.height, -1) for each in (one, other)
            )
            used = one.width * (2 if before.format.components[0].bits > 8 else 1)
            np.testing.assert_array_equal(rows[:, :used], copied[:, :used])


@pytest.mark.parametrize(
    "pixel_format", ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv422p10le", "yuv444p10le"]
)
def test_the_encoder_gets_the_pictures_own_format(
    make_clip: MakeClip, tmp_path: Path, pixel_format: str
) -> None:
    source = make_clip("a.mp4", frames=3, pixel_format=pixel_format)
    copy(source, tmp_path / "out.mp4")
    assert probe(tmp_path / "out.mp4").pixel_format == pixel_format


@pytest.mark.parametrize("container", ["mp4", "mov"])
def test_uneven_times_arrive_exactly(make_clip: MakeClip, tmp_path: Path, container: Any) -> None:
    steps = [0, 40, 80, 141, 142, 703, 743, 2343]
    source = make_clip("a.mp4", pts=steps, time_base=Fraction(1, 1000), options={"bf": "3"})
    target = tmp_path / "out"
    copy(source, target, VideoEncoding(container=container, preset="veryfast"))
    assert times(target) == times(source) == [Fraction(step, 1000) for step in steps]
    assert probe(target).time_base == probe(source).time_base


@pytest.mark.parametrize(
    "rate", [Fraction(24_000, 1001), Fraction(60_000, 1001), Fraction(1), Fraction(120)]
)
def test_rate_and_length_stay_rational(make_clip: MakeClip, tmp_path: Path, rate: Fraction) -> None:
    base = Fraction(1, rate.numerator * 100)
    source = make_clip("a.mp4", frames=30, rate=rate, time_base=base)
    copy(source, tmp_path / "out.mp4")
    before, after = probe(source), probe(tmp_path / "out.mp4")
    assert (after.rate, after.frames) == (rate, 30)
    assert after.video_stream and before.video_stream
    assert after.video_stream.duration_pts == before.video_stream.duration_pts


def test_matroska_is_exact_to_its_millisecond(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=20, sounds=(Sound(),))
    copy(source, tmp_path / "out", VideoEncoding(container="matroska", preset="ultrafast"))
    for before, after in zip(times(source), times(tmp_path / "out"), strict=True):
        assert abs(before - after) <= Fraction(1, 1000)


def test_sound_is_copied_bit_for_bit_with_its_times(make_clip: MakeClip, tmp_path: Path) -> None:
    sounds = (Sound(language="eng"), Sound(layout="mono", language="deu", rate=44_100))
    source = make_clip("a.mp4", frames=25, sounds=sounds)
    assert copy(source, tmp_path / "out.mp4") == ()
    before, after = stored_packets(source), stored_packets(tmp_path / "out.mp4")
    assert len(after) == 2
    assert after == before
    assert [s.language for s in probe(tmp_path / "out.mp4").streams if s.type == "audio"] == [
        "eng",
        "deu",
    ]


def test_sound_longer_than_the_video_is_kept_whole(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=10, sounds=(Sound(seconds=2.0),))
    copy(source, tmp_path / "out.mp4")
    after = probe(tmp_path / "out.mp4")
    assert stored_packets(source) == stored_packets(tmp_path / "out.mp4")
    assert after.frames == 10
    assert after.duration_s == pytest.approx(2.0, abs=0.03)


def test_sound_that_starts_late_still_does(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=25, sounds=(Sound(start_s=0.5, seconds=0.4),))
    copy(source, tmp_path / "out.mp4")
    before, after = stored_packets(source)[0], stored_packets(tmp_path / "out.mp4")[0]
    assert [data for _, data in before] == [data for _, data in after]
    assert abs(before[0][0] - after[0][0]) <= Fraction(1, 1000)


@pytest.mark.parametrize(
    ("codec", "name", "container", "wanted"),
    [
        pytest.param("pcm_s16le", "a.mov", "mp4", "aac", id="uncompressed into mp4"),
        pytest.param("pcm_s16le", "a.avi", "mp4", "aac", id="avi without a channel layout"),
        pytest.param("mp2", "a.mkv", "mp4", "aac", id="broadcast sound into mp4"),
        pytest.param("aac", "a.mp4", "webm", "opus", id="aac into webm"),
    ],
)
def test_sound_that_the_container_refuses_is_converted(
    make_clip: MakeClip, tmp_path: Path, codec: str, name: str, container: Any, wanted: str
) -> None:
    source = make_clip(
        name,
        frames=25,
        time_base=Fraction(1, 25),
        codec="mjpeg",
        pixel_format="yuvj420p",
        options={},
        sounds=(Sound(codec=codec),),
    )
    notices = copy(source, tmp_path / "out", VideoEncoding(container=container, preset="ultrafast"))
    assert [notice.code for notice in notices] == ["media.audio_converted"]
    track = probe(tmp_path / "out").streams[1]
    assert track.codec == wanted
    packets = stored_packets(tmp_path / "out")[0]
    assert abs(packets[0][0]) < 0.1
    assert float(packets[-1][0]) == pytest.approx(1.0, abs=0.1)


def test_damaged_sound_never_fails_the_video(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=25, sounds=(Sound(codec="mp2"),))
    content = source.read_bytes()
    for _, packet in stored_packets(source)[0][3:6]:
        content = content.replace(packet, b"\x55" * len(packet))
    source.write_bytes(content)
    notices = copy(source, tmp_path / "out.mp4")
    assert [notice.code for notice in notices] == [
        "media.audio_converted",
        "media.stream_incomplete",
    ]
    assert probe(tmp_path / "out.mp4").frames == 25


def test_a_track_that_is_converted_says_so(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=5)
    with_subtitles = tmp_path / "subtitles.mkv"
    _add_subtitles(source, with_subtitles)
    notices = copy(with_subtitles, tmp_path / "out.mp4")
    assert [notice.code for notice in notices] == ["media.subtitles_converted"]
    assert copy(with_subtitles, tmp_path / "out.mkv", VideoEncoding(container="matroska")) == ()
    assert len(stored_packets(tmp_path / "out.mkv", "subtitle")[0]) == 1


def _add_subtitles(source: Path, target: Path) -> None:
    with av.open(str(source)) as before, av.open(str(target), "w") as after:
        video = after.add_stream_from_template(before.streams.video[0])
        text = after.add_mux_stream("subrip", time_base=Fraction(1, 1000))
        for packet in before.demux(video=0):
            if packet.size:
                packet.stream = video
                after.mux(packet)
        line = av.Packet(b"Hello")
        line.stream, line.time_base = text, Fraction(1, 1000)
        line.pts = line.dts = 0
        line.duration = 100
        after.mux(line)


@pytest.mark.parametrize("container", ["mp4", "mov", "matroska", "webm"])
def test_tags_can_be_read_back(make_clip: MakeClip, tmp_path: Path, container: Any) -> None:
    source = make_clip("a.mp4", frames=3)
    copy(
        source, tmp_path / "out", VideoEncoding(container=container, preset="ultrafast"), AIGC=LABEL
    )
    with av.open(str(tmp_path / "out")) as written:
        assert written.metadata["AIGC"] == LABEL


def test_the_tag_of_an_mp4_lies_where_the_standard_wants_it(
    make_clip: MakeClip, tmp_path: Path
) -> None:
    copy(make_clip("a.mp4", frames=3), tmp_path / "out.mp4", AIGC=LABEL)
    content = (tmp_path / "out.mp4").read_bytes()
    meta = (b"moov", b"udta", b"meta")
    assert b"mdtaAIGC" in payload(content, *meta, b"keys")
    assert LABEL.encode() in payload(content, *meta, b"ilst")
    assert content.count(LABEL.encode()) == 1


def test_an_mp4_starts_with_its_index(make_clip: MakeClip, tmp_path: Path) -> None:
    copy(make_clip("a.mp4", frames=3), tmp_path / "out.mp4")
    names = [name for name, _, _ in boxes((tmp_path / "out.mp4").read_bytes())]
    assert names.index(b"moov") < names.index(b"mdat")


@pytest.mark.parametrize("container", ["mp4", "mov"])
def test_hevc_bears_the_name_that_every_player_knows(
    make_clip: MakeClip, tmp_path: Path, container: Any
) -> None:
    encoding = VideoEncoding(container=container, codec="hevc", preset="ultrafast")
    copy(make_clip("a.mp4", frames=3), tmp_path / "out", encoding)
    track = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd")
    entries = payload((tmp_path / "out").read_bytes(), *track)
    assert [name for name, _, _ in boxes(entries, 8)] == [b"hvc1"]


def test_titles_go_along_places_do_not(make_clip: MakeClip, tmp_path: Path) -> None:
    tags = {
        "title": "Sea",
        "location": "+52.5+013.4/",
        "com.apple.quicktime.model": "Phone",
        "AIGC": "old",
    }
    source = make_clip(
        "a.mp4", frames=3, metadata=tags, container_options={"movflags": "use_metadata_tags"}
    )
    copy(source, tmp_path / "out.mp4", AIGC=LABEL)
    with av.open(str(tmp_path / "out.mp4")) as written:
        assert written.metadata["title"] == "Sea"
        assert written.metadata["AIGC"] == LABEL
        assert not {"location", "com.apple.quicktime.model"} & set(written.metadata)


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(
            {"colorspace": 1, "color_primaries": 1, "color_trc": 1, "color_range": 1}, id="BT.709"
        ),
        pytest.param(
            {"colorspace": 6, "color_primaries": 6, "color_trc": 6, "color_range": 2},
            id="BT.601 full",
        ),
        pytest.param(
            {"colorspace": 9, "color_primaries": 9, "color_trc": 16, "color_range": 1}, id="PQ"
        ),
        pytest.param({}, id="nothing said"),
    ],
)
def test_color_tags_arrive(make_clip: MakeClip, tmp_path: Path, tags: dict[str, int]) -> None:
    source = make_clip("a.mp4", frames=3, context=tags)
    copy(source, tmp_path / "out.mp4")
    assert probe(tmp_path / "out.mp4").tags == probe(source).tags


def test_the_shape_of_pixels_arrives(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=3, context={"sample_aspect_ratio": Fraction(4, 3)})
    copy(source, tmp_path / "out.mp4")
    assert probe(tmp_path / "out.mp4").pixel_aspect == Fraction(4, 3)


def test_turned_video_is_written_upright(make_clip: MakeClip, tmp_path: Path) -> None:
    copy(make_clip("a.mp4", frames=3, rotation_deg=90), tmp_path / "out.mp4")
    after = probe(tmp_path / "out.mp4")
    assert (after.size_wh, after.rotation_deg) == ((48, 64), 0)


def test_an_odd_size_stays(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=3, size_wh=(63, 47), codec="ffv1", options={})
    copy(source, tmp_path / "out.mp4")
    after = probe(tmp_path / "out.mp4")
    assert (after.size_wh, after.pixel_format) == ((63, 47), "yuv444p")


@pytest.mark.parametrize("height_px", [96, 720])
@pytest.mark.parametrize("matrix", [2, 1, 6])
def test_rgb_pictures_get_a_matrix_and_say_which(
    make_clip: MakeClip, tmp_path: Path, matrix: int, height_px: int
) -> None:
    like = make_clip("a.mp4", frames=2, context={"colorspace": matrix})
    red = np.zeros((height_px, 128, 3), np.uint8)
    red[:] = (200, 40, 30)
    write_pictures(
        tmp_path / "out.mp4", like, [Picture.from_rgb(red)] * 2, VideoEncoding(quality=100)
    )
    with VideoReader(tmp_path / "out.mp4") as reader:
        picture = next(iter(list(reader.frames()))).picture
    assert picture.tags.matrix == {2: 1 if height_px >= 720 else 6}.get(matrix, matrix)
    assert np.abs(picture.read(picture.box).astype(int) - red).max() <= 3


def test_grey_pictures_keep_their_luma(make_clip: MakeClip, tmp_path: Path) -> None:
    grey = np.tile(np.arange(0, 256, 2, dtype=np.uint8), (48, 1))
    picture = Picture((grey,), PIXEL_FORMATS["gray"])
    write_pictures(tmp_path / "out.mkv", make_clip("a.mp4", frames=1), [picture], LOSSLESS)
    with VideoReader(tmp_path / "out.mkv") as reader:
        frame = next(iter(list(reader.frames())))
    np.testing.assert_array_equal(frame.picture.planes[0], grey)
    assert np.unique(frame.picture.planes[1]).tolist() == [128]
    assert frame.picture.tags.is_full_range


def test_transparency_that_cannot_be_kept_is_told(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=2, codec="ffv1", options={}, pixel_format="yuva420p")
    assert [notice.code for notice in copy(source, tmp_path / "out.mp4")] == ["media.alpha_dropped"]


def test_depth_that_cannot_be_kept_is_told(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mkv", frames=2, codec="ffv1", options={}, pixel_format="yuv420p12le")
    assert [notice.code for notice in copy(source, tmp_path / "out.mp4")] == ["media.depth_reduced"]
    assert probe(tmp_path / "out.mp4").pixel_format == "yuv420p10le"


def test_quality_decides_the_size_of_the_file(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=20, size_wh=(128, 96))
    sizes = []
    for quality in (20, 50, 80, 100):
        target = tmp_path / f"{quality}.mp4"
        copy(source, target, VideoEncoding(quality=quality))
        sizes.append(target.stat().st_size)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] / 4


def test_frames_may_be_written_from_another_thread(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=30, sounds=(Sound(),))
    with VideoReader(source) as reader, _writer(tmp_path / "out.mp4", source) as writer:
        thread = Thread(target=lambda: [writer.write(frame) for frame in reader.frames()])
        thread.start()
        thread.join()
    assert probe(tmp_path / "out.mp4").frames == 30


def test_the_same_input_gives_the_same_file(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=20, sounds=(Sound(),))
    for name in ("one", "two"):
        copy(source, tmp_path / name)
    one, two = (
        hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("one", "two")
    )
    assert one == two


def _writer(target: Path, source: Path) -> VideoWriter:
    return VideoWriter(target, source=source, info=probe(source), encoding=FAST, metadata={})


def test_an_exception_leaves_no_file(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=5, sounds=(Sound(),))
    with (
        pytest.raises(KeyError),
        VideoReader(source) as reader,
        _writer(tmp_path / "out", source) as writer,
    ):
        writer.write(next(reader.frames()))
        raise KeyError
    assert not (tmp_path / "out").exists()


def test_an_exception_before_the_first_frame_leaves_no_file(
    make_clip: MakeClip, tmp_path: Path
) -> None:
    with pytest.raises(KeyError), _writer(tmp_path / "out", make_clip("a.mp4", frames=5)):
        raise KeyError
    assert not (tmp_path / "out").exists()


def test_a_video_without_frames_is_no_video(make_clip: MakeClip, tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="not one frame"),
        _writer(tmp_path / "out", make_clip("a.mp4", frames=5)),
    ):
        pass
    assert not (tmp_path / "out").exists()


def test_a_frame_of_another_size_is_refused(make_clip: MakeClip, tmp_path: Path) -> None:
    small, large = (Picture.from_rgb(np.zeros((side, side, 3), np.uint8)) for side in (32, 64))
    with pytest.raises(SizeChangedError, match="frame 1"):
        write_pictures(tmp_path / "out", make_clip("a.mp4", frames=1), [small, large])
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_is_told_before_any_work(make_clip: MakeClip, tmp_path: Path) -> None:
    writer = _writer(tmp_path / "nowhere" / "out.mp4", make_clip("a.mp4", frames=2))
    with pytest.raises(UnwritableOutputError), writer:
        pytest.fail("nobody gets here")


def test_a_full_disk_is_told(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=120, size_wh=(128, 96))
    (tmp_path / "out").symlink_to("/dev/full")
    encoding = VideoEncoding(container="matroska", preset="ultrafast", quality=100)
    with pytest.raises(StorageFullError):
        copy(source, tmp_path / "out", encoding)


def test_tags_of_an_untagged_picture_stay_open(make_clip: MakeClip, tmp_path: Path) -> None:
    source = make_clip("a.mp4", frames=2)
    copy(source, tmp_path / "out.mp4")
    assert probe(tmp_path / "out.mp4").tags == ColorTags()


def test_chapters_go_along(make_clip: MakeClip, tmp_path: Path) -> None:
    source, with_chapters = make_clip("a.mkv", frames=25), tmp_path / "chapters.mkv"
    marks = [("One", 0, 500), ("Two", 500, 1000)]
    with av.open(str(source)) as before, av.open(str(with_chapters), "w") as after:
        after.set_chapters(
            [
                {
                    "id": index,
                    "start": start,
                    "end": end,
                    "time_base": Fraction(1, 1000),
                    "metadata": {"title": title},
                }
                for index, (title, start, end) in enumerate(marks, start=1)
            ]
        )
        video = after.add_stream_from_template(before.streams.video[0])
        for packet in before.demux(video=0):
            if packet.size:
                packet.stream = video
                after.mux(packet)
    copy(with_chapters, tmp_path / "out.mp4")
    with av.open(str(tmp_path / "out.mp4")) as written:
        found = [
            (each["metadata"]["title"], float(each["start"] * each["time_base"]))
            for each in written.chapters()
        ]
    assert found == [("One", 0.0), ("Two", 0.5)]

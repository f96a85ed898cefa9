from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from app.core.errors import (
    DamagedMediaError,
    MediaTooLargeError,
    NoVideoError,
    SizeChangedError,
    TruncatedMediaError,
)
from app.core.types import Frame
from app.media.decode import VideoReader
from app.media.limits import MediaLimits
from app.media.probe import probe
from tests.media.clips import noise_frame, stored_frames
from tests.media.conftest import MakeClip

INTRA = {"preset": "ultrafast", "crf": "18", "g": "1"}


def read(path: Path) -> list[Frame]:
    with VideoReader(path) as reader:
        return list(reader.frames())


def damage(path: Path, *frames: int) -> None:
    """Overwrite the coded data of some frames; the lengths in front of it stay."""
    with av.open(str(path)) as container:
        entries = [(each.pos, each.size) for each in container.streams.video[0].index_entries]
    content = bytearray(path.read_bytes())
    for index in frames:
        start, size = entries[index]
        content[start + 4 : start + size] = b"\xff" * (size - 4)
    path.write_bytes(content)


def keep_bytes(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: round(len(content) * share)])


@pytest.mark.parametrize(
    ("pixel_format", "size_wh", "codec", "name"),
    [
        pytest.param("yuv420p", (64, 48), "libx264", "a.mp4", id="8 bit"),
        pytest.param("yuv420p10le", (64, 48), "libx264", "a.mp4", id="10 bit"),
        pytest.param("yuv422p10le", (64, 48), "prores_ks", "a.mov", id="4:2:2 10 bit"),
        pytest.param("yuv444p", (63, 47), "libx264", "a.mp4", id="4:4:4 of odd size"),
        pytest.param("yuv420p", (63, 47), "ffv1", "a.mkv", id="4:2:0 of odd size"),
        pytest.param("yuv420p12le", (50, 30), "libx265", "a.mp4", id="12 bit"),
        pytest.param("yuvj420p", (70, 50), "mjpeg", "a.mkv", id="full range"),
        pytest.param("gray", (63, 47), "ffv1", "a.mkv", id="grey"),
    ],
)
def test_planes_are_those_of_the_plain_decoder(
    make_clip: MakeClip, pixel_format: str, size_wh: tuple[int, int], codec: str, name: str
) -> None:
    options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
    path = make_clip(
        name, frames=6, pixel_format=pixel_format, size_wh=size_wh, codec=codec, options=options
    )
    stored, frames = stored_frames(path), read(path)
    assert len(frames) == len(stored) == 6
    for frame, plain in zip(frames, stored, strict=True):
        assert frame.picture.size_wh == size_wh
        for got, plane in zip(frame.picture.planes, plain.planes, strict=True):
            rows = np.frombuffer(plane, got.dtype).reshape(plane.height, -1)
            np.testing.assert_array_equal(got, rows[:, : plane.width])


def test_uneven_times_come_out_exactly(make_clip: MakeClip) -> None:
    times = [0, 512, 1024, 1801, 1802, 9000, 9512, 30_000]
    frames = read(make_clip("uneven.mp4", pts=times, options={"bf": "3", "preset": "veryfast"}))
    assert [frame.pts for frame in frames] == times
    assert {frame.time_base for frame in frames} == {Fraction(1, 12_800)}
    assert [frame.index for frame in frames] == list(range(8))


def test_a_late_start_is_kept(make_clip: MakeClip) -> None:
    frames = read(make_clip("late.mkv", pts=[12_800, 13_312], time_base=Fraction(1, 12_800)))
    assert [frame.pts * frame.time_base for frame in frames] == [1, Fraction("1.04")]


def test_a_broadcast_clock_is_set_to_zero(make_clip: MakeClip) -> None:
    times = [90_000 * 500 + step * 3600 for step in range(5)]
    path = make_clip("tv.ts", pts=times, time_base=Fraction(1, 90_000))
    with VideoReader(path) as reader:
        assert reader.info.clock_offset_s > 490
        assert [frame.pts for frame in reader.frames()] == [step * 3600 for step in range(5)]


def test_missing_times_are_derived(make_clip: MakeClip) -> None:
    path = make_clip(
        "b_frames.avi",
        frames=9,
        codec="libx264",
        time_base=Fraction(1, 25),
        options={"bf": "2", "preset": "veryfast"},
    )
    assert [frame.pts for frame in read(path)] == sorted({frame.pts for frame in read(path)})


@pytest.mark.parametrize(
    ("matrix", "seen"),
    [
        pytest.param((0, 1, -1, 0), lambda plane: np.rot90(plane, -1), id="quarter turn right"),
        pytest.param((-1, 0, 0, -1), lambda plane: np.rot90(plane, 2), id="half turn"),
        pytest.param((0, -1, 1, 0), lambda plane: np.rot90(plane), id="quarter turn left"),
        pytest.param((-1, 0, 0, 1), np.fliplr, id="left and right exchanged"),
        pytest.param((1, 0, 0, -1), np.flipud, id="top and bottom exchanged"),
        pytest.param((0, 1, 1, 0), np.transpose, id="rows and columns exchanged"),
        pytest.param((0, -1, -1, 0), lambda plane: np.rot90(plane, 2).T, id="exchanged and turned"),
    ],
)
@pytest.mark.parametrize("name", ["turned.mp4", "turned.mov"])
def test_a_video_that_lies_in_any_way_comes_out_upright(
    make_clip: MakeClip, name: str, matrix: tuple[int, ...], seen: Callable[[Any], Any]
) -> None:
    a, b, c, d = (number << 16 for number in matrix)
    path = make_clip(name, frames=2, size_wh=(64, 48), matrix=[a, b, 0, c, d, 0, 0, 0, 1 << 30])
    picture = read(path)[1].picture
    for got, plane in zip(picture.planes, stored_frames(path)[1].planes, strict=True):
        stored = np.frombuffer(plane, np.uint8).reshape(plane.height, -1)[:, : plane.width]
        np.testing.assert_array_equal(got, seen(stored))
    assert probe(path).size_wh == picture.size_wh


def test_pictures_outlive_the_reader(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=20)
    frames = read(path)
    for frame, plain in zip(frames, stored_frames(path), strict=True):
        rows = np.frombuffer(plain.planes[0], np.uint8).reshape(48, -1)
        np.testing.assert_array_equal(frame.picture.planes[0], rows[:, :64])


def test_a_video_can_be_read_twice(make_clip: MakeClip) -> None:
    with VideoReader(make_clip("clip.mp4", frames=5)) as reader:
        assert len(list(reader.frames())) == len(list(reader.frames())) == 5


def test_a_generator_left_early_closes_the_file(make_clip: MakeClip) -> None:
    with VideoReader(make_clip("clip.mp4", frames=5)) as reader:
        frames = reader.frames()
        next(frames)
        frames.close()


def test_frames_may_be_read_in_another_thread(make_clip: MakeClip) -> None:
    got: list[Frame] = []
    with VideoReader(make_clip("clip.mp4", frames=30)) as reader:
        thread = Thread(target=lambda: got.extend(reader.frames()))
        thread.start()
        thread.join()
    assert len(got) == 30


def test_a_frame_that_cannot_be_decoded_is_the_last_good_one_again(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=130, options=INTRA)
    whole = read(path)
    damage(path, 50)
    with VideoReader(path) as reader:
        frames = list(reader.frames())
    assert [frame.pts for frame in frames] == [frame.pts for frame in whole]
    assert frames[50].picture is frames[49].picture
    np.testing.assert_array_equal(frames[51].picture.planes[0], whole[51].picture.planes[0])
    assert [notice.code for notice in reader.notices] == ["media.damaged_frames"]
    assert "1 of 130" in reader.notices[0].message


def test_a_first_frame_that_cannot_be_decoded_is_the_first_good_one(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=130, options=INTRA)
    damage(path, 0)
    frames = read(path)
    assert len(frames) == 130
    assert frames[0].picture is frames[1].picture


def test_a_last_frame_that_cannot_be_decoded_keeps_the_length(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=130, options=INTRA)
    damage(path, 129)
    frames = read(path)
    assert len(frames) == 130
    assert frames[129].picture is frames[128].picture


def test_more_than_one_percent_of_bad_frames_is_refused(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=130, options=INTRA)
    damage(path, 30, 60)
    with pytest.raises(DamagedMediaError, match="more than 1%"):
        read(path)


def test_a_sound_video_has_no_notices(make_clip: MakeClip) -> None:
    with VideoReader(make_clip("clip.mp4", frames=10)) as reader:
        list(reader.frames())
    assert reader.notices == ()


def test_a_file_that_lacks_its_end_is_refused_at_once(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=60, container_options={"movflags": "faststart"})
    keep_bytes(path, 0.7)
    with pytest.raises(TruncatedMediaError, match="of 60 frames are missing"):
        VideoReader(path)


def test_a_file_that_lacks_one_frame_in_a_hundred_keeps_its_length(make_clip: MakeClip) -> None:
    path = make_clip(
        "clip.mp4", frames=130, options=INTRA, container_options={"movflags": "faststart"}
    )
    path.write_bytes(path.read_bytes()[:-20])
    with VideoReader(path) as reader:
        frames = list(reader.frames())
    assert len(frames) == 130
    assert [frame.pts for frame in frames] == [index * 512 for index in range(130)]
    assert reader.notices[0].code == "media.damaged_frames"


def test_a_change_of_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "two_sizes.mkv"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("mjpeg", rate=25, width=64, height=48, pix_fmt="yuvj420p")
        output.mux(stream.encode(noise_frame((64, 48), "yuvj420p", 0)))
        other = av.CodecContext.create("mjpeg", "w")
        other.width, other.height, other.pix_fmt = 96, 64, "yuvj420p"
        other.time_base = Fraction(1, 25)
        frame = noise_frame((96, 64), "yuvj420p", 1)
        frame.pts = 1
        for packet in (*other.encode(frame), *other.encode(None)):
            packet.stream = stream
            output.mux(packet)
    with pytest.raises(SizeChangedError, match="from 64 x 48 to 96 x 64"):
        read(path)


def test_a_still_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "still.png"
    Image.new("RGB", (8, 8)).save(path)
    with pytest.raises(NoVideoError):
        VideoReader(path)


def test_more_frames_than_allowed_are_refused_while_reading(make_clip: MakeClip) -> None:
    path = make_clip("clip.mkv", frames=12)
    reader = VideoReader(path, MediaLimits(max_frames=12))
    reader._limits = MediaLimits(max_frames=11)
    with pytest.raises(MediaTooLargeError):
        list(reader.frames())


def test_transparency_of_a_web_video_is_read(make_clip: MakeClip) -> None:
    path = make_clip(
        "clear.webm",
        frames=2,
        codec="libvpx-vp9",
        pixel_format="yuva420p",
        options={"deadline": "realtime", "cpu-used": "8"},
    )
    picture = read(path)[0].picture
    assert picture.pixel_format.name == "yuva420p"
    assert len(np.unique(picture.planes[3])) > 10


def test_delays_of_an_animated_picture_are_its_times(tmp_path: Path) -> None:
    path = tmp_path / "moving.gif"
    images = [Image.new("RGB", (16, 12), color) for color in ("red", "green", "blue")]
    images[0].save(path, save_all=True, append_images=images[1:], duration=[70, 200, 30])
    assert [round(frame.time_s * 1000) for frame in read(path)] == [0, 70, 270]

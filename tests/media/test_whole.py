"""Files without an index that were cut are refused, not shortened in silence."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from app.core.errors import TruncatedMediaError
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding
from app.media.sniff import MediaKind, sniff
from app.media.whole import missing_share
from tests.media.clips import Sound
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video

LOSSLESS = {"codec": "ffv1", "options": {}, "size_wh": (128, 96)}


@pytest.mark.parametrize("name", ["a.mkv", "a.avi"])
def test_a_cut_file_is_refused(name: str, make_clip: MakeClip) -> None:
    path = make_clip(name, frames=50, **LOSSLESS)
    whole = path.stat().st_size
    os.truncate(path, whole * 3 // 4)
    assert missing_share(path, sniff(path)) == pytest.approx(0.25, abs=0.01)
    with pytest.raises(TruncatedMediaError, match="ends early"):
        VideoReader(path)


@pytest.mark.parametrize("name", ["a.mkv", "a.avi", "a.mp4", "a.ts"])
def test_a_whole_file_misses_nothing(name: str, make_clip: MakeClip) -> None:
    path = make_clip(name, frames=10)
    assert missing_share(path, sniff(path)) == 0
    with VideoReader(path) as reader:
        assert len(list(reader.frames())) == 10


@pytest.mark.parametrize("name", ["a.mkv", "a.avi"])
@pytest.mark.parametrize("share", [0.999, 0.994, 0.991])
def test_a_file_that_lacks_less_keeps_its_length_and_says_so(
    name: str, share: float, make_clip: MakeClip
) -> None:
    unit = {"time_base": Fraction(1, 25)} if name == "a.avi" else {}
    sounds = (Sound(codec="libmp3lame", seconds=16),)
    path = make_clip(name, frames=400, size_wh=(192, 144), sounds=sounds, **unit)
    os.truncate(path, round(path.stat().st_size * share))
    with VideoReader(path) as reader:
        frames = list(reader.frames())
    # The AVI writer counts one frame too many.
    assert len(frames) in (400, 401)
    assert 1 <= reader.info.missing_frames <= 4 or share == 0.999
    assert reader.notices[0].code == "media.ends_early"
    assert [frame.pts for frame in frames] == sorted({frame.pts for frame in frames})


def test_frames_missing_at_the_end_count_as_bad(make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", frames=60, **LOSSLESS)
    os.truncate(path, path.stat().st_size - 2000)
    assert missing_share(path, sniff(path)) < 0.01
    with pytest.raises(TruncatedMediaError, match="of 60 frames are missing"):
        VideoReader(path)


def test_sound_that_is_longer_makes_no_frame_missing(make_clip: MakeClip, tmp_path: Path) -> None:
    badly_laid = make_clip("b.mkv", frames=25, sounds=(Sound(codec="aac", seconds=30),))
    path = tmp_path / "a.mkv"
    encoding = VideoEncoding(container="matroska", preset="ultrafast")
    copy_video(badly_laid, path, encoding)
    os.truncate(path, path.stat().st_size - 3000)
    with VideoReader(path) as reader:
        assert len(list(reader.frames())) == 25
    assert [notice.code for notice in reader.notices] == ["media.ends_early"]


def test_half_an_index_is_not_all_there_is(make_clip: MakeClip) -> None:
    sound = Sound(codec="libmp3lame", seconds=12)
    path = make_clip("a.avi", frames=300, time_base=Fraction(1, 25), sounds=(sound,))
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"idx1") + 400])
    with VideoReader(path) as reader:
        assert len(list(reader.frames())) >= 300
    assert reader.notices[0].code == "media.ends_early"


@pytest.mark.parametrize("cut_bytes", [1, 100, 188 * 3])
def test_a_transport_stream_that_ends_within_a_packet_says_so(
    cut_bytes: int, make_clip: MakeClip
) -> None:
    path = make_clip("a.ts", frames=100, sounds=(Sound(seconds=4),))
    os.truncate(path, path.stat().st_size - cut_bytes)
    with VideoReader(path) as reader:
        frames = list(reader.frames())
    assert 98 <= len(frames) <= 100
    assert "media.ends_early" in [notice.code for notice in reader.notices]


def test_an_avi_of_several_parts_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    first = b"RIFF" + (104).to_bytes(4, "little") + b"AVI " + bytes(100)
    second = b"RIFF" + (54).to_bytes(4, "little") + b"AVIX" + bytes(50)
    path.write_bytes(first + second)
    assert missing_share(path, MediaKind.AVI) == 0
    path.write_bytes(first + second[:-31])
    assert missing_share(path, MediaKind.AVI) == pytest.approx(31 / 174)


def test_a_live_recording_declares_no_length(make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", frames=10, container_options={"live": "1"})
    os.truncate(path, path.stat().st_size - 10)
    assert missing_share(path, sniff(path)) == 0

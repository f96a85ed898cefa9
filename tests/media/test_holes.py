"""Frames that are gone from the middle of a file are counted and shown as the last good one, or the file is refused."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from app.core.errors import DamagedMediaError, TruncatedMediaError
from app.media.decode import VideoReader
from app.media.deinterlace import Shown
from app.media.holes import Complaints, Holes
from tests.media.conftest import MakeClip

INTRA = {"preset": "ultrafast", "crf": "18", "g": "1"}


def shown(*times: int | None) -> Iterator[Shown]:
    return (Shown(at, None) for at in times)


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        pytest.param((0, 40, 80, 120, 160), (), id="no gap"),
        pytest.param((0, 40, 80, 120, 200, 240), (160,), id="one is gone"),
        pytest.param((0, 40, 80, 120, 280), (160, 200, 240), id="three are gone"),
        pytest.param((0, 33, 67, 100, 133, 200), (166,), id="a coarse clock"),
        pytest.param((0, 40, 200, 240), (), id="too early to know the rate"),
        pytest.param((0, 40, 700, 710, 2000, 2040, 2500), (), id="a variable rate"),
        pytest.param((0, 40, None, 80, 120, 200), (160,), id="a moment without a time"),
    ],
)
def test_gaps_of_a_damaged_steady_video_are_filled(
    times: tuple[int | None, ...], wanted: tuple[int, ...]
) -> None:
    found = [each.pts for each in Holes(Complaints(lambda: True)).filled(shown(*times))]
    assert [at for at in found if at not in times] == list(wanted)
    assert [at for at in found if at in times] == list(times)


def test_gaps_of_a_sound_video_mean_nothing() -> None:
    times = (0, 40, 80, 120, 400, 440)
    assert [each.pts for each in Holes(Complaints(lambda: False)).filled(shown(*times))] == list(
        times
    )


def test_the_file_is_looked_at_once_and_only_when_asked() -> None:
    looks: list[int] = []
    complaints = Complaints(lambda: bool(looks.append(1)))
    assert not complaints.were_heard
    assert not looks
    assert not complaints.explain_gap()
    assert not complaints.explain_gap()
    assert len(looks) == 1
    complaints.hear()
    assert complaints.explain_gap()


def test_a_gap_long_after_a_complaint_has_another_reason() -> None:
    complaints = Complaints(lambda: False)
    complaints.hear()
    times = (*range(0, 40 * 200, 40), 40 * 210, 40 * 211)
    assert [each.pts for each in Holes(complaints).filled(shown(*times))] == list(times)


def without(path: Path, packets: int) -> None:
    """Take some transport packets out of the middle."""
    content = path.read_bytes()
    middle = len(content) // 188 // 2 * 188
    path.write_bytes(content[:middle] + content[middle + 188 * packets :])


def test_a_frame_lost_on_the_air_is_repeated(make_clip: MakeClip) -> None:
    path = make_clip("a.ts", frames=400, size_wh=(128, 96), options=INTRA)
    without(path, 30)
    with VideoReader(path) as reader:
        frames = list(reader.frames())
    assert len(frames) == 400
    steps = {b.pts - a.pts for a, b in pairwise(frames)}
    assert steps == {3600}
    assert [notice.code for notice in reader.notices] == ["media.damaged_frames"]


@pytest.mark.parametrize("b_frames", ["0", "2"])
def test_a_second_lost_on_the_air_is_refused(b_frames: str, make_clip: MakeClip) -> None:
    options = {"preset": "veryfast", "g": "25", "bf": b_frames}
    path = make_clip("a.ts", frames=300, size_wh=(128, 96), options=options)
    without(path, 300)
    with pytest.raises(DamagedMediaError, match="more than 1%"), VideoReader(path) as reader:
        list(reader.frames())


def spoil(path: Path, count: int, *, is_cut_out: bool) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + count] = b"" if is_cut_out else b"\x55" * count
    path.write_bytes(content)


CUT_OUT = pytest.mark.parametrize("is_cut_out", [True, False], ids=["a hole", "nonsense"])


@CUT_OUT
def test_a_block_that_cannot_be_read_is_repeated(is_cut_out: bool, make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", frames=300, size_wh=(128, 96), options=INTRA)
    spoil(path, 3000, is_cut_out=is_cut_out)
    with VideoReader(path) as reader:
        frames = list(reader.frames())
    assert [frame.pts for frame in frames] == [index * 40 for index in range(300)]
    assert "media.damaged_frames" in [notice.code for notice in reader.notices]


@CUT_OUT
def test_many_that_cannot_be_read_are_refused(is_cut_out: bool, make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", frames=300, size_wh=(128, 96), options=INTRA)
    spoil(path, 40_000, is_cut_out=is_cut_out)
    with pytest.raises((DamagedMediaError, TruncatedMediaError)), VideoReader(path) as reader:
        list(reader.frames())


def test_a_variable_rate_in_matroska_is_no_damage(make_clip: MakeClip) -> None:
    times = [*range(0, 25 * 512, 512), *range(60 * 512, 100 * 512, 512)]
    path = make_clip("a.mkv", pts=times, frames=len(times))
    with VideoReader(path) as reader:
        assert len(list(reader.frames())) == len(times)
    assert reader.notices == ()

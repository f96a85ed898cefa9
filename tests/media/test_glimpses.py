from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import DamagedMediaError, MediaError
from app.media import glimpses as module
from app.media.decode import VideoReader
from app.media.glimpses import glimpses
from app.media.limits import DEFAULT_LIMITS
from tests.media.conftest import MakeClip

X264 = {"crf": "30", "preset": "veryfast"}


def times(path: Path, every_s: float = 0.5) -> list[float]:
    return [frame.time_s for frame in glimpses(path, DEFAULT_LIMITS, every_s=every_s)]


@pytest.mark.parametrize(
    ("name", "wishes", "at_most"),
    [
        pytest.param("few_keys.mp4", {"options": {**X264, "g": "250"}}, 75, id="few key frames"),
        pytest.param("dense.mp4", {"options": {**X264, "g": "10", "bf": "0"}}, 9, id="dense ones"),
        pytest.param(
            "only_keys.mov", {"codec": "prores_ks", "pixel_format": "yuv422p10le", "options": {}}, 9,
            id="only key frames",
        ),
        pytest.param("web.mkv", {"options": X264}, 75, id="Matroska"),
    ],
)  # fmt: skip
def test_no_half_second_is_without_a_frame(
    name: str, wishes: dict[str, Any], at_most: int, make_clip: MakeClip
) -> None:
    path = make_clip(name, frames=75, **wishes)
    found = times(path)
    assert found[0] == 0
    assert max(b - a for a, b in pairwise([*found, 3.0])) <= 0.6
    assert all(a < b for a, b in pairwise(found))
    assert len(found) <= at_most


def test_a_glimpse_is_the_frame_that_the_reader_gives(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=60, rotation_deg=90, options={**X264, "g": "12"})
    with VideoReader(path) as reader:
        whole = {frame.time_s: frame.picture.copy() for frame in reader.frames()}
    for frame in glimpses(path, DEFAULT_LIMITS, every_s=0.5):
        same = whole[frame.time_s]
        assert frame.picture.size_wh == same.size_wh == (48, 64)
        assert all((a == b).all() for a, b in zip(frame.picture.planes, same.planes, strict=True))


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_long_file_is_seen_by_its_key_frames(
    suffix: str, make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_READ_THROUGH_S", 2.0)
    options = {**X264, "g": "25", "keyint_min": "25", "sc_threshold": "0"}
    path = make_clip(f"long{suffix}", frames=150, options=options)
    assert times(path, every_s=2.0) == pytest.approx([0.0, 2.0, 4.0], abs=0.05)


def test_damaged_frames_are_left_out(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=75, options={**X264, "g": "5"})
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 60] = bytes(60)
    path.write_bytes(data)
    assert len(times(path)) >= 4


def test_a_clock_that_starts_anywhere_is_the_readers(make_clip: MakeClip) -> None:
    path = make_clip("late.ts", frames=30, container="mpegts", time_base=Fraction(1, 90_000))
    with VideoReader(path) as reader:
        first = next(frame.time_s for frame in reader.frames())
    assert times(path)[0] == pytest.approx(first)


def test_what_is_no_video_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(MediaError):
        times(path)
    assert not issubclass(MediaError, DamagedMediaError)

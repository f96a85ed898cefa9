"""Files without an index that were cut are refused, not shortened in silence."""

import os

import pytest

from app.core.errors import TruncatedMediaError
from app.media.decode import VideoReader
from app.media.sniff import sniff
from app.media.whole import missing_share
from tests.media.conftest import MakeClip

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


def test_a_live_recording_declares_no_length(make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", frames=10, container_options={"live": "1"})
    os.truncate(path, path.stat().st_size - 10)
    assert missing_share(path, sniff(path)) == 0

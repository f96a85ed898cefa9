"""Frames go as soon as nobody holds them, without waiting for the garbage collector: at 4K each is 12 MB."""

import gc

import av

from app.media.decode import VideoReader
from tests.media.conftest import MakeClip


def test_a_frame_that_nobody_holds_is_gone_at_once(make_clip: MakeClip) -> None:
    path = make_clip("clip.mkv", codec="ffv1", options={}, frames=12)
    gc.collect()
    before = sum(isinstance(each, av.VideoFrame) for each in gc.get_objects())
    gc.disable()
    try:
        with VideoReader(path) as reader:
            for frame in reader.frames():
                assert frame.picture.planes
        del frame
        after = sum(isinstance(each, av.VideoFrame) for each in gc.get_objects())
    finally:
        gc.enable()
    assert after == before

"""Pixels that are not square stay so in Matroska and WebM, whatever the codec."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from app.core.errors import OutputError
from app.media.display_size import write_display_size
from app.media.ebml import has_foreign_bytes
from app.media.encode import VideoEncoding
from app.media.encoders import Container, VideoCodec
from app.media.probe import probe
from tests.media.clips import Sound
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video


@pytest.mark.parametrize("aspect", [Fraction(4, 3), Fraction(8, 9), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize(
    ("codec", "container"),
    [
        ("vp9", "webm"),
        ("av1", "webm"),
        ("vp9", "matroska"),
        ("av1", "matroska"),
        ("h264", "matroska"),
        ("ffv1", "matroska"),
        ("prores", "matroska"),
    ],
)
def test_the_shape_of_pixels_is_kept(
    codec: VideoCodec,
    container: Container,
    aspect: Fraction,
    make_clip: MakeClip,
    tmp_path: Path,
) -> None:
    context = {"sample_aspect_ratio": aspect}
    source = make_clip(
        "a.mp4", size_wh=(72, 54), frames=5, context=context, sounds=(Sound(seconds=0.2),)
    )
    path = tmp_path / "out"
    encoding = VideoEncoding(container=container, codec=codec, preset="ultrafast")
    copy_video(source, path, encoding)
    after = probe(path)
    assert (after.pixel_aspect, after.size_wh, after.frames) == (aspect, (72, 54), 5)
    assert not has_foreign_bytes(path)
    with av.open(str(path)) as file:
        assert "title" not in file.streams.video[0].metadata
        assert len(list(file.decode(audio=0))) > 0


def test_a_file_without_room_is_no_result(make_clip: MakeClip) -> None:
    path = make_clip("a.mkv", frames=2)
    content = path.read_bytes()
    with pytest.raises(OutputError, match="no room"):
        write_display_size(path, (64, 48), Fraction(4, 3))
    assert path.read_bytes() == content

"""What a decoder says of frames that the library has no name for."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from app.media.decode import VideoReader
from app.media.frames import DecodedPicture
from app.media.probe import probe
from app.media.side_data import side_data_of
from tests.media.clips import noise_frame, put_before_each_frame

_ORIENTATION, _MAKER = 0x0112, 0x010F


def jpeg(turn: int, shade: int) -> bytes:
    """A dark picture with a light left half, and what a camera writes of it."""
    pixels = np.full((32, 48, 3), shade, np.uint8)
    pixels[:, :24] = 220
    exif = Image.Exif()
    exif[_MAKER], exif[_ORIENTATION] = "Camera", turn
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", exif=exif, quality=95)
    return stream.getvalue()


def camera_video(path: Path, turn: int) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuvj420p"
        for index in range(4):
            packet = av.Packet(jpeg(turn, 20 + index))
            packet.pts = packet.dts = index
            packet.time_base, packet.stream, packet.is_keyframe = Fraction(1, 25), stream, True
            container.mux(packet)


def test_a_plain_frame_carries_nothing() -> None:
    assert side_data_of(noise_frame((64, 48), "yuv420p", 3)) == {}


@pytest.mark.parametrize("suffix", [".avi", ".mov", ".mkv"])
@pytest.mark.parametrize(
    ("turn", "size_wh", "light"),
    [(1, (48, 32), np.s_[:, :20]), (3, (48, 32), np.s_[:, 28:]), (6, (32, 48), np.s_[:20])],
)
def test_videos_of_cameras_that_write_exif_into_every_frame_are_read(
    tmp_path: Path, suffix: str, turn: int, size_wh: tuple[int, int], light: tuple[slice, ...]
) -> None:
    path = tmp_path / f"camera{suffix}"
    camera_video(path, turn)
    with av.open(str(path)) as container:
        assert side_data_of(next(container.decode(video=0))) is None
    assert probe(path).size_wh == size_wh
    with VideoReader(path) as reader:
        pictures = [frame.picture for frame in reader.frames()]
    assert len(pictures) == 4
    assert not any(isinstance(picture, DecodedPicture) for picture in pictures)
    assert pictures[0].planes[0][light].min() > 190


def with_captions(source: Path, path: Path) -> None:
    """Put a caption's two bytes before each frame of an H.264 file.

    Source: ATSC A/53 part 4, 6.2.3 (the message), ITU-T H.264 7.3.2.3 and D.1.6 (where it lies).
    """
    message = bytes((0xB5, 0, 0x31)) + b"GA94" + bytes((3, 0xC1, 0xFF, 0xFC, 0x94, 0xAE, 0xFF))
    unit = bytes((6, 4, len(message))) + message + b"\x80"
    put_before_each_frame(unit, source, path)


def test_closed_captions_that_are_lost_are_told_of(tmp_path: Path) -> None:
    plain, captioned = tmp_path / "plain.mp4", tmp_path / "captioned.mp4"
    with av.open(str(plain), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(5):
            container.mux(stream.encode(noise_frame((64, 48), "yuv420p", index)))
        container.mux(stream.encode(None))
    with_captions(plain, captioned)
    for path, told in ((plain, []), (captioned, ["media.captions_dropped"])):
        with VideoReader(path) as reader:
            assert len(list(reader.frames())) == 5
        assert [notice.code for notice in reader.notices] == told

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture
from app.media.decode import VideoReader
from app.media.encodable import EncodableFrames
from app.media.encode import VideoWriter
from app.media.encoders import ENCODERS, VideoEncoding
from app.media.frames import DecodedPicture, picture_of
from app.media.hardware import HARDWARE_ENCODERS
from tests.media.clips import noise_frame

TAGS = ColorTags(matrix=1, is_full_range=False, primaries=1, transfer=1)


def decoded(name: str = "yuv420p") -> Picture:
    return picture_of(noise_frame((64, 48), name, 3))


def test_a_picture_that_nobody_changed_goes_on_as_the_decoder_made_it() -> None:
    picture = decoded()
    assert isinstance(picture, DecodedPicture)
    frame = EncodableFrames(PIXEL_FORMATS["yuv420p"], TAGS).of(picture)
    assert frame is picture.frame
    assert (int(frame.colorspace), int(frame.color_range)) == (1, 1)


def test_a_changed_picture_has_a_frame_of_its_own() -> None:
    picture = decoded()
    changed = picture.copy()
    changed.planes[0][:] = 7
    frame = EncodableFrames(PIXEL_FORMATS["yuv420p"], TAGS).of(changed)
    assert np.unique(picture_of(frame).planes[0]).tolist() == [7]
    assert len(np.unique(picture.planes[0])) > 100


@pytest.mark.parametrize("name", ["yuv422p", "rgb24", "gray"])
def test_a_picture_of_another_format_is_converted(name: str) -> None:
    frame = EncodableFrames(PIXEL_FORMATS["yuv444p"], TAGS).of(decoded(name))
    assert frame.format.name == "yuv444p"


def test_the_sources_choice_of_key_frames_is_not_repeated(tmp_path: Path) -> None:
    source, target = tmp_path / "intra.mp4", tmp_path / "out.mp4"
    with av.open(str(source), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"g": "1"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(12):
            frame = noise_frame((64, 48), "yuv420p", 3)
            frame.pts, frame.time_base = index, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with (
        VideoReader(source) as reader,
        VideoWriter(
            target, source=None, info=reader.info, encoding=VideoEncoding(), metadata={}
        ) as writer,
    ):
        for shown in reader.frames():
            assert isinstance(shown.picture, DecodedPicture)
            writer.write(shown)
    with av.open(str(target)) as container:
        keys = [packet.is_keyframe for packet in container.demux(video=0) if packet.size]
    assert keys == [True, *[False] * 11]


def test_captions_inside_frames_are_left_out_of_all_of_them() -> None:
    """Else they would be there where no face is, and away where one was changed."""
    taking = [ENCODERS["h264"], *(e for each in HARDWARE_ENCODERS.values() for e in each)]
    for encoder in taking:
        if encoder.name == "libx264" or encoder.name.endswith("_nvenc"):
            assert encoder.options["a53cc"] == "0"

"""A graphics card decodes only what it decodes to the last bit; none is needed to test that."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest

from app.core.picture import Picture
from app.media.decode import VideoReader
from app.media.frames import picture_of
from app.media.hardware_decode import Sample, decoding_device, first_that_agrees
from app.media.probe import probe
from tests.media.clips import noise_frame

SIZE_WH = (64, 48)


def samples(*, as_cards_do: bool = False, pixel_format: str = "yuv420p") -> list[Sample]:
    frames = [noise_frame(SIZE_WH, pixel_format, seed) for seed in range(3)]
    if as_cards_do:
        packed = {"yuv420p": "nv12", "yuv420p10le": "p010le"}[pixel_format]
        frames = [frame.reformat(format=packed) for frame in frames]
    return [
        Sample(at, picture_of(frame).copy(), "upright", False) for at, frame in enumerate(frames)
    ]


def off_by_one(sample: Sample) -> Sample:
    planes = [plane.copy() for plane in sample.picture.planes]
    planes[2][-1, -1] ^= 1
    changed = Picture(tuple(planes), sample.picture.pixel_format, sample.picture.tags)
    return sample._replace(picture=changed)


def retagged(sample: Sample) -> Sample:
    picture = sample.picture
    tags = replace(picture.tags, is_full_range=True)
    return sample._replace(picture=Picture(picture.planes, picture.pixel_format, tags))


@pytest.mark.parametrize("pixel_format", ["yuv420p", "yuv420p10le"])
def test_a_device_with_the_same_samples_in_its_own_order_is_taken(pixel_format: str) -> None:
    def decode(device: str | None) -> Sequence[Sample]:
        return samples(as_cards_do=device is not None, pixel_format=pixel_format)

    assert first_that_agrees(["card"], decode) == "card"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda found: [*found[:2], off_by_one(found[2])], id="one bit"),
        pytest.param(lambda found: [retagged(found[0]), *found[1:]], id="color tags"),
        pytest.param(lambda found: [found[0]._replace(pts=7), *found[1:]], id="times"),
        pytest.param(lambda found: [found[0]._replace(orientation="left"), *found[1:]], id="turn"),
        pytest.param(
            lambda found: [found[0]._replace(is_interlaced=True), *found[1:]], id="fields"
        ),
        pytest.param(lambda found: found[:2], id="a frame less"),
    ],
)
def test_a_device_that_differs_is_passed_over(wrong: object) -> None:
    assert callable(wrong)

    def decode(device: str | None) -> Sequence[Sample]:
        return wrong(samples()) if device == "bad" else samples()

    assert first_that_agrees(["bad"], decode) is None
    assert first_that_agrees(["bad", "good"], decode) == "good"


@pytest.mark.parametrize("error", [av.error.PermissionError(1, "no"), RuntimeError, ValueError])
def test_a_device_that_does_not_open_is_passed_over(error: Exception) -> None:
    def decode(device: str | None) -> Sequence[Sample]:
        if device is not None:
            raise error
        return samples()

    assert first_that_agrees(["away"], decode) is None


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = *SIZE_WH, "yuv420p"
        for index in range(6):
            container.mux(stream.encode(noise_frame(SIZE_WH, "yuv420p", index)))
        container.mux(stream.encode(None))
    return path


def test_whichever_way_a_file_is_decoded_its_frames_are_those_of_software(clip: Path) -> None:
    """With a card this decodes on it; without one it is software twice."""
    info = probe(clip)
    device = decoding_device(clip, info.container)
    with VideoReader(clip) as plain, VideoReader(clip, device=device) as reader:
        pairs = list(zip(plain.frames(), reader.frames(), strict=True))
    assert len(pairs) == 6
    for one, other in pairs:
        assert all(map(np.array_equal, one.picture.planes, other.picture.planes))


def test_a_file_that_cannot_be_decoded_is_left_to_whoever_reads_it(clip: Path) -> None:
    info = probe(clip)
    clip.write_bytes(clip.read_bytes()[:200])
    assert decoding_device(clip, info.container) is None


def test_software_is_asked_for_frames_to_compare_with(clip: Path) -> None:
    """A comparison of nothing would let every device pass."""
    asked: list[str | None] = []

    def decode(device: str | None) -> Sequence[Sample]:
        asked.append(device)
        return []

    assert first_that_agrees(["card"], decode) is None
    assert asked == [None]

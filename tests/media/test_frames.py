import numpy as np
import pytest
from av import VideoFrame
from av.filter import Graph
from numpy.typing import NDArray

from app.core.color import ColorTags
from app.core.errors import UnsupportedCodecError
from app.core.picture import PIXEL_FORMATS, Picture, PixelFormat
from app.media.frames import (
    _NEAREST,
    EXACT,
    color_tags,
    fill_inplace,
    frame_of,
    native_format,
    picture_of,
    set_color_tags,
)
from tests.media.clips import noise_frame


def random_picture(pixel_format: PixelFormat, size_wh: tuple[int, int] = (33, 17)) -> Picture:
    rng = np.random.default_rng(1)
    planes = tuple(
        rng.integers(0, 1 << pixel_format.bits, shape).astype(pixel_format.dtype)
        for shape in pixel_format.plane_shapes(size_wh)
    )
    return Picture(
        planes, pixel_format, ColorTags(matrix=9, is_full_range=True, primaries=9, transfer=16)
    )


@pytest.mark.parametrize("pixel_format", PIXEL_FORMATS.values(), ids=lambda each: each.name)
def test_planes_and_tags_survive_a_trip_through_a_frame(pixel_format: PixelFormat) -> None:
    picture = random_picture(pixel_format)
    back = picture_of(frame_of(picture))
    assert back.pixel_format == pixel_format
    assert back.tags == picture.tags
    for got, wanted in zip(back.planes, picture.planes, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_frame_can_be_filled_again() -> None:
    first, second = (random_picture(PIXEL_FORMATS["yuv420p"]) for _ in range(2))
    second.planes[0][:] = 7
    frame = frame_of(first)
    fill_inplace(frame, second)
    assert np.unique(picture_of(frame).planes[0]).tolist() == [7]


def test_planes_are_the_frames_own_memory_and_keep_it_alive() -> None:
    frame = noise_frame((64, 48), "yuv420p", 3)
    address = np.frombuffer(frame.planes[0], np.uint8).ctypes.data
    wanted = np.frombuffer(frame.planes[0], np.uint8).reshape(48, -1)[:, :64].copy()
    picture = picture_of(frame)
    del frame
    assert picture.planes[0].ctypes.data == address
    np.testing.assert_array_equal(picture.planes[0], wanted)


def test_a_decoders_memory_cannot_be_written() -> None:
    picture = picture_of(noise_frame((64, 48), "yuv420p", 3))
    with pytest.raises(ValueError, match="read-only"):
        picture.planes[0][0, 0] = 1
    picture.copy().planes[0][0, 0] = 1


def test_rows_that_run_upwards_come_out_the_right_way_round() -> None:
    frame = noise_frame((64, 48), "yuv420p", 3)
    graph = Graph()
    source, flip, sink = (
        graph.add_buffer(width=64, height=48, format="yuv420p", time_base=1),
        graph.add("vflip"),
        graph.add("buffersink"),
    )
    source.link_to(flip)
    flip.link_to(sink)
    graph.configure()
    graph.push(frame)
    flipped = graph.pull()
    assert flipped.planes[0].line_size < 0
    for got, wanted in zip(picture_of(flipped).planes, picture_of(frame).planes, strict=True):
        np.testing.assert_array_equal(got, wanted[::-1])


@pytest.mark.parametrize("name", sorted(set(_NEAREST) - {"pal8", "monow", "monob"}))
def test_a_foreign_format_becomes_its_nearest_kin_without_loss(name: str) -> None:
    frame = _clean_frame(name)
    back = frame.reformat(format=_NEAREST[name], interpolation=EXACT).reformat(
        format=name, interpolation=EXACT
    )
    for got, wanted in zip(_samples(back), _samples(frame), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_palette_becomes_its_colors() -> None:
    frame = VideoFrame(2, 1, "pal8")
    np.frombuffer(frame.planes[0], np.uint8)[:2] = (0, 1)
    palette = np.frombuffer(frame.planes[1], np.uint8).reshape(256, 4)
    palette[0], palette[1] = (10, 20, 30, 255), (40, 50, 60, 0)
    assert picture_of(frame).planes[0].tolist() == [[[30, 20, 10, 255], [60, 50, 40, 0]]]


def test_full_range_by_name_is_full_range_by_tag() -> None:
    frame = noise_frame((64, 48), "yuvj420p", 1)
    picture = picture_of(frame)
    assert (picture.pixel_format.name, picture.tags.is_full_range) == ("yuv420p", True)


def test_what_is_not_said_stays_unsaid() -> None:
    frame = noise_frame((64, 48), "yuv420p", 1)
    set_color_tags(frame, ColorTags())
    assert color_tags(frame) == ColorTags()


def test_a_format_that_would_lose_depth_is_refused() -> None:
    with pytest.raises(UnsupportedCodecError, match="yuv420p16le"):
        native_format("yuv420p16le")


def _clean_frame(name: str) -> VideoFrame:
    """A frame without bits that the format does not use: random samples of its kin, brought to it."""
    kin = random_picture(PIXEL_FORMATS[_NEAREST[name]], (32, 16))
    return frame_of(kin).reformat(format=name, interpolation=EXACT)


def _samples(frame: VideoFrame) -> list[NDArray[np.uint8]]:
    return [
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:, : plane.width]
        for plane in frame.planes
    ]

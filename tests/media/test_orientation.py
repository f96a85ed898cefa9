from itertools import product

import numpy as np
import pytest

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture
from app.media.orientation import Orientation, fits_chroma, full_chroma, orientation_of, upright
from tests.media.clips import stored_frames
from tests.media.conftest import MakeClip

ALL = [
    Orientation(is_transposed=transposed, flips_x=x, flips_y=y)
    for transposed, x, y in product((False, True), repeat=3)
]


def picture(name: str, size_wh: tuple[int, int]) -> Picture:
    pixel_format = PIXEL_FORMATS[name]
    rng = np.random.default_rng(5)
    planes = tuple(
        rng.integers(0, 1 << pixel_format.bits, shape).astype(pixel_format.dtype)
        for shape in pixel_format.plane_shapes(size_wh)
    )
    return Picture(planes, pixel_format, ColorTags(matrix=1))


@pytest.mark.parametrize("orientation", ALL, ids=str)
def test_turning_is_mirroring_and_then_rotating_clockwise(orientation: Orientation) -> None:
    stored = picture("rgb24", (5, 3))
    seen = stored.planes[0][:, ::-1] if orientation.is_mirrored else stored.planes[0]
    wanted = np.rot90(seen, -orientation.rotation_deg // 90)
    turned = upright(stored, orientation)
    np.testing.assert_array_equal(turned.planes[0], wanted)
    assert turned.size_wh == orientation.size_wh((5, 3))
    assert turned.planes[0].flags.c_contiguous


@pytest.mark.parametrize("orientation", ALL[1:], ids=str)
@pytest.mark.parametrize(
    ("name", "size_wh"),
    [
        pytest.param("yuv420p", (8, 4), id="4:2:0"),
        pytest.param("yuv420p", (7, 5), id="4:2:0 of odd size"),
        pytest.param("yuv422p10le", (8, 5), id="4:2:2 of odd height"),
        pytest.param("yuv422p10le", (7, 4), id="4:2:2 of odd width"),
        pytest.param("yuva422p", (8, 4), id="4:2:2 with alpha"),
        pytest.param("yuv444p12le", (7, 5), id="4:4:4"),
        pytest.param("ya8", (7, 5), id="grey with alpha"),
    ],
)
def test_every_pixel_keeps_its_own_color(
    name: str, size_wh: tuple[int, int], orientation: Orientation
) -> None:
    stored = picture(name, size_wh)
    turned = full_chroma(upright(stored, orientation))
    for got, plane in zip(turned.planes, full_chroma(stored).planes, strict=True):
        wanted = plane.T if orientation.is_transposed else plane
        wanted = wanted[:, ::-1] if orientation.flips_x else wanted
        np.testing.assert_array_equal(got, wanted[::-1] if orientation.flips_y else wanted)
    assert turned.tags == stored.tags


def test_half_wide_chroma_becomes_half_high_chroma_when_turned() -> None:
    turned = upright(picture("yuv422p10le", (8, 4)), Orientation(is_transposed=True, flips_x=True))
    assert turned.pixel_format.name == "yuv440p10le"


def test_an_upright_picture_is_not_touched() -> None:
    stored = picture("yuv420p", (8, 4))
    assert upright(stored, Orientation()) is stored


@pytest.mark.parametrize(
    ("stored_deg", "clockwise_deg"), [(0, 0), (90, 270), (180, 180), (270, 90)]
)
def test_the_files_matrix_is_understood(
    make_clip: MakeClip, stored_deg: int, clockwise_deg: int
) -> None:
    path = make_clip("turned.mp4", frames=1, rotation_deg=stored_deg)
    orientation = orientation_of(stored_frames(path)[0])
    assert (orientation.rotation_deg, orientation.is_mirrored) == (clockwise_deg, False)


def test_a_mirroring_matrix_is_understood(make_clip: MakeClip) -> None:
    mirror = [-65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30]
    path = make_clip("mirrored.mp4", frames=1, matrix=mirror)
    assert orientation_of(stored_frames(path)[0]) == Orientation(flips_x=True)


def test_sides_of_whole_chroma_samples_are_told_from_others() -> None:
    assert fits_chroma((8, 5), PIXEL_FORMATS["yuv422p"])
    assert not fits_chroma((7, 4), PIXEL_FORMATS["yuv422p"])
    assert not fits_chroma((8, 5), PIXEL_FORMATS["yuv420p"])

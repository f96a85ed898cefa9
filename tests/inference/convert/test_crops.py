"""Crops cut by the graph are those that the processor cuts, as near as their two ways of averaging come."""

from itertools import product

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture, PixelBox
from app.faces.sampling import sample_square
from app.inference.crops import DeviceCrops
from app.inference.providers import CPU

SIDE_PX = 64

Floats = NDArray[np.float32]
Rgb = NDArray[np.uint8]


def affine(face_px: float, turn_deg: float, middle_xy: tuple[float, float]) -> Floats:
    """From a picture to the crop of a face of this size, turned and somewhere."""
    turn = np.deg2rad(turn_deg)
    linear = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    linear *= SIDE_PX / face_px
    shift = np.full(2, SIDE_PX / 2) - linear @ np.array(middle_xy)
    return np.column_stack([linear, shift]).astype(np.float32)


def affines(face_px: float, size_wh: tuple[int, int]) -> Floats:
    w, h = size_wh
    places = ((0, 0.5, 0.5), (20, 0.45, 0.55), (-77, 0.55, 0.5), (180, 0.5, 0.45))
    return np.stack([affine(face_px, turn, (x * w, y * h)) for turn, x, y in places])


def on_the_processor(picture: Picture, matrices: Floats) -> Floats:
    return np.stack([sample_square(picture, each, SIDE_PX) for each in matrices], dtype=np.float32)


def crops_of(picture: Picture, matrices: Floats) -> Floats:
    return DeviceCrops(CPU).cut(picture, matrices, SIDE_PX).astype(np.float32)


def true_area(rgb: Rgb, matrix: Floats, places: int = 12) -> NDArray[np.float64]:
    """`(S, S, 3)`: the mean over each crop pixel's own square in the picture, by many places."""
    back = cv2.invertAffineTransform(matrix.astype(np.float64))
    total = np.zeros((SIDE_PX, SIDE_PX, 3))
    offsets = (np.arange(places) + 0.5) / places - 0.5
    y, x = np.mgrid[:SIDE_PX, :SIDE_PX]
    for dy, dx in product(offsets, offsets):
        at = back[:, :1, None] * (x + dx) + back[:, 1:2, None] * (y + dy) + back[:, 2:, None]
        maps = at.astype(np.float32)
        total += cv2.remap(rgb, maps[0], maps[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(total / places**2)


@pytest.fixture(scope="module")
def photo(astronaut: Rgb) -> Rgb:
    """1024 x 1001, with the grain of a camera."""
    large = cv2.resize(astronaut, (1024, 1001), interpolation=cv2.INTER_CUBIC)
    grain = np.random.default_rng(0).normal(0, 6, large.shape)
    return np.clip(large + grain, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("face_px", [20, 40, 63.9, 64])
def test_where_nothing_shrinks_both_are_the_same(face_px: float, photo: Rgb) -> None:
    picture = Picture.from_rgb(photo)
    matrices = affines(face_px, picture.size_wh)
    off = np.abs(crops_of(picture, matrices) - on_the_processor(picture, matrices))
    # The processor's are rounded.
    assert off.max() < 2
    assert off.mean() < 0.3


@pytest.mark.parametrize("face_px", [70, 96, 127, 128, 150, 250, 256, 400, 600])
def test_where_it_shrinks_both_show_the_same(face_px: float, photo: Rgb) -> None:
    picture = Picture.from_rgb(photo)
    matrices = affines(face_px, picture.size_wh)
    crops, others = crops_of(picture, matrices), on_the_processor(picture, matrices)
    assert np.abs(crops - others).mean() < 4
    assert abs(float((crops - others).mean())) < 0.3, "neither is brighter"
    true = np.stack([true_area(photo, each) for each in matrices])
    off, other_off = np.abs(crops - true).mean(), np.abs(others - true).mean()
    # Nearer in all of these but one, where a face is exactly four times its crop.
    assert off < other_off + 1, "and it is as near to the true mean of the area"


@pytest.mark.parametrize("face_px", [128, 129, 180, 256, 300, 511, 512, 700, 1000])
def test_large_faces_do_not_alias(face_px: float) -> None:
    """Rows, columns and squares of single pixels are gray from afar, whatever the turn."""
    for pattern in ("rows", "columns", "squares"):
        y, x = np.indices((1024, 1024))
        lines = {"rows": y, "columns": x, "squares": x + y}[pattern] % 2
        picture = Picture.from_rgb(np.repeat((lines * 255).astype(np.uint8)[..., None], 3, -1))
        crops = crops_of(picture, affines(face_px, picture.size_wh))
        assert np.abs(crops - 127.5).max() < 8, pattern


@pytest.mark.parametrize("layout", ["rgb24", "yuv420p"])
@pytest.mark.parametrize("size_wh", [(640, 360), (641, 359), (97, 201), (33, 17)])
def test_odd_sizes_and_faces_beyond_the_border_are_the_same(
    layout: str, size_wh: tuple[int, int], photo: Rgb
) -> None:
    smooth = cv2.GaussianBlur(cv2.resize(photo, size_wh, interpolation=cv2.INTER_AREA), (0, 0), 3)
    picture = picture_of(np.asarray(smooth, np.uint8), layout, ColorTags())
    w, h = size_wh
    places = ((0, 0), (w, h), (w / 2, h), (-w, h / 2), (w / 3, h / 3))
    matrices = np.stack([affine(60, 30, place) for place in places])
    off = np.abs(crops_of(picture, matrices) - on_the_processor(picture, matrices))
    assert off.mean() < 1
    assert off.max() < 8


def picture_of(rgb: Rgb, layout: str, tags: ColorTags) -> Picture:
    if layout == "rgb24":
        return Picture.from_rgb(rgb)
    shapes = PIXEL_FORMATS["yuv420p"].plane_shapes(rgb.shape[1::-1])
    planes = tuple(
        np.full(shape, value, np.uint8) for shape, value in zip(shapes, (16, 128, 128), strict=True)
    )
    picture = Picture(planes, PIXEL_FORMATS["yuv420p"], tags)
    picture.write(PixelBox(0, 0, *picture.size_wh), rgb)
    return picture


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(ColorTags(matrix=1), id="BT.709"),
        pytest.param(ColorTags(matrix=6), id="BT.601"),
        pytest.param(ColorTags(matrix=9), id="BT.2020"),
        pytest.param(ColorTags(matrix=1, is_full_range=True), id="full range"),
        pytest.param(ColorTags(), id="not said"),
    ],
)
@pytest.mark.parametrize("face_px", [50, 200])
def test_luma_and_chroma_become_the_same_colors(
    tags: ColorTags, face_px: float, photo: Rgb
) -> None:
    smooth = np.asarray(cv2.GaussianBlur(photo, (0, 0), 4), np.uint8)
    picture = picture_of(smooth, "yuv420p", tags)
    matrices = affines(face_px, picture.size_wh)
    off = np.abs(crops_of(picture, matrices) - on_the_processor(picture, matrices))
    assert off.mean() < 1
    assert off.max() < 10


def test_faces_of_all_sizes_go_together_and_each_alone(photo: Rgb) -> None:
    picture = Picture.from_rgb(photo)
    sizes = (20, 64, 65, 130, 300, 1000, 4000)
    matrices = np.concatenate([affines(size, picture.size_wh) for size in sizes])
    alone = [crops_of(picture, each[None]) for each in matrices]
    # A value between two is rounded to either.
    np.testing.assert_allclose(crops_of(picture, matrices), np.concatenate(alone), atol=1)

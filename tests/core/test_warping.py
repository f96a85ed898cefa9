"""A square straight from the planes is what reading, converting and turning would give."""

import cv2
import numpy as np
import pytest

from app.core.geometry import FloatArray, invert_affine
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.warping import warped

SIDE = 96


def smooth(name: str, w: int, h: int) -> Picture:
    """Waves that are long enough for any way of sampling."""
    fmt = PIXEL_FORMATS[name]
    top = (1 << fmt.bits) - 1
    planes = []
    for number, shape in enumerate(fmt.plane_shapes((w, h))):
        y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
        x, y = x * (w / shape[1]), y * (h / shape[0])
        wave = 0.5 + 0.2 * np.sin(x / 45 + number) * np.cos(y / 38 - number)
        planes.append(np.rint(wave * top).astype(fmt.dtype))
    return Picture(tuple(planes), fmt)


def affine(cx: float, cy: float, side_px: float, roll_deg: float) -> FloatArray:
    scale, roll = SIDE / side_px, np.deg2rad(roll_deg)
    linear = scale * np.array([[np.cos(roll), np.sin(roll)], [-np.sin(roll), np.cos(roll)]])
    shift = (SIDE - 1) / 2 - linear @ [cx, cy]
    return np.column_stack([linear, shift]).astype(np.float32)


def exact(picture: Picture, matrix: FloatArray) -> np.ndarray:
    """The whole picture converted, then sampled point by point."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    back = invert_affine(matrix)
    there_x = back[0, 0] * x + back[0, 1] * y + back[0, 2]
    there_y = back[1, 0] * x + back[1, 1] * y + back[1, 2]
    whole = picture.read(picture.box).astype(np.float32)
    return cv2.remap(whole, there_x, there_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


@pytest.mark.parametrize("name", ["yuv420p", "yuv444p", "yuv422p10le", "yuv440p"])
@pytest.mark.parametrize("roll_deg", [0, 33, -120])
@pytest.mark.parametrize("side_px", [40, 96, 120, 140, 230, 480])
def test_a_square_shows_what_is_there(name: str, side_px: float, roll_deg: float) -> None:
    picture, matrix = smooth(name, 901, 803), affine(450, 400, side_px, roll_deg)
    got = warped(picture, matrix, SIDE)
    assert (got.shape, got.dtype) == ((SIDE, SIDE, 3), np.uint8)
    difference = np.abs(got - exact(picture, matrix))
    # A code value of chroma is nearly two of red or blue.
    assert np.percentile(difference, 99) <= 4
    assert difference.mean() <= 1


@pytest.mark.parametrize(
    ("place", "side_px", "most"),
    [
        pytest.param((5, 240), 130, 6, id="over the left edge"),
        pytest.param((638, 476), 250, 6, id="over a corner"),
        pytest.param((2000, 100), 200, 6, id="beyond the right"),
        pytest.param((300, -900), 60, 6, id="above"),
        pytest.param((320, 240), 900, 12, id="around the whole picture"),
    ],
)
def test_beyond_the_picture_its_edge_is_repeated(
    place: tuple[float, float], side_px: float, most: float
) -> None:
    picture, matrix = smooth("yuv420p", 641, 479), affine(*place, side_px, 10)
    difference = np.abs(warped(picture, matrix, SIDE) - exact(picture, matrix))
    assert np.median(difference) <= 2
    assert np.percentile(difference, 98) <= most


@pytest.mark.parametrize("size_wh", [(1, 1), (2, 3), (7, 5)])
def test_tiny_pictures_have_squares_too(size_wh: tuple[int, int]) -> None:
    picture = Picture(
        tuple(
            np.full(shape, 128, np.uint8)
            for shape in PIXEL_FORMATS["yuv420p"].plane_shapes(size_wh)
        ),
        PIXEL_FORMATS["yuv420p"],
    )
    for side_px in (0.5, 3, 400):
        assert np.ptp(warped(picture, affine(1, 1, side_px, 20), SIDE)) <= 1


def test_fine_patterns_are_averaged_not_picked_from() -> None:
    checks = (np.indices((900, 900)).sum(0) % 2 * 255).astype(np.uint8)
    gray = np.full((450, 450), 128, np.uint8)
    picture = Picture((checks, gray, gray), PIXEL_FORMATS["yuv420p"])
    inner = warped(picture, affine(450, 450, 700, 12), SIDE)[4:-4, 4:-4].astype(int)
    assert np.abs(inner - 130).max() < 40
    assert inner.std() < 10

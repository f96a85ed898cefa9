import numpy as np
import pytest

from app.core.picture import Picture
from app.faces.sampling import sample_square

GRADIENT = np.stack(
    [
        np.tile(np.arange(64, dtype=np.uint8) * 3, (48, 1)),
        np.tile(np.arange(48, dtype=np.uint8)[:, None] * 5, (1, 64)),
        np.full((48, 64), 7, np.uint8),
    ],
    axis=2,
)


def shift(x: float, y: float, scale: float = 1.0) -> np.ndarray:
    return np.array([[scale, 0, -x * scale], [0, scale, -y * scale]], np.float32)


def test_a_square_at_whole_pixels_is_copied() -> None:
    crop = sample_square(Picture.from_rgb(GRADIENT), shift(10, 20), 16)
    assert np.array_equal(crop, GRADIENT[20:36, 10:26])


def test_beyond_the_picture_the_edge_is_repeated() -> None:
    crop = sample_square(Picture.from_rgb(GRADIENT), shift(-4, -4), 16)
    assert np.array_equal(crop[4:, 4:], GRADIENT[:12, :12])
    assert (crop[:4, :4] == GRADIENT[0, 0]).all()


@pytest.mark.parametrize("corner", [(-500, 10), (500, 10), (10, 900), (-99, -99)])
def test_a_square_outside_the_picture_shows_its_nearest_edge(corner: tuple[int, int]) -> None:
    crop = sample_square(Picture.from_rgb(GRADIENT), shift(*corner), 16)
    assert crop.shape == (16, 16, 3)
    assert (crop[..., 2] == 7).all()


def test_shrinking_averages_areas() -> None:
    board = np.indices((256, 256)).sum(0) % 2 * np.uint8(255)
    picture = Picture.from_rgb(np.repeat(board[..., None].astype(np.uint8), 3, axis=2))
    crop = sample_square(picture, shift(0, 0, 1 / 8), 32)
    assert np.abs(crop.astype(int) - 127).max() <= 2


def test_a_shrunk_square_stays_in_place() -> None:
    ramp = np.tile(np.linspace(0, 255, 256), (256, 1)).astype(np.uint8)
    picture = Picture.from_rgb(np.repeat(ramp[..., None], 3, axis=2))
    crop = sample_square(picture, shift(40, 40, 1 / 4), 32).astype(float)
    expected = 40 + 4 * np.arange(32)
    assert np.abs(crop[16, :, 0] - expected).max() <= 1.5

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import transform_points
from app.core.picture import Picture
from app.faces.detector import STILL_SIDES_PX
from app.faces.turning import TurningDetector, turn_back
from app.inference.spec import ModelZoo


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_every_pixel_finds_its_way_back(turns: int) -> None:
    picture = np.arange(4 * 7).reshape(4, 7)
    turned = np.rot90(picture, turns)
    ys, xs = np.mgrid[: turned.shape[0], : turned.shape[1]]
    points = np.stack([xs.ravel(), ys.ravel()], 1).astype(np.float32)
    back = transform_points(points, turn_back((7, 4), turns)).astype(int)
    assert (picture[back[:, 1], back[:, 0]] == turned.ravel()).all()


@pytest.mark.weights
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_portrait_on_its_side_or_head_is_found(
    turns: int, zoo: ModelZoo, astronaut: NDArray[np.uint8]
) -> None:
    detector = TurningDetector(zoo, sides_px=STILL_SIDES_PX)
    (upright,) = detector.detect([Picture.from_rgb(astronaut)])
    (lying,) = detector.detect([Picture.from_rgb(np.rot90(astronaut, turns))])
    assert len(lying) == len(upright) == 1
    expected = transform_points(lying[0].kps, turn_back((512, 512), turns))
    assert np.abs(expected - upright[0].kps).max() < 6


@pytest.mark.weights
def test_a_plain_wall_stays_without_a_face(zoo: ModelZoo) -> None:
    wall = Picture.from_rgb(np.full((300, 400, 3), 130, np.uint8))
    assert TurningDetector(zoo, sides_px=STILL_SIDES_PX).detect([wall]) == [()]

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import transform_points
from app.core.picture import Picture
from app.faces.detector import STILL_SIDES_PX
from app.faces.turning import TurningDetector, surest, turn_back, turned
from app.inference.spec import ModelZoo
from tests.conftest import MakeFace


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_every_pixel_finds_its_way_back(degrees: int) -> None:
    picture = np.arange(4 * 7 * 3, dtype=np.uint8).reshape(4, 7, 3)
    image = turned(picture, degrees)
    ys, xs = np.mgrid[: image.shape[0], : image.shape[1]]
    points = np.stack([xs.ravel(), ys.ravel()], 1).astype(np.float32)
    back = np.rint(transform_points(points, turn_back((7, 4), degrees))).astype(int)
    assert (picture[back[:, 1], back[:, 0]] == image.reshape(-1, 3)).all()


@pytest.mark.parametrize("degrees", [45, 135, 225, 315])
def test_a_half_quarter_turn_loses_nothing_and_finds_back(degrees: int) -> None:
    picture = np.full((60, 100, 3), 10, np.uint8)
    spots = [(3, 4), (96, 2), (50, 55)]
    for x, y in spots:
        cv2.circle(picture, (x, y), 2, (255, 255, 255), -1)
    image = turned(picture, degrees)
    _, _, _, centers = cv2.connectedComponentsWithStats((image[..., 0] > 200).astype(np.uint8))
    back = transform_points(centers[1:].astype(np.float32), turn_back((100, 60), degrees))
    for spot in spots:
        assert np.linalg.norm(back - spot, axis=1).min() < 1


def test_of_finds_in_one_place_the_surest_counts(make_face: MakeFace) -> None:
    weak, sure = make_face(cx=60, det_score=0.7), make_face(cx=62, det_score=0.95)
    other = make_face(cx=200, det_score=0.8)
    assert surest([weak, other, sure]) == [sure, other]


@pytest.mark.weights
@pytest.mark.parametrize("degrees", [30, 45, 60, 90, 120, 135, 150, 180, 210, 225, 270, 315])
def test_a_portrait_at_any_roll_is_found(
    degrees: int, zoo: ModelZoo, astronaut: NDArray[np.uint8]
) -> None:
    detector = TurningDetector(zoo, sides_px=STILL_SIDES_PX)
    (upright,) = detector.detect([Picture.from_rgb(astronaut)])
    (found,) = detector.detect([Picture.from_rgb(turned(astronaut, degrees))])
    # The mesh tells weak finds from faces, later.
    lying = [face for face in found if face.det_score > 0.8]
    assert len(lying) == len(upright) == 1
    expected = transform_points(lying[0].kps, turn_back((512, 512), degrees))
    eyes = np.linalg.norm(upright[0].kps[0] - upright[0].kps[1])
    assert np.abs(expected - upright[0].kps).max() < 0.5 * eyes


@pytest.mark.weights
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_who_lies_beside_somebody_upright_is_found(
    degrees: int, zoo: ModelZoo, astronaut: NDArray[np.uint8], grace_hopper: NDArray[np.uint8]
) -> None:
    both = np.concatenate([grace_hopper[:512], turned(astronaut, degrees)], axis=1)
    (faces,) = TurningDetector(zoo, sides_px=STILL_SIDES_PX).detect([Picture.from_rgb(both)])
    assert len(faces) == 2
    assert all(face.det_score > 0.9 for face in faces)


@pytest.mark.weights
def test_a_plain_wall_stays_without_a_face(zoo: ModelZoo) -> None:
    wall = Picture.from_rgb(np.full((300, 400, 3), 130, np.uint8))
    assert TurningDetector(zoo, sides_px=STILL_SIDES_PX).detect([wall]) == [()]

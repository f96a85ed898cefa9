from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import FloatArray, transform_points
from app.core.mesh_topology import LEFT_EYE_REFINED, LIPS_REFINED, RIGHT_EYE_REFINED
from app.core.picture import Picture
from app.core.types import RgbImage
from app.faces.detector import FaceDetector
from app.faces.landmarks import (
    CROP_PX,
    CropRegion,
    FaceLandmarker,
    assemble,
    bbox_from_landmarks,
    face_size_px,
    kps_from_landmarks,
    region_from_kps,
    region_from_landmarks,
)
from app.inference.spec import ModelZoo
from tests.conftest import MakeFace
from tests.faces.conftest import MakeLandmarks
from tests.faces.fakes import FakeZoo


def mesh_answer(feed: NDArray[np.generic]) -> dict[str, FloatArray]:
    """Every output is filled with a number of its own."""
    n = len(feed)
    shapes = {"mesh": (468, 3), "lips": (80, 2), "left_eye": (71, 2), "right_eye": (71, 2)}
    shapes |= {"left_iris": (5, 2), "right_iris": (5, 2), "presence": (1,)}
    return {
        name: np.full((n, *shape), value, np.float32)
        for value, (name, shape) in enumerate(shapes.items())
    }


def test_refined_points_are_written_over_the_mesh_and_keep_its_depth() -> None:
    (points,) = assemble(mesh_answer(np.zeros((1, 3, 192, 192))))
    assert points.shape == (478, 3)
    assert (points[list(LIPS_REFINED), :2] == 1).all()
    assert (points[list(LEFT_EYE_REFINED), :2] == 2).all()
    assert (points[list(RIGHT_EYE_REFINED), :2] == 3).all()
    assert (points[468:473, :2] == 4).all()
    assert (points[473:, :2] == 5).all()
    assert (points[:, 2] == 0).all()
    assert (points[1, :2] == 0).all()


def test_nothing_to_measure_needs_no_network() -> None:
    zoo = FakeZoo(mesh_answer)
    landmarks, presence = FaceLandmarker(zoo).locate([])
    assert landmarks.shape == (0, 478, 3)
    assert presence.shape == (0,)
    assert zoo.only.feeds == []


def test_faces_of_many_pictures_share_a_call_and_are_rgb_from_0_to_1(make_face: MakeFace) -> None:
    zoo = FakeZoo(mesh_answer)
    picture = Picture.from_rgb(np.full((128, 128, 3), (255, 51, 0), np.uint8))
    faces = [(picture, make_face(cx=cx)) for cx in (40, 60, 80)]
    landmarks, presence = FaceLandmarker(zoo).locate_faces(faces, passes=1)
    (feed,) = zoo.only.feeds
    assert feed.shape == (3, 3, CROP_PX, CROP_PX)
    assert feed[0, :, 90, 90].tolist() == pytest.approx([1, 0.2, 0])
    assert presence == pytest.approx(1 / (1 + np.exp(-6)))
    assert landmarks[1, 0, 0] - landmarks[0, 0, 0] == pytest.approx(20, abs=1e-3)


def test_more_faces_than_a_batch_holds_are_all_measured(make_face: MakeFace) -> None:
    zoo = FakeZoo(mesh_answer)
    picture = Picture.from_rgb(np.zeros((128, 128, 3), np.uint8))
    landmarks, _ = FaceLandmarker(zoo).locate_faces([(picture, make_face())] * 20, passes=1)
    assert len(landmarks) == 20
    assert sum(len(feed) for feed in zoo.only.feeds) == 20
    assert len(zoo.only.feeds) == 2


@pytest.mark.parametrize("roll_rad", [0.0, 0.5, -2.8])
def test_a_region_puts_its_middle_and_corner_into_the_crop(roll_rad: float) -> None:
    region = CropRegion((100.0, 50.0), 96.0, roll_rad)
    corner = np.array([-48, -48]) @ np.array(
        [[np.cos(roll_rad), np.sin(roll_rad)], [-np.sin(roll_rad), np.cos(roll_rad)]]
    ) + np.array([100, 50])
    points = np.array([[100, 50], corner], np.float32)
    assert transform_points(points, region.affine) == pytest.approx(
        np.array([[96, 96], [0, 0]]), abs=1e-3
    )


def test_between_two_regions_the_turn_takes_the_shorter_way() -> None:
    a, b = CropRegion((0.0, 0.0), 50.0, 3.0), CropRegion((10.0, 20.0), 200.0, -3.0)
    middle = a.toward(b, 0.5)
    assert middle.center_xy == (5.0, 10.0)
    assert middle.side_px == pytest.approx(100)
    assert abs(np.cos(middle.roll_rad) + 1) < 1e-6
    assert a.toward(b, 0.0) == a


@pytest.mark.parametrize("roll_rad", [0.0, 0.7, 3.0])
def test_the_region_of_a_measured_face_levels_its_eyes(
    make_landmarks: MakeLandmarks, roll_rad: float
) -> None:
    landmarks = make_landmarks(cx=200, cy=300, size=100, roll_rad=roll_rad)
    region = region_from_landmarks(landmarks)
    crop = transform_points(landmarks, region.affine)
    assert region.side_px == pytest.approx(150, rel=0.01)
    assert crop[33, 1] == pytest.approx(crop[263, 1], abs=0.5)
    assert crop[33, 0] < crop[263, 0]
    assert bbox_from_landmarks(crop)[1::2].tolist() == pytest.approx([32, 160], abs=1)


def test_key_points_stand_in_their_order(make_landmarks: MakeLandmarks) -> None:
    left_eye, right_eye, nose, left_mouth, right_mouth = kps_from_landmarks(make_landmarks())
    assert left_eye[0] < nose[0] < right_eye[0]
    assert left_mouth[0] < nose[0] < right_mouth[0]
    assert left_eye[1] < nose[1] < left_mouth[1]


def test_many_faces_have_many_boxes(make_landmarks: MakeLandmarks) -> None:
    faces = np.stack([make_landmarks(cx=cx) for cx in (50, 90)])
    assert bbox_from_landmarks(faces).shape == (2, 4)
    assert kps_from_landmarks(faces).shape == (2, 5, 2)


def measured(zoo: ModelZoo, image: RgbImage, *, passes: int = 2) -> tuple[FloatArray, float]:
    picture = Picture.from_rgb(np.ascontiguousarray(image))
    face = FaceDetector(zoo).detect([picture])[0][0]
    landmarks, presence = FaceLandmarker(zoo).locate_faces([(picture, face)], passes=passes)
    return landmarks[0], float(presence[0])


def apart(a: FloatArray, b: FloatArray) -> float:
    """Mean distance in sizes of the face."""
    return float(np.linalg.norm(a[:, :2] - b[:, :2], axis=1).mean()) / face_size_px(b)


@pytest.mark.weights
@pytest.mark.parametrize("degrees", [-40, -15, 25])
def test_a_turned_face_has_turned_landmarks(
    zoo: ModelZoo, astronaut: RgbImage, degrees: float
) -> None:
    turn = np.asarray(cv2.getRotationMatrix2D((226, 117), degrees, 1.0), np.float32)
    turned = np.asarray(cv2.warpAffine(astronaut, turn, (512, 512)), np.uint8)
    upright, _ = measured(zoo, astronaut)
    landmarks, presence = measured(zoo, turned)
    assert presence > 0.9
    assert apart(landmarks, transform_points(upright, turn)) < 0.02


@pytest.mark.weights
def test_an_enlarged_face_has_the_same_landmarks(zoo: ModelZoo, astronaut: RgbImage) -> None:
    large = np.asarray(cv2.resize(astronaut, None, fx=6, fy=6, interpolation=cv2.INTER_CUBIC))
    small, _ = measured(zoo, astronaut)
    landmarks, presence = measured(zoo, large)
    assert presence > 0.9
    assert apart(landmarks / 6, small) < 0.015


@pytest.mark.weights
def test_a_face_cut_by_the_border_is_measured(zoo: ModelZoo, astronaut: RgbImage) -> None:
    whole, _ = measured(zoo, astronaut)
    landmarks, presence = measured(zoo, astronaut[:, 205:])
    assert presence > 0.5
    right = whole[:, 0] > 230
    assert apart(landmarks[right] + np.array([205, 0, 0], np.float32), whole[right]) < 0.05


@pytest.mark.weights
def test_a_wall_is_no_face(zoo: ModelZoo, make_face: MakeFace) -> None:
    wall = Picture.from_rgb(np.full((128, 128, 3), 90, np.uint8))
    _, presence = FaceLandmarker(zoo).locate_faces([(wall, make_face())])
    assert presence[0] < 0.1


@pytest.mark.weights
def test_a_batch_measures_what_single_faces_measure(
    zoo: ModelZoo, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    landmarker = FaceLandmarker(zoo)
    items: list[Any] = []
    for image in (astronaut, grace_hopper):
        picture = Picture.from_rgb(image)
        face = FaceDetector(zoo).detect([picture])[0][0]
        items.append((picture, region_from_kps(face.bbox_xyxy, face.kps)))
    together, _ = landmarker.locate(items)
    for item, landmarks in zip(items, together, strict=True):
        alone, _ = landmarker.locate([item])
        assert np.allclose(landmarks, alone[0], atol=0.05)

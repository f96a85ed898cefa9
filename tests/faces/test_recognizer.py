import cv2
import numpy as np
import pytest

from app.core.geometry import FloatArray, similarity, transform_points
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.faces.detector import FaceDetector
from app.faces.recognizer import SAME_PERSON_COSINE, FaceRecognizer
from app.inference.spec import ModelZoo
from tests.conftest import MakeFace
from tests.faces.fakes import FakeZoo


def counting_up(feed: FloatArray) -> dict[str, FloatArray]:
    return {"fc1": np.tile(np.arange(128, dtype=np.float32), (len(feed), 1)) + 1}


def test_nobody_needs_no_network() -> None:
    zoo = FakeZoo(counting_up)
    assert FaceRecognizer(zoo).embed([]).shape == (0, 128)
    assert zoo.only.feeds == []


def test_faces_of_many_pictures_go_through_in_one_call_and_come_out_at_unit_length(
    make_face: MakeFace,
) -> None:
    zoo = FakeZoo(counting_up)
    picture = Picture.from_rgb(np.full((128, 128, 3), (10, 20, 30), np.uint8))
    embeddings = FaceRecognizer(zoo).embed([(picture, make_face()), (picture, make_face(cx=40))])
    (feed,) = zoo.only.feeds
    assert feed.shape == (2, 3, 112, 112)
    assert feed[0, :, 50, 50].tolist() == [10, 20, 30]
    assert np.linalg.norm(embeddings, axis=1) == pytest.approx([1, 1])


def found(zoo: ModelZoo, image: RgbImage) -> tuple[Picture, Face]:
    picture = Picture.from_rgb(image)
    return picture, FaceDetector(zoo).detect([picture])[0][0]


@pytest.mark.weights
def test_one_person_is_known_again_and_another_is_not(
    zoo: ModelZoo, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    dim_mirror = (astronaut[:, ::-1] * 0.6).astype(np.uint8)
    items = [found(zoo, image) for image in (astronaut, dim_mirror, grace_hopper)]
    first, again, other = FaceRecognizer(zoo).embed(items)
    assert first @ again > 0.7
    assert first @ other < SAME_PERSON_COSINE


@pytest.mark.weights
def test_turn_and_size_of_the_picture_hardly_matter(zoo: ModelZoo, astronaut: RgbImage) -> None:
    picture, face = found(zoo, astronaut)
    square = np.array([[0, 0], [511, 0], [0, 511]], np.float32)
    turn = similarity(square, np.array([[700, 0], [700, 700], [0, 0]], np.float32))
    turned = Picture.from_rgb(np.asarray(cv2.warpAffine(astronaut, turn, (701, 701)), np.uint8))
    turned_face = Face(
        bbox_xyxy=face.bbox_xyxy, kps=transform_points(face.kps, turn), det_score=face.det_score
    )
    upright, rolled = FaceRecognizer(zoo).embed([(picture, face), (turned, turned_face)])
    assert upright @ rolled > 0.97

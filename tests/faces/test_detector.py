from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import bbox_iou
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.faces.detector import (
    STILL_SIDES_PX,
    FaceDetector,
    Proposals,
    in_reading_order,
    network_input,
    strongest,
)
from app.inference.spec import ModelZoo
from tests.conftest import MakeFace
from tests.faces.fakes import FakeZoo, GridFinds, yunet_answer


def blank(w: int, h: int) -> Picture:
    return Picture.from_rgb(np.zeros((h, w, 3), np.uint8))


def finding(*finds: tuple[int, int, int, float]) -> FakeZoo:
    return FakeZoo(lambda feed: yunet_answer(feed, lambda _: finds))


def test_no_pictures_need_no_network() -> None:
    zoo = finding()
    assert FaceDetector(zoo).detect([]) == []
    assert zoo.only.feeds == []


def test_a_cell_becomes_a_face_in_picture_pixels() -> None:
    detector = FaceDetector(finding((16, 4, 2, 0.9)), sides_px=(320,))
    ((face,),) = detector.detect([blank(640, 320)])
    # The middle of cell (4, 2) at stride 16 is (72, 40); three cells wide; the thumbnail is half the picture.
    assert face.bbox_xyxy.tolist() == pytest.approx([96, 32, 192, 128], abs=1e-3)
    assert face.kps[0].tolist() == pytest.approx([(4 - 1) * 32, (2 - 7 / 9) * 32], abs=1e-3)
    assert face.det_score == pytest.approx(0.9)


@pytest.mark.parametrize(("score", "count"), [(0.59, 0), (0.61, 1)])
def test_weak_finds_are_dropped(score: float, count: int) -> None:
    (faces,) = FaceDetector(finding((8, 3, 3, score))).detect([blank(64, 64)])
    assert len(faces) == count


def test_the_stronger_of_two_overlapping_finds_is_kept() -> None:
    finds: GridFinds = ((8, 3, 3, 0.7), (8, 4, 3, 0.8), (8, 12, 3, 0.65))
    (faces,) = FaceDetector(finding(*finds)).detect([blank(128, 64)])
    assert [round(face.det_score, 2) for face in faces] == [0.8, 0.65]


def test_pictures_of_one_size_share_network_calls_and_keep_their_faces() -> None:
    def by_picture(index: int) -> GridFinds:
        return ((8, 2 + index, 3, 0.9),)

    zoo = FakeZoo(lambda feed: yunet_answer(feed, by_picture))
    found = FaceDetector(zoo).detect([blank(64, 64), blank(96, 64), blank(64, 64)])
    assert [feed.shape for feed in zoo.only.feeds] == [(2, 3, 64, 64), (1, 3, 64, 96)]
    assert [float(faces[0].bbox_xyxy[0]) for faces in found] == pytest.approx([8, 8, 16])


def test_a_picture_smaller_than_two_sides_is_looked_at_once() -> None:
    zoo = finding()
    FaceDetector(zoo, sides_px=(320, 640, 1920)).detect([blank(300, 200)])
    assert [feed.shape for feed in zoo.only.feeds] == [(1, 3, 224, 320)]


def test_what_a_close_look_takes_for_a_large_face_is_not_believed() -> None:
    def find_large(feed: NDArray[np.generic]) -> dict[str, NDArray[np.float32]]:
        is_close = feed.shape[3] > 320
        return yunet_answer(feed, lambda _: ((32, 6, 6, 0.9),) if is_close else (), side_cells=13.0)

    (faces,) = FaceDetector(FakeZoo(find_large), sides_px=(320, 1280)).detect([blank(1280, 960)])
    assert faces == ()


def test_the_network_sees_bgr_with_zeros_at_the_right_and_bottom() -> None:
    image = np.full((33, 40, 3), (1, 2, 3), np.uint8)
    feed = network_input([image])
    assert feed.shape == (1, 3, 64, 64)
    assert feed[0, :, 0, 0].tolist() == [3, 2, 1]
    assert feed[0, :, 33:].max() == feed[0, :, :, 40:].max() == 0


@pytest.mark.parametrize(
    ("centers", "expected"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param([(90, 10), (10, 90)], [1, 0], id="left before right, however high"),
        pytest.param([(50.3, 90), (50.1, 10)], [1, 0], id="ties top to bottom"),
    ],
)
def test_reading_order(
    make_face: MakeFace, centers: Sequence[tuple[float, float]], expected: list[int]
) -> None:
    faces = [make_face(cx=cx, cy=cy) for cx, cy in centers]
    assert [faces.index(face) for face in in_reading_order(faces)] == expected


def test_nothing_is_strongest_of_nothing() -> None:
    none = Proposals(np.zeros((0, 4)), np.zeros((0, 5, 2)), np.zeros(0))  # type: ignore[arg-type]
    assert len(strongest(none, 0.3)) == 0


def boxes(faces: Sequence[Face]) -> NDArray[np.float32]:
    return np.array([face.bbox_xyxy for face in faces], np.float32).reshape(-1, 4)


@pytest.mark.weights
def test_the_astronaut_is_found_alone(zoo: ModelZoo, astronaut: RgbImage) -> None:
    (faces,) = FaceDetector(zoo).detect([Picture.from_rgb(astronaut)])
    assert len(faces) == 1
    assert bbox_iou(boxes(faces), np.array([[181, 56, 271, 178]], np.float32))[0, 0] > 0.8
    left_eye, right_eye, nose, *_ = faces[0].kps
    assert left_eye[0] < nose[0] < right_eye[0]


@pytest.mark.weights
@pytest.mark.parametrize("sides_px", [(640,), STILL_SIDES_PX], ids=["video", "still"])
def test_six_people_are_found_left_to_right(
    zoo: ModelZoo, six_people: RgbImage, sides_px: tuple[int, ...]
) -> None:
    (faces,) = FaceDetector(zoo, sides_px=sides_px).detect([Picture.from_rgb(six_people)])
    expected = [
        [58, 263, 169, 396],
        [269, 147, 371, 265],
        [465, 265, 573, 416],
        [746, 339, 846, 481],
        [905, 54, 1013, 204],
        [1131, 271, 1226, 399],
    ]
    assert len(faces) == 6
    assert np.diag(bbox_iou(boxes(faces), np.array(expected, np.float32))).min() > 0.7


@pytest.mark.weights
def test_a_batch_finds_what_single_pictures_find(
    zoo: ModelZoo, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    mirrored = np.ascontiguousarray(astronaut[:, ::-1])
    pictures = [Picture.from_rgb(image) for image in (astronaut, grace_hopper, mirrored)]
    detector = FaceDetector(zoo)
    together = detector.detect(pictures)
    for picture, faces in zip(pictures, together, strict=True):
        (alone,) = detector.detect([picture])
        assert np.allclose(boxes(faces), boxes(alone), atol=0.01)


@pytest.mark.weights
def test_a_face_that_fills_the_still_is_found_once(zoo: ModelZoo, astronaut: RgbImage) -> None:
    close = np.repeat(np.repeat(astronaut[62:172, 184:268], 12, axis=0), 12, axis=1)
    (faces,) = FaceDetector(zoo, sides_px=STILL_SIDES_PX).detect([Picture.from_rgb(close)])
    assert len(faces) == 1


@pytest.mark.weights
def test_an_empty_wall_shows_nobody(zoo: ModelZoo) -> None:
    assert FaceDetector(zoo, sides_px=STILL_SIDES_PX).detect([blank(800, 600)]) == [()]

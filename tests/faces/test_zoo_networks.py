"""Networks of the public zoo are read by their published contracts."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from app.core.picture import Picture
from app.core.types import Face
from app.faces.zoo_detector import ZooDetector, decode_scrfd, decode_yoloface
from app.faces.zoo_landmarks import FanLandmarker, crop_affine, decode_fan
from app.faces.zoo_recognizer import ArcFaceRecognizer
from app.inference.manifest import Manifest
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session
from tests.faces.zoo_manifest import MANIFEST

Run = Callable[[Feeds], Outputs]


class Canned:
    """A zoo whose one network answers by a function, and notes what it was fed."""

    def __init__(self, run: Run, manifest: Manifest = MANIFEST) -> None:
        self._run, self._manifest = run, manifest
        self.fed: list[Feeds] = []

    def spec(self, model_id: ModelId) -> ModelSpec:
        return self._manifest.get(model_id)

    def session(self, model_id: ModelId) -> Session:
        return self  # type: ignore[return-value]

    def run(self, feeds: Feeds) -> Outputs:
        self.fed.append(feeds)
        return self._run(feeds)


def yolo_table(faces: Mapping[int, tuple[float, ...]]) -> np.ndarray:
    table = np.zeros((20, 8400), np.float32)
    for column, (cx, cy, w, h, score) in faces.items():
        table[:5, column] = cx, cy, w, h, score
        table[5:, column] = np.ravel([(cx + k, cy - k, 0.9) for k in range(5)])
    return table


def test_yoloface_gives_boxes_points_and_scores_by_picture() -> None:
    tables = np.stack(
        [yolo_table({}), yolo_table({5: (100, 80, 40, 60, 0.9), 9: (1, 1, 1, 1, 0.3)})]
    )
    none, one = decode_yoloface({"output": tables}, 0.5)
    assert len(none) == 0
    assert one.boxes.tolist() == [[80, 50, 120, 110]]
    assert one.kps[0].tolist() == [[100 + k, 80 - k] for k in range(5)]
    assert np.allclose(one.scores, 0.9)


def test_scrfd_gives_boxes_and_points_around_its_anchors() -> None:
    side, outputs = 64, {}
    for kind, width in (("score", 1), ("bbox", 4), ("kps", 10)):
        for stride in (8, 16, 32):
            outputs[f"{kind}_{stride}"] = np.zeros(
                (2, 2 * (side // stride) ** 2, width), np.float32
            )
    # The second anchor of the cell in line 1, column 2 of the grid of 16: its corner is (32, 16).
    row = 2 * (1 * 4 + 2) + 1
    outputs["score_16"][1, row] = 0.8
    outputs["bbox_16"][1, row] = 1, 0.5, 2, 1
    outputs["kps_16"][1, row] = np.arange(10) / 10
    none, one = decode_scrfd(outputs, 0.5)
    assert len(none) == 0
    assert one.boxes.tolist() == [[16, 8, 64, 32]]
    assert np.allclose(one.kps[0], np.float32([32, 16]) + np.arange(10).reshape(5, 2) * 1.6)


@pytest.mark.parametrize(
    ("size_wh", "scale"),
    [
        pytest.param((1280, 720), 2.0, id="shrunk"),
        pytest.param((320, 240), 1.0, id="never enlarged"),
    ],
)
def test_finds_are_in_pixels_of_the_picture(size_wh: tuple[int, int], scale: float) -> None:
    table = yolo_table({0: (100, 80, 40, 60, 0.9), 1: (101, 80, 40, 60, 0.8)})
    zoo = Canned(lambda feeds: {"output": np.repeat(table[None], len(feeds["input"]), axis=0)})
    detector = ZooDetector(zoo, ModelId("yoloface-8n"), decode_yoloface)
    w, h = size_wh
    picture = Picture.from_rgb(np.full((h, w, 3), (10, 20, 30), np.uint8))
    found = detector.detect([picture] * 10)
    assert len(found) == 10
    (face,) = found[9]
    assert np.allclose(face.bbox_xyxy, np.float32([80, 50, 120, 110]) * scale, atol=0.01)
    # BGR of 0 to 1 in the top left corner, zeros beyond; the two batches are of 8 and 2.
    assert [feeds["input"].shape for feeds in zoo.fed] == [(8, 3, 640, 640), (2, 3, 640, 640)]
    assert np.allclose(zoo.fed[0]["input"][0, :, 5, 5] * 255, (30, 20, 10), atol=1.5)
    assert zoo.fed[0]["input"][0, :, 639, 639].tolist() == [0, 0, 0]


def test_no_pictures_give_no_finds() -> None:
    zoo = Canned(lambda feeds: {})
    assert ZooDetector(zoo, ModelId("yoloface-8n"), decode_yoloface).detect([]) == []


def face(x0: float, y0: float, x1: float, y1: float) -> Face:
    low, size = np.float32([x0, y0]), np.float32([x1 - x0, y1 - y0])
    kps = low + np.float32([[0.3, 0.4], [0.7, 0.4], [0.5, 0.6], [0.35, 0.8], [0.65, 0.8]]) * size
    return Face(bbox_xyxy=np.float32([x0, y0, x1, y1]), kps=kps, det_score=0.9)


def test_a_face_fills_the_landmarkers_crop_as_in_training() -> None:
    affine = crop_affine(np.float32([100, 200, 200, 330]))
    corners = affine[:, :2] @ np.float32([[100, 200], [200, 330]]).T + affine[:, 2:]
    assert np.allclose(corners[1], [128 - 97.5, 128 + 97.5])
    assert np.allclose(corners.mean(1), 128)


def test_landmarks_come_back_in_pixels_of_the_picture() -> None:
    grid = np.full((2, 68, 3), 32, np.float32)
    heat = np.full((2, 68, 64, 64), 0.45, np.float32)
    zoo = Canned(lambda feeds: {"points": grid, "heat": heat})
    picture = Picture.from_rgb(np.zeros((400, 400, 3), np.uint8))
    faces = [face(100, 100, 200, 220), face(10, 10, 40, 40)]
    points, scores = FanLandmarker(zoo, ModelId("2dfan4")).locate([(picture, f) for f in faces])
    assert np.allclose(points[0], (150, 160), atol=1e-3)
    assert np.allclose(points[1], (25, 25), atol=1e-3)
    assert np.allclose(scores, 0.5)


def test_a_certain_peak_scores_one() -> None:
    heat = np.zeros((1, 68, 64, 64), np.float32)
    heat[:, :, 3, 4] = 0.95
    assert decode_fan({"p": np.zeros((1, 68, 3), np.float32), "h": heat})[1].tolist() == [1.0]


def test_a_recognizer_sees_aligned_crops_and_gives_raw_vectors() -> None:
    zoo = Canned(lambda feeds: {"output": np.full((len(feeds["input"]), 512), 3, np.float32)})
    picture = Picture.from_rgb(np.full((300, 300, 3), 255, np.uint8))
    recognizer = ArcFaceRecognizer(zoo, ModelId("arcface-w600k-r50"))
    vectors = recognizer.embed([(picture, face(50, 50, 150, 170))] * 17)
    assert (vectors.shape, float(vectors[0, 0])) == ((17, 512), 3.0)
    assert [feeds["input"].shape for feeds in zoo.fed] == [(16, 3, 112, 112), (1, 3, 112, 112)]
    assert np.allclose(zoo.fed[0]["input"], 1.0)
    assert recognizer.embed([]).shape[0] == 0

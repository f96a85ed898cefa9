"""Networks of the public zoo are read by their published contracts."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from app.core.mesh_topology import load_topology
from app.core.picture import Picture
from app.core.types import Face, Identity, IdentityId, SourceView
from app.faces.landmarks import CropRegion
from app.faces.mesh_of_68 import MESH_INDICES, MeshFit
from app.faces.zoo_detector import ZooDetector, decode_scrfd, decode_yoloface
from app.faces.zoo_landmarks import FanLandmarker, decode_fan
from app.faces.zoo_recognizer import ArcFaceRecognizer, described
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
    """The network was trained with faces whose box is 195 of 256 pixels large; the usual crop has it at 128 of 192."""
    seen: list[np.ndarray] = []

    def answer(feeds: Feeds) -> Outputs:
        seen.append(np.asarray(feeds["input"]))
        return fan_outputs(len(feeds["input"]))

    crops = np.zeros((1, 192, 192, 3), np.uint8)
    crops[0, 32:160, 32:160] = 255
    FanLandmarker(Canned(answer), ModelId("2dfan4")).in_crops(crops)
    white = seen[0][0, 0] > 0.5
    assert abs(white.any(0).sum() - 195) <= 2
    assert abs(np.flatnonzero(white.any(0)).mean() - 127.5) <= 1


def fan_outputs(rows: int, heat: float = 0.45) -> Outputs:
    """A small upright face in the middle of the grid of 64."""
    face = load_topology().vertices[list(MESH_INDICES), :2] * np.float32([1.2, -1.2]) + 32
    grid = np.concatenate([face, np.ones((68, 1))], axis=1).astype(np.float32)
    maps = np.full((rows, 68, 64, 64), heat, np.float32)
    return {"points": np.repeat(grid[None], rows, axis=0), "heat": maps}


def test_landmarks_come_back_as_a_mesh_in_pixels_of_the_picture() -> None:
    zoo = Canned(lambda feeds: fan_outputs(len(feeds["input"])))
    picture = Picture.from_rgb(np.zeros((400, 400, 3), np.uint8))
    regions = [CropRegion((150, 160), 192, 0.0), CropRegion((25, 25), 96, 0.0)]
    landmarks, scores = FanLandmarker(zoo, ModelId("2dfan4")).locate(
        [(picture, region) for region in regions]
    )
    assert landmarks.shape == (2, 478, 3)
    # One pixel of the grid is 4 of the network's, and those are 128 / 195 of the crop's.
    scale = 1.2 * 4 * 128 / 195
    wanted = load_topology().vertices[:, :2] * np.float32([scale, -scale]) + np.float32([150, 160])
    assert np.abs(landmarks[0, :468, :2] - wanted).max() < 0.7
    assert np.abs(landmarks[1, :468, :2] - (wanted - [150, 160]) / 2 - 25).max() < 0.4
    assert np.allclose(scores, 0.5)


def test_a_certain_peak_scores_one() -> None:
    heat = np.zeros((1, 68, 64, 64), np.float32)
    heat[:, :, 3, 4] = 0.95
    assert decode_fan({"p": np.zeros((1, 68, 3), np.float32), "h": heat})[1].tolist() == [1.0]


def test_a_recognizer_sees_aligned_crops_and_gives_raw_vectors() -> None:
    zoo = Canned(lambda feeds: {"output": np.full((len(feeds["input"]), 512), 3, np.float32)})
    picture = Picture.from_rgb(np.full((300, 300, 3), 255, np.uint8))
    recognizer = ArcFaceRecognizer(zoo, ModelId("arcface-w600k-r50"))
    items = [(picture, face(50, 50, 150, 170))] * 17
    vectors = recognizer.vectors(items)
    assert (vectors.shape, float(vectors[0, 0])) == ((17, 512), 3.0)
    assert [feeds["input"].shape for feeds in zoo.fed] == [(16, 3, 112, 112), (1, 3, 112, 112)]
    assert np.allclose(zoo.fed[0]["input"], 1.0)
    assert np.allclose(np.linalg.norm(recognizer.embed(items), axis=1), 1)
    assert np.allclose(recognizer.strengths(items), 3 * 512**0.5 * 0.6)
    assert recognizer.vectors([]).shape[0] == 0


def view(shade: int) -> SourceView:
    mesh = MeshFit().mesh(np.asarray(fan_outputs(1)["points"])[..., :2] * 4)[0]
    unit = np.eye(1, 128, dtype=np.float32)[0]
    crop = np.full((256, 256, 3), shade, np.uint8)
    return SourceView(crop=crop, landmarks=mesh, normed_embedding=unit)


def test_an_identity_is_described_once_by_what_its_views_show() -> None:
    """The network says how bright it is and how bright it is not; the mean is that of the directions."""

    def answer(feeds: Feeds) -> Outputs:
        bright = np.asarray(feeds["input"]).mean((1, 2, 3))
        return {"output": np.stack([bright + 1, 1 - bright], axis=1).astype(np.float32) * 9}

    zoo = Canned(answer)
    recognizer = ArcFaceRecognizer(zoo, ModelId("arcface-w600k-r50"))
    views = (view(0), view(255))
    source = Identity(
        id=IdentityId("a"), label="a", views=views, normed_embedding=views[0].normed_embedding
    )
    with pytest.raises(ValueError, match="arcface"):
        source.embedding_by("arcface-w600k-r50")
    known = described(source, recognizer)
    assert np.allclose(known.embedding_by("arcface-w600k-r50"), 0.5**0.5, atol=1e-3)
    assert np.allclose(known.views[0].embeddings["arcface-w600k-r50"], (0, 18), atol=0.2)
    assert described(known, recognizer) is known
    assert len(zoo.fed) == 1


def test_scores_are_put_on_the_embedded_detectors_scale() -> None:
    scores = (0.5, 0.6, 0.7, 0.9)
    table = yolo_table({k: (80 * k + 50, 80, 40, 60, s) for k, s in enumerate(scores)})
    zoo = Canned(lambda feeds: {"output": table[None]})
    picture = Picture.from_rgb(np.zeros((360, 640, 3), np.uint8))
    (faces,) = ZooDetector(zoo, ModelId("yoloface-8n")).detect([picture])
    assert np.allclose([each.det_score for each in faces], (0.6, 0.75, 0.9, 0.9667), atol=1e-3)


@pytest.mark.parametrize("yaw_deg", [-35, 0, 20], ids=["left", "ahead", "right"])
@pytest.mark.parametrize("roll_deg", [0, 70], ids=["upright", "lying"])
def test_the_mesh_of_68_points_is_the_face_that_they_are_of(yaw_deg: int, roll_deg: int) -> None:
    yaw, roll = np.deg2rad(yaw_deg), np.deg2rad(roll_deg)
    turn = np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])
    flat = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    # The canonical face looks at us with y up and z towards us; pictures have y down and z away.
    placed = load_topology().vertices @ turn.T * [9, -9, -9] @ flat.T + [200, 150, 0]
    mesh = MeshFit().mesh(placed[None, list(MESH_INDICES), :2].astype(np.float32))[0]
    assert np.abs(mesh[:468] - placed).max() < 0.05
    for iris, eye in ((slice(468, 473), (33, 133)), (slice(473, 478), (263, 362))):
        corners = mesh[list(eye), :2]
        assert np.linalg.norm(mesh[iris, :2].mean(0) - corners.mean(0)) < 0.15 * np.ptp(corners)


def test_the_mesh_follows_a_mouth_that_opens() -> None:
    vertices = load_topology().vertices[list(MESH_INDICES), :2] * np.float32([9, -9])
    opened = vertices.copy()
    opened[[65, 66, 67, 55, 56, 57, 58, 59, 7, 8, 9]] += (0, 15)
    before, after = MeshFit().mesh(np.stack([vertices, opened]).astype(np.float32))
    moved = after[:, 1] - before[:, 1]
    assert moved[14] > 12 and moved[152] > 12
    assert abs(moved[13]) < 4 and abs(moved[10]) < 3

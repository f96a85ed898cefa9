"""478 points of a face: where its square lies, what the network says of it, and what follows from the points.

The network is MediaPipe's attention mesh (Grishchenko et al. 2020, "Attention Mesh: High-fidelity Face Mesh Prediction
in Real-time"). Indices are those of its canonical face.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, sin

import numpy as np

from app.core.geometry import FloatArray, invert_affine, roll_rad, transform_points
from app.core.mesh_topology import (
    LEFT_EYE_REFINED,
    LIPS_REFINED,
    MESH_POINTS,
    RIGHT_EYE_REFINED,
)
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.faces.sampling import sample_square
from app.inference.feeds import picture_feed
from app.inference.soundness import require_sound
from app.inference.spec import InputContract, ModelId, ModelZoo, Outputs

MODEL = ModelId("face-mesh-attention")
CROP_PX = 192

_INPUT = InputContract(name="input", layout="nchw", color="rgb", std=(255.0, 255.0, 255.0))
SIDE_PER_FACE = 1.5
"""Side of a crop, of the face's longer side."""

_BATCH = 16
_EYE_CORNERS = (33, 263)
# The five key points as groups of mesh points: an eye's middle does not move with the gaze as an iris does.
_LEFT_CHEEK, _RIGHT_CHEEK = 234, 454
_KPS_GROUPS = np.array(
    [
        [33, 133, 159, 145],
        [263, 362, 386, 374],
        [1, 1, 1, 1],
        [61, 61, 61, 61],
        [291, 291, 291, 291],
    ]
)


@dataclass(frozen=True, slots=True)
class CropRegion:
    """The turned square of a picture that the network sees.

    Attributes:
        center_xy: Middle, picture pixels.
        side_px: Side, picture pixels.
        roll_rad: Turn of the face, clockwise; the eyes are level in the crop.
    """

    center_xy: tuple[float, float]
    side_px: float
    roll_rad: float

    @property
    def affine(self) -> FloatArray:
        """`(2, 3)` float32 from picture pixels to the network's crop."""
        scale, half, (x, y) = CROP_PX / self.side_px, CROP_PX / 2, self.center_xy
        cosine, sine = scale * cos(self.roll_rad), scale * sin(self.roll_rad)
        rows = (
            [cosine, sine, half - cosine * x - sine * y],
            [-sine, cosine, half + sine * x - cosine * y],
        )
        return np.array(rows, np.float32)

    def toward(self, other: "CropRegion", share: float) -> "CropRegion":
        """A region between this one (share 0) and another (share 1), turning the shorter way; beyond 1 it goes on."""
        turn = (other.roll_rad - self.roll_rad + np.pi) % (2 * np.pi) - np.pi
        x, y = (a + (b - a) * share for a, b in zip(self.center_xy, other.center_xy, strict=True))
        side = self.side_px * (other.side_px / self.side_px) ** share
        return CropRegion((x, y), side, self.roll_rad + turn * share)


Located = tuple[FloatArray, FloatArray]
"""Landmarks `(n, 478, 3)` in picture pixels, and presence `(n,)`: how surely each crop holds a face, 0 to 1."""


class FaceLandmarker:
    """Measures many faces of many pictures in one network call.

    Args:
        zoo: Has the model `face-mesh-attention`.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo) -> None:
        self._session = zoo.session(MODEL)

    def locate(self, items: Sequence[tuple[Picture, CropRegion]]) -> Located:
        """Measure the face in each region."""
        crops = self.cut(items)
        return self.measure(crops, [region for _, region in items])

    def locate_faces(self, items: Sequence[tuple[Picture, Face]], *, passes: int = 2) -> Located:
        """Measure freshly detected faces: first where the detector points, then where the measure before does."""
        pictures = [picture for picture, _ in items]
        regions = [region_from_kps(face.bbox_xyxy, face.kps) for _, face in items]
        for _ in range(passes - 1):
            landmarks, _ = self.locate(list(zip(pictures, regions, strict=True)))
            regions = [region_from_landmarks(points) for points in landmarks]
        return self.locate(list(zip(pictures, regions, strict=True)))

    def cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        """The crops alone, `(n, 192, 192, 3)` uint8 RGB."""
        crops = np.empty((len(items), CROP_PX, CROP_PX, 3), np.uint8)
        for crop, (picture, region) in zip(crops, items, strict=True):
            crop[...] = sample_square(picture, region.affine, CROP_PX)
        return crops

    def measure(self, crops: RgbImage, regions: Sequence[CropRegion]) -> Located:
        """Measure crops that `cut` made of these regions."""
        landmarks = np.empty((len(crops), MESH_POINTS + 10, 3), np.float32)
        presence = np.empty(len(crops), np.float32)
        for start in range(0, len(crops), _BATCH):
            part = slice(start, start + _BATCH)
            landmarks[part], presence[part] = self.in_crops(crops[part])
        for row, region in zip(landmarks, regions, strict=True):
            row[...] = transform_points(row, invert_affine(region.affine))
        return landmarks, presence

    def in_crops(self, crops: RgbImage) -> Located:
        """Measure one batch of crops; landmarks in crop pixels.

        Args:
            crops: `(n, 192, 192, 3)` uint8 RGB, the face upright and 128 pixels large in the middle.

        Raises:
            ModelError: The network gave no numbers.
        """
        outputs = self._session.run({_INPUT.name: picture_feed(crops, _INPUT)})
        presence = _sigmoid(np.asarray(outputs["presence"], np.float32)[:, 0])
        return require_sound(assemble(outputs), MODEL), presence


def assemble(outputs: Outputs) -> FloatArray:
    """Base mesh with the refined lips and eyes written over it, and the irises behind it.

    The refinements know no depth, so z stays that of the base mesh; an iris gets the mean z of its eye.

    Returns:
        `(n, 478, 3)` float32 in crop pixels.
    """
    named = {name: np.asarray(array, np.float32) for name, array in outputs.items()}
    mesh = named["mesh"].copy()
    irises = []
    for eye, iris, indices in (
        ("left_eye", "left_iris", LEFT_EYE_REFINED),
        ("right_eye", "right_iris", RIGHT_EYE_REFINED),
    ):
        mesh[:, indices, :2] = named[eye]
        depth = mesh[:, indices, 2:].mean(1, keepdims=True)
        irises.append(np.concatenate([named[iris], np.repeat(depth, 5, axis=1)], axis=2))
    mesh[:, LIPS_REFINED, :2] = named["lips"]
    return np.concatenate([mesh, *irises], axis=1)


def region_from_kps(bbox_xyxy: FloatArray, kps: FloatArray) -> CropRegion:
    """The region for a face that a detector found: 1.5 times its box, eyes level."""
    x0, y0, x1, y1 = bbox_xyxy.tolist()
    side = SIDE_PER_FACE * max(x1 - x0, y1 - y0, 1.0)
    return CropRegion(((x0 + x1) / 2, (y0 + y1) / 2), side, roll_rad(kps[0], kps[1]))


def region_from_landmarks(landmarks: FloatArray) -> CropRegion:
    """The region for a face that was measured: 1.5 times its box as seen with the eyes level."""
    roll = roll_rad(landmarks[_EYE_CORNERS[0]], landmarks[_EYE_CORNERS[1]])
    cosine, sine = np.cos(roll), np.sin(roll)
    level = np.array([[cosine, sine], [-sine, cosine]], np.float32)
    points = landmarks[:MESH_POINTS, :2] @ level.T
    low, high = points.min(0), points.max(0)
    x, y = ((low + high) / 2 @ level).tolist()
    side = SIDE_PER_FACE * max(float((high - low).max()), 1.0)
    return CropRegion((x, y), side, roll)


def kps_from_landmarks(landmarks: FloatArray) -> FloatArray:
    """The five key points of measured faces, `(..., 478, 3)` to `(..., 5, 2)`."""
    return np.asarray(landmarks[..., _KPS_GROUPS, :2].mean(-2), dtype=np.float32)


def bbox_from_landmarks(landmarks: FloatArray) -> FloatArray:
    """The box around measured faces, `(..., 478, 3)` to `(..., 4)`."""
    points = landmarks[..., :MESH_POINTS, :2]
    return np.concatenate([points.min(-2), points.max(-2)], axis=-1)


def face_from_landmarks(landmarks: FloatArray, det_score: float) -> Face:
    """A face whose box and key points follow from its landmarks."""
    return Face(
        bbox_xyxy=bbox_from_landmarks(landmarks),
        kps=kps_from_landmarks(landmarks),
        det_score=det_score,
        landmarks=landmarks,
    )


def face_size_px(landmarks: FloatArray) -> float:
    """The size of a measured face: the root of its box's area, which turning and nodding change less than its width."""
    x0, y0, x1, y1 = bbox_from_landmarks(landmarks).tolist()
    return float(np.sqrt(max((x1 - x0) * (y1 - y0), 1.0)))


def unrest(before: FloatArray, after: FloatArray) -> float:
    """How far points moved from one measure of a face to the next, in sizes of the face."""
    apart = np.linalg.norm(after[:, :2] - before[:, :2], axis=1).mean()
    return float(apart) / face_size_px(after)


def share_inside(landmarks: FloatArray, size_wh: tuple[int, int]) -> float:
    """How much of a measured face lies inside a picture, 0 to 1."""
    points = landmarks[:MESH_POINTS, :2]
    return float(((points >= 0) & (points < size_wh)).all(1).mean())


def yaw_deg(landmarks: FloatArray) -> float:
    """How far a face is turned to a side, degrees, 0 to 90; from the depth of the cheeks."""
    across = landmarks[_RIGHT_CHEEK] - landmarks[_LEFT_CHEEK]
    return float(np.rad2deg(np.arctan2(abs(across[2]), np.hypot(across[0], across[1]))))


def _sigmoid(logit: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -60, 60))), dtype=np.float32)

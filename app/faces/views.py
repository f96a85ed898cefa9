"""A view of a face: a small square around it that outlives the picture it was cut from."""

from dataclasses import dataclass, replace

import numpy as np

from app.core.geometry import FloatArray, transform_points
from app.core.mesh_topology import MESH_POINTS
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.faces.landmarks import region_from_landmarks
from app.faces.people import usefulness
from app.faces.sampling import sample_square

SIDE_PX = 256
_SIDE_PER_FACE = 1.8
# Mesh points: upper and lower lid or lip, then the corners.
_EYES = ((159, 145, 33, 133), (386, 374, 263, 362))
_MOUTH = (13, 14, 61, 291)
_OPEN_EYE = 0.3
_SMILE = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One face, cut out.

    Attributes:
        crop: `(s, s, 3)` uint8 RGB, s at most 256, the face's middle in its middle; empty when let go.
        face: In pixels of `crop`.
        usefulness: 0 to 1: how whole, frontal, large, sharp and composed the face is.
    """

    crop: RgbImage
    face: Face
    usefulness: float

    def without_picture(self) -> "View":
        """The same without its pixels."""
        return replace(self, crop=np.empty((0, 0, 3), np.uint8))

    def thumbnail(self) -> RgbImage:
        """The crop, turned by quarters so that the face stands nearly upright."""
        assert self.face.landmarks is not None
        roll = region_from_landmarks(self.face.landmarks).roll_rad
        return np.ascontiguousarray(np.rot90(self.crop, round(roll / (np.pi / 2))))


def view_of(picture: Picture, face: Face) -> View:
    """Cut a measured face out; beyond the picture its edge is repeated."""
    affine, side = _square(face)
    assert face.landmarks is not None
    moved = replace(
        face,
        bbox_xyxy=transform_points(face.bbox_xyxy.reshape(2, 2), affine).reshape(4),
        kps=transform_points(face.kps, affine),
        landmarks=transform_points(face.landmarks, affine),
    )
    useful = usefulness(picture, face) * composure(face.landmarks)
    return View(sample_square(picture, affine, side), moved, useful)


def composure(landmarks: FloatArray) -> float:
    """Open eyes and a closed mouth make the better card, and the surer likeness; 0.25 to 1."""
    openness = [_gap(landmarks, *eye) for eye in _EYES]
    eyes = min(1.0, float(np.mean(openness)) / _OPEN_EYE)
    mouth = 1.0 - min(1.0, max(0.0, _gap(landmarks, *_MOUTH) - _SMILE))
    return (0.5 + 0.5 * eyes) * (0.5 + 0.5 * mouth)


def _gap(landmarks: FloatArray, upper: int, lower: int, left: int, right: int) -> float:
    """Height over width of an eye or a mouth."""
    high = float(np.linalg.norm(landmarks[upper, :2] - landmarks[lower, :2]))
    return high / max(float(np.linalg.norm(landmarks[left, :2] - landmarks[right, :2])), 1e-6)


def _square(face: Face) -> tuple[FloatArray, int]:
    """The upright square around a face: from picture to crop pixels, and the crop's side."""
    assert face.landmarks is not None
    points = face.landmarks[:MESH_POINTS, :2]
    low, high = points.min(0), points.max(0)
    wanted = max(_SIDE_PER_FACE * float((high - low).max()), 8.0)
    side = min(SIDE_PX, round(wanted))
    scale = side / wanted
    shift = side / 2 - scale * (low + high) / 2
    affine = np.array([[scale, 0, shift[0]], [0, scale, shift[1]]], np.float32)
    return affine, side

"""What is known of every face before a picture is seen: the canonical mesh, and regions painted once on its texture.

Texture coordinates are the mesh's own flat layout, 0 to 1, x right and y down; its left and right halves are mirror images, so
that flipping a texture exchanges the halves of the face. Whatever follows the skin (what is plain skin, where hair may fall) is
painted here once and then travels with the mesh through the same map as the texture, at no cost of its own.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.mesh_topology import MeshTopology
from app.processors.mesh import regions
from app.processors.mesh.raster import (
    FloatArray,
    IntArray,
    dense_map,
    draw_triangles,
    facing,
    grown,
    triangle_maps,
)

REGION_SIDE_PX = 256
"""Side of the painted regions."""

_OVAL_RAMP_CM = (0.3, 2.5)
_LIPS_RAMP_CM = 2.0
_LIPS_SHARE = 0.5
_ABOVE_BROWS_CM = (0.35, 1.0)
_BESIDE_EYES_CM = (5.2, 5.9)
_SIDES_CM = (3.0, 4.0)
_ABOVE_MOUTH_CM = (0.0, 1.5)



@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FaceModel:
    """The canonical face.

    Attributes:
        canonical: `(468, 3)` float32 in centimeters, x right, y down, z away from the viewer.
        uv: `(468, 2)` float32, 0 to 1.
        triangles: `(898, 3)` int32, wound so that they look at the viewer.
        shape_weights: `(468,)` float32, 0 to 1: how far a point may follow the source's proportions.
        regions: `(256, 256, 2)` uint8 over the texture: plain skin, and where hair may fall.
    """

    canonical: FloatArray
    uv: FloatArray
    triangles: IntArray
    shape_weights: FloatArray
    regions: NDArray[np.uint8]


def build_face_model(topology: MeshTopology) -> FaceModel:
    """Derive the model from the mesh's table of figures."""
    canonical = (topology.vertices * [1, -1, -1]).astype(np.float32)
    uv = topology.uv.astype(np.float32)
    triangles = _wound(canonical, topology.triangles.astype(np.int32))
    return FaceModel(
        canonical=canonical,
        uv=uv,
        triangles=triangles,
        shape_weights=_shape_weights(canonical),
        regions=_painted_regions(canonical, uv, triangles),
    )


def texture_ids(model: FaceModel, side_px: int) -> IntArray:
    """The mesh drawn in its flat layout, `(side_px, side_px)` triangle numbers."""
    order = np.arange(len(model.triangles), dtype=np.int32)
    return draw_triangles(
        texture_points(model.uv, side_px), model.triangles, (side_px, side_px), order
    )


def texture_points(uv: FloatArray, side_px: int) -> FloatArray:
    """Pixels of a texture: `uv` 0 and 1 are the outer edges of its first and last pixel."""
    return np.asarray(uv * side_px - 0.5, dtype=np.float32)


def painted(contours: tuple[tuple[int, ...], ...], points: FloatArray, side_px: int) -> FloatArray:
    """Contours of mesh points filled over a square, `(side_px, side_px)` float32, 0 or 1, smooth-edged."""
    canvas = np.zeros((side_px, side_px), np.uint8)
    for contour in contours:
        fill_inplace(canvas, points[list(contour), :2])
    return canvas.astype(np.float32) / 255


def fill_inplace(canvas: NDArray[np.uint8], polygon: FloatArray) -> None:
    """Fill a polygon with 255, its edge antialiased."""
    cv2.fillPoly(canvas, [np.rint(polygon * 16).astype(np.int32)], (255,), cv2.LINE_AA, 4)


def _wound(canonical: FloatArray, triangles: IntArray) -> IntArray:
    """Turn triangles so that those of the canonical face look at the camera."""
    away = np.median(facing(canonical, triangles)) < 0
    return triangles[:, ::-1].copy() if away else triangles


def _distance_cm(points: FloatArray, indices: tuple[int, ...]) -> FloatArray:
    between = points[:, None] - points[list(indices)][None]
    return np.asarray(np.sqrt((between**2).sum(2)).min(1), dtype=np.float32)


def _shape_weights(canonical: FloatArray) -> FloatArray:
    """0 at the face's outline, which stays the target's, to 1 inside; little at the lips, whose opening is expression."""
    low, high = _OVAL_RAMP_CM
    inside = np.clip((_distance_cm(canonical, regions.FACE_OVAL) - low) / (high - low), 0, 1)
    lips = np.clip(
        _distance_cm(canonical, regions.LIPS_INNER + regions.LIPS_OUTER) / _LIPS_RAMP_CM, 0, 1
    )
    return np.asarray(inside * (_LIPS_SHARE + (1 - _LIPS_SHARE) * lips), dtype=np.float32)


def _painted_regions(
    canonical: FloatArray, uv: FloatArray, triangles: IntArray
) -> NDArray[np.uint8]:
    side = REGION_SIDE_PX
    points = texture_points(uv, side)
    features = painted((*regions.FEATURES, *regions.NOSTRILS), points, side)
    skin = 1 - cv2.GaussianBlur(cv2.dilate(features, np.ones((9, 9))), (0, 0), 1.5)
    ids = draw_triangles(points, triangles, (side, side), np.arange(len(triangles), dtype=np.int32))
    place_cm = dense_map(ids, triangle_maps(points, canonical[:, :2], triangles))
    place_cm = grown(place_cm, ids, 4)
    hair_zone = _hair_zone(canonical, place_cm)
    sides = _ramp(np.abs(place_cm[..., 0]), _SIDES_CM)
    return np.rint(np.dstack([skin, hair_zone, sides]) * 255).astype(np.uint8)


def _hair_zone(canonical: FloatArray, place_cm: FloatArray) -> FloatArray:
    """1 where hair may fall: above the brows, and beside the eyes and cheeks down to the mouth.

    The upper edge of the brows is followed, so that no brow is ever taken for hair.
    """
    brow = canonical[list(regions.LEFT_BROW_TOP)]
    across, height = np.abs(place_cm[..., 0]), -place_cm[..., 1]
    brow_height = np.interp(across, np.abs(brow[:, 0]), -brow[:, 1])
    above = _ramp(height - brow_height, _ABOVE_BROWS_CM)
    mouth_height = -canonical[regions.MOUTH_CORNERS[0], 1]
    beside = _ramp(across, _BESIDE_EYES_CM) * _ramp(height - mouth_height, _ABOVE_MOUTH_CM)
    return np.asarray(np.maximum(above, beside), dtype=np.float32)


def _ramp(value: NDArray[np.floating], low_high: tuple[float, float]) -> NDArray[np.floating]:
    low, high = low_high
    return np.clip((value - low) / (high - low), 0, 1)

"""What is known of every face before a picture is seen: the canonical mesh, and regions painted once on its texture.

Texture coordinates are the mesh's own flat layout, 0 to 1, x right and y down. Its left and right halves
are mirror images, so that flipping a texture exchanges the halves of the face. Whatever follows the skin
(what is plain skin, where hair may fall) is painted here once and then travels with the mesh through the
same map as the texture, at no cost of its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.mesh_topology import MeshTopology
from app.processors.mesh.filters import FloatArray, blurred, dilated, filled, ramp
from app.processors.mesh.raster import (
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
_LIPS_SHARE = 0.8
_ABOVE_BROWS_CM = (0.35, 1.0)
_BESIDE_EYES_CM = (5.2, 5.9)
_ABOVE_MOUTH_CM = (0.0, 1.5)
_SIDES_CM = (3.0, 4.0)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PaintedRegions:
    """Regions over the texture, `(256, 256)` float32 each, 0 to 1.

    Attributes:
        skin: Plain skin: neither brow, eye, nostril nor lip.
        hair_zone: Where hair may fall: above the brows, and beside the eyes and cheeks down to the mouth.
        sides: All but the middle of the face.
        seeds: Skin on almost every face, true or false.
    """

    skin: FloatArray
    hair_zone: FloatArray
    sides: FloatArray
    seeds: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FaceModel:
    """The canonical face.

    Attributes:
        canonical: `(468, 3)` float32 in centimeters, x right, y down, z away from the viewer.
        uv: `(468, 2)` float32, 0 to 1.
        triangles: `(898, 3)` int32, wound so that they look at the viewer.
        shape_weights: `(468,)` float32, 0 to 1: how far a point may follow the source's proportions.
        painted: Regions over the texture.
    """

    canonical: FloatArray
    uv: FloatArray
    triangles: IntArray
    shape_weights: FloatArray
    painted: PaintedRegions


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
        painted=_painted_regions(canonical, uv, triangles),
    )


def texture_points(uv: FloatArray, side_px: int) -> FloatArray:
    """Pixels of a texture: `uv` 0 and 1 are the outer edges of its first and last pixel."""
    return np.asarray(uv * np.float32(side_px) - np.float32(0.5), dtype=np.float32)


def texture_ids(uv: FloatArray, triangles: IntArray, side_px: int) -> IntArray:
    """The mesh drawn in its flat layout, `(side_px, side_px)` triangle numbers."""
    order = np.arange(len(triangles), dtype=np.int32)
    return draw_triangles(texture_points(uv, side_px), triangles, (side_px, side_px), order)


def texture_scale(points: FloatArray, model: FaceModel) -> float:
    """Side in pixels of the texture whose texels are as large as the pixels of a face drawn at these points."""
    oval = list(regions.FACE_OVAL)
    size_px, size_uv = (
        np.sqrt(np.ptp(place[oval, :2], axis=0).prod()) for place in (points, model.uv)
    )
    return float(size_px / size_uv)


def _wound(canonical: FloatArray, triangles: IntArray) -> IntArray:
    """Turn triangles so that those of the canonical face look at the camera."""
    looks_away = np.median(facing(canonical, triangles)) < 0
    return triangles[:, ::-1].copy() if looks_away else triangles


def _distance_cm(points: FloatArray, indices: tuple[int, ...]) -> FloatArray:
    between = points[:, None] - points[list(indices)][None]
    return np.asarray(np.sqrt((between**2).sum(2)).min(1), dtype=np.float32)


def _shape_weights(canonical: FloatArray) -> FloatArray:
    """0 at the face's outline, which stays the target's, to 1 inside; less at the lips, which mostly act."""
    inside = ramp(_distance_cm(canonical, regions.FACE_OVAL), _OVAL_RAMP_CM)
    lips = _distance_cm(canonical, regions.LIPS_INNER + regions.LIPS_OUTER)
    share = _LIPS_SHARE + (1 - _LIPS_SHARE) * ramp(lips, (0, _LIPS_RAMP_CM))
    return np.asarray(inside * share, dtype=np.float32)


def _painted_regions(canonical: FloatArray, uv: FloatArray, triangles: IntArray) -> PaintedRegions:
    side_wh = (REGION_SIDE_PX, REGION_SIDE_PX)
    points = texture_points(uv, REGION_SIDE_PX)
    features = filled((*regions.FEATURES, *regions.NOSTRILS), points, side_wh)
    ids = grown(texture_ids(uv, triangles, REGION_SIDE_PX), 4)
    place_cm = dense_map(ids, triangle_maps(points, canonical[:, :2], triangles))
    return PaintedRegions(
        skin=1 - blurred(dilated(features, 9), 1.5),
        hair_zone=_hair_zone(canonical, place_cm),
        sides=ramp(np.abs(place_cm[..., 0]), _SIDES_CM),
        seeds=filled(regions.SKIN_PATCHES, points, side_wh) > 0.5,
    )


def _hair_zone(canonical: FloatArray, place_cm: FloatArray) -> FloatArray:
    """The upper edge of the brows is followed, so that no brow is ever taken for hair."""
    brow = canonical[list(regions.LEFT_BROW_TOP)]
    across, height = np.abs(place_cm[..., 0]), -place_cm[..., 1]
    brow_height = np.interp(across, np.abs(brow[:, 0]), -brow[:, 1])
    above = ramp(height - brow_height, _ABOVE_BROWS_CM)
    mouth_height = -canonical[regions.MOUTH_CORNERS[0], 1]
    beside = ramp(across, _BESIDE_EYES_CM) * ramp(height - mouth_height, _ABOVE_MOUTH_CM)
    return np.asarray(np.maximum(above, beside), dtype=np.float32)

"""One photo of a source, laid flat on the texture, with how far each texel of it may be believed.

A texel is believed where the camera saw the skin squarely, inside the photo, and where nothing lies over it. Hair is looked for
where it falls; elsewhere at the sides a texel counts as covered when it is no skin but its mirror image is: a strand, or the
background behind a cheek that the mesh overshoots. Brows and beards, dark on both sides, pass.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.mesh_topology import N_POINTS
from app.core.types import SourceView
from app.processors.mesh import regions
from app.processors.mesh.face_model import (
    REGION_SIDE_PX,
    FaceModel,
    filled,
    square,
    texture_points,
    texture_scale,
)
from app.processors.mesh.raster import (
    FloatArray,
    IntArray,
    dense_map,
    facing,
    grown,
    point_map,
    spread_to_points,
    triangle_maps,
)
from app.processors.mesh.skin import Strictness, skin_likelihood

_SEEN = (0.2, 0.5)
"""Cosines from which skin is seen at all, and seen well."""

_HAIR = Strictness(surely=1.9, never=3.3)
_BARE = (0.3, 0.9)
_HOLE_SHARE = 1 / 16


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One photo on the texture.

    Attributes:
        rgb: `(n, n, 3)` float32, 0 to 255.
        seen: `(n, n)` float32, 0 to 1.
    """

    rgb: FloatArray
    seen: FloatArray


def mesh_points(view: SourceView) -> FloatArray:
    """The view's mesh without the irises, `(468, 3)`."""
    return view.landmarks[:N_POINTS]


def sampled_layer(view: SourceView, model: FaceModel, ids: IntArray) -> Layer:
    """Sample a photo through the mesh.

    Args:
        view: The photo.
        model: The canonical face.
        ids: `(n, n)` the mesh drawn in its flat layout, from `texture_ids`.
    """
    side = ids.shape[0]
    crop, points = _at_texture_scale(view, model, side)
    here = texture_points(model.uv, side)
    place = dense_map(grown(ids), triangle_maps(here, points[:, :2], model.triangles))
    rgb = cv2.remap(crop, place, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    squarely = point_map(ids, here, _squareness(points, model), model.triangles)
    believed = _without_holes(squarely * _uncovered(rgb, model))
    believed = np.where(_is_inside(place, crop) & (ids >= 0), believed, 0)
    soft = cv2.GaussianBlur(believed.astype(np.float32), (0, 0), side / 60)
    return Layer(rgb.astype(np.float32), soft)


def likely_skin(rgb: NDArray[np.uint8], model: FaceModel, strictness: Strictness) -> FloatArray:
    """Likelihood of skin over a texture, `(256, 256)` float32."""
    size_wh = (REGION_SIDE_PX, REGION_SIDE_PX)
    small = cv2.resize(rgb, size_wh, interpolation=cv2.INTER_AREA)
    return skin_likelihood(np.asarray(small, np.uint8), model.painted.seeds, strictness)


def _at_texture_scale(
    view: SourceView, model: FaceModel, side_px: int
) -> tuple[NDArray[np.uint8], FloatArray]:
    """Shrink a photo that is finer than the texture, area-true; sampling alone would alias."""
    points = mesh_points(view)
    scale = side_px / texture_scale(points, model)
    if scale >= 1:
        return view.crop, points
    w, h = (max(1, round(side * scale)) for side in view.crop.shape[1::-1])
    crop = cv2.resize(view.crop, (w, h), interpolation=cv2.INTER_AREA)
    moved = points * np.float32(scale)
    moved[:, :2] += np.float32(0.5 * scale - 0.5)
    return np.asarray(crop, dtype=np.uint8), moved


def _squareness(points: FloatArray, model: FaceModel) -> FloatArray:
    """How squarely the camera saw each point, `(468,)`, 0 to 1."""
    low, high = _SEEN
    cosine = spread_to_points(facing(points, model.triangles), model.triangles, len(points))
    return np.clip((cosine - low) / (high - low), 0, 1)


def _without_holes(seen: FloatArray) -> FloatArray:
    """Fill small holes: the underside of the nose is edge-on in every photo, and so it is in the target."""
    width = 2 * round(seen.shape[0] * _HOLE_SHARE) + 1
    brush = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (width, width))
    return np.asarray(cv2.morphologyEx(seen, cv2.MORPH_CLOSE, brush), dtype=np.float32)


def _is_inside(place: FloatArray, crop: NDArray[np.uint8]) -> NDArray[np.bool_]:
    h, w = crop.shape[:2]
    x, y = place[..., 0], place[..., 1]
    return (x >= 0) & (y >= 0) & (x <= w - 1) & (y <= h - 1)


def _uncovered(rgb: NDArray[np.uint8], model: FaceModel) -> FloatArray:
    """0 where something lies over the face, else 1; `(n, n)` float32."""
    points = texture_points(model.uv, REGION_SIDE_PX)
    brows = filled((regions.LEFT_BROW, regions.RIGHT_BROW), points, (REGION_SIDE_PX,) * 2)
    likely = np.maximum(likely_skin(rgb, model, _HAIR), cv2.dilate(brows, square(5)))
    low, high = _BARE
    bare = cv2.GaussianBlur(cv2.erode(likely, square(13)), (0, 0), 4)
    bare = np.clip((bare - low) / (high - low), 0, 1)
    one_sided = (1 - cv2.erode(likely, square(5))) * cv2.erode(likely[:, ::-1], square(7))
    one_sided = cv2.GaussianBlur(one_sided, (0, 0), 2)
    painted = model.painted
    free = (1 - painted.hair_zone * (1 - bare)) * (1 - painted.sides * one_sided)
    return cv2.resize(free, rgb.shape[1::-1], interpolation=cv2.INTER_LINEAR)

"""One photo of a source, laid flat on the texture, with how far each texel of it may be believed.

A texel is believed where the camera saw the skin squarely, inside the photo, and where nothing lies
over it. Hair is looked for where it falls. Elsewhere at the sides a texel counts as covered when it is
no skin but its mirror image is: a strand, or the background behind a cheek that the mesh overshoots.
Brows and beards, dark on both sides, pass.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.mesh_topology import MESH_POINTS
from app.core.types import SourceView
from app.processors.mesh.face_model import (
    REGION_SIDE_PX,
    FaceModel,
    texture_points,
    texture_scale,
)
from app.processors.mesh.filters import (
    FloatArray,
    blurred,
    dilated,
    eroded,
    filled,
    ramp,
    resized,
    sampled,
)
from app.processors.mesh.raster import (
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
    return view.landmarks[:MESH_POINTS]


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
    rgb = sampled(crop, place, cv2.INTER_CUBIC)
    squarely = point_map(ids, here, _squareness(points, model), model.triangles)
    believed = _without_holes(squarely * _uncovered(rgb, squarely, model))
    believed = believed * (_is_inside(place, crop) & (ids >= 0))
    return Layer(rgb.astype(np.float32), blurred(believed, side / 60))


def likely_skin(
    rgb: NDArray[np.uint8], seen: FloatArray, model: FaceModel, strictness: Strictness
) -> FloatArray:
    """Likelihood of skin over a texture, `(256, 256)` float32; learned where skin was well seen."""
    size_wh = (REGION_SIDE_PX, REGION_SIDE_PX)
    seeds = model.painted.seeds & (resized(seen, size_wh) > 0.5)
    return skin_likelihood(resized(rgb, size_wh), seeds, strictness)


def _at_texture_scale(
    view: SourceView, model: FaceModel, side_px: int
) -> tuple[NDArray[np.uint8], FloatArray]:
    """Shrink a photo that is finer than the texture, area-true; sampling alone would alias."""
    points = mesh_points(view)
    scale = side_px / texture_scale(points, model)
    if scale >= 1:
        return view.crop, points
    w, h = (max(1, round(side * scale)) for side in view.crop.shape[1::-1])
    moved = points * np.float32(scale)
    moved[:, :2] += np.float32(0.5 * scale - 0.5)
    return resized(view.crop, (w, h)), moved


def _squareness(points: FloatArray, model: FaceModel) -> FloatArray:
    """How squarely the camera saw each point, `(468,)`, 0 to 1."""
    cosines = facing(points, model.triangles)
    return ramp(spread_to_points(cosines, model.triangles, len(points)), _SEEN)


def _without_holes(seen: FloatArray) -> FloatArray:
    """Fill small holes: the underside of the nose is edge-on in every photo, and in every target."""
    width = 2 * round(seen.shape[0] * _HOLE_SHARE) + 1
    brush = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (width, width))
    return np.asarray(cv2.morphologyEx(seen, cv2.MORPH_CLOSE, brush), dtype=np.float32)


def _is_inside(place: FloatArray, crop: NDArray[np.uint8]) -> NDArray[np.bool_]:
    high = np.array(crop.shape[1::-1]) - 1
    return np.asarray(((place >= 0) & (place <= high)).all(2), dtype=np.bool_)


def _uncovered(rgb: NDArray[np.uint8], seen: FloatArray, model: FaceModel) -> FloatArray:
    """0 where something lies over the face, else 1; `(n, n)` float32."""
    likely = np.maximum(likely_skin(rgb, seen, model, _HAIR), _brows(model))
    bare = ramp(blurred(eroded(likely, 13), 4), _BARE)
    one_sided = blurred((1 - eroded(likely, 5)) * eroded(likely[:, ::-1], 7), 2)
    painted = model.painted
    free = (1 - painted.hair_zone * (1 - bare)) * (1 - painted.sides * one_sided)
    return resized(free, (rgb.shape[1], rgb.shape[0]))


def _brows(model: FaceModel) -> FloatArray:
    """The brows, which are hair but the face's own, over the texture."""
    points = texture_points(model.uv, REGION_SIDE_PX)
    contours = (regions.LEFT_BROW, regions.RIGHT_BROW)
    return dilated(filled(contours, points, (REGION_SIDE_PX, REGION_SIDE_PX)), 5)

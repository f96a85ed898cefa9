"""Draw the face mesh: which triangle covers a pixel, and where that pixel lies on another placement of the same mesh.

The mesh is drawn small (some 200 pixels) by the painter's order, far triangles first, one polygon fill
each. From the triangle under a pixel follows an affine to any other placement of the mesh, be it texture
or photo, so one drawing serves all maps. A map between two placements is smooth but for fine kinks at
the edges, hence it may be enlarged to the picture's resolution: a 4K face costs no more here.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.filters import FloatArray

IntArray = NDArray[np.int32]

_SUBPIXEL_BITS = 4
_MIN_AREA = 1e-6


def facing(points: FloatArray, triangles: IntArray) -> FloatArray:
    """How squarely each triangle looks at the camera.

    Args:
        points: `(n, 3)` float32, x right, y down, z away from the camera, all at one scale.
        triangles: `(t, 3)` indices, wound so that a triangle in front looks at the camera.

    Returns:
        `(t,)` float32: cosine between the normal and the line of sight, 1 square on, below 0 from behind.
    """
    a, b, c = (points[triangles[:, corner]] for corner in range(3))
    normals = np.cross(b - a, c - a)
    length = np.sqrt((normals * normals).sum(1))
    return np.asarray(normals[:, 2] / np.maximum(length, 1e-9), dtype=np.float32)


def far_to_near(points: FloatArray, triangles: IntArray) -> IntArray:
    """Triangles that look at the camera, the farthest first: the painter's order."""
    visible = np.flatnonzero(facing(points, triangles) > 0)
    depth = points[triangles[visible], 2].sum(1)
    return np.asarray(visible[np.argsort(-depth, kind="stable")], dtype=np.int32)


def draw_triangles(
    points: FloatArray, triangles: IntArray, size_wh: tuple[int, int], order: IntArray
) -> IntArray:
    """Number of the triangle that covers each pixel.

    Args:
        points: `(n, 2)` float32, pixels.
        triangles: `(t, 3)` indices.
        size_wh: Size of the drawing.
        order: Triangles to draw, first to last; later ones cover earlier ones.

    Returns:
        `(h, w)` int32; -1 where there is none. Every touched pixel counts, so that neighbors leave no gap.
    """
    ids = np.full(size_wh[::-1], -1, np.int32)
    corners = np.rint(points[triangles[order]] * (1 << _SUBPIXEL_BITS)).astype(np.int32)
    for triangle, polygon in zip(order.tolist(), corners, strict=True):
        cv2.fillConvexPoly(ids, polygon, triangle, cv2.LINE_8, _SUBPIXEL_BITS)
    return ids


def grown(ids: IntArray, radius_px: int = 2) -> IntArray:
    """Continue the triangles at the outline a little outwards, so that a map may be enlarged without an edge."""
    side = 2 * radius_px + 1
    near = cv2.dilate(ids.astype(np.float32), np.ones((side, side), np.uint8))
    return np.where(ids >= 0, ids, near.astype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class TriangleMaps:
    """How each triangle goes from one placement of the mesh to another.

    Attributes:
        affine: `(t, 2, 3)` float32; a triangle without area here goes to its first corner there.
        low: `(t, 2)` float32, upper left of the triangle there.
        high: `(t, 2)` float32, lower right.
    """

    affine: FloatArray
    low: FloatArray
    high: FloatArray


def triangle_maps(here: FloatArray, there: FloatArray, triangles: IntArray) -> TriangleMaps:
    """Derive the maps of all triangles.

    Args:
        here: `(n, 2)` float32, the placement that was drawn.
        there: `(n, 2)` float32, where to.
        triangles: `(t, 3)` indices.
    """
    p, q = here[triangles], there[triangles]
    p1, p2, q1, q2 = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0], q[:, 1] - q[:, 0], q[:, 2] - q[:, 0]
    area = p1[:, 0] * p2[:, 1] - p1[:, 1] * p2[:, 0]
    has_area = np.abs(area) > _MIN_AREA
    inverse = np.divide(1, area, out=np.zeros_like(area), where=has_area)[:, None]
    along_x = (q1 * p2[:, 1:] - q2 * p1[:, 1:]) * inverse
    along_y = (q2 * p1[:, :1] - q1 * p2[:, :1]) * inverse
    shift = q[:, 0] - along_x * p[:, 0, :1] - along_y * p[:, 0, 1:]
    affine = np.stack([along_x, along_y, shift], axis=2)
    return TriangleMaps(affine.astype(np.float32), q.min(1), q.max(1))


def dense_map(ids: IntArray, maps: TriangleMaps, corner_xy: tuple[int, int] = (0, 0)) -> FloatArray:
    """Where each pixel lies on the other placement.

    A drawn triangle also covers pixels that it merely touches, and a sliver would take those far away: so no pixel may
    leave its triangle's bounds.

    Args:
        ids: `(h, w)` from `draw_triangles`, or a part of it.
        maps: From `triangle_maps`.
        corner_xy: Where the part's upper left pixel lies in the drawing.

    Returns:
        `(h, w, 2)` float32; 0 where no triangle is.
    """
    h, w = ids.shape
    table = np.concatenate([maps.affine, maps.low[..., None], maps.high[..., None]], axis=2)
    table = np.concatenate([table.reshape(-1, 10), np.zeros((1, 10), np.float32)])
    rows = table.take(ids.ravel(), axis=0, mode="wrap").reshape(h, w, 10)
    x = np.arange(corner_xy[0], corner_xy[0] + w, dtype=np.float32)
    y = np.arange(corner_xy[1], corner_xy[1] + h, dtype=np.float32)[:, None]
    out = np.empty((h, w, 2), np.float32)
    for axis in (0, 1):
        by_x, by_y, shift, low, high = np.moveaxis(rows[..., 5 * axis : 5 * axis + 5], 2, 0)
        place = by_x * x
        place += by_y * y
        place += shift
        np.minimum(np.maximum(place, low, out=place), high, out=out[..., axis])
    return out


def spread_to_points(values: FloatArray, triangles: IntArray, n_points: int) -> FloatArray:
    """Mean, at each point, of a value of the triangles around it: `(t,)` to `(n_points,)` float32."""
    corners = triangles.ravel()
    total = np.bincount(corners, np.repeat(values, 3), n_points)
    count = np.bincount(corners, minlength=n_points)
    return np.asarray(total / np.maximum(count, 1), dtype=np.float32)


def point_map(
    ids: IntArray, here: FloatArray, values: FloatArray, triangles: IntArray
) -> FloatArray:
    """Values at the points, interpolated over the drawing: `(n,)` to `(h, w)` float32, 0 where no triangle is."""
    both = np.column_stack([values, values]).astype(np.float32)
    return dense_map(ids, triangle_maps(here, both, triangles))[..., 0]

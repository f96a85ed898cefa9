"""Draw the face mesh: which triangle covers a pixel, and where that pixel lies on another placement of the same mesh.

The mesh is drawn small (some 200 pixels) by the painter's order, far triangles first, one polygon fill each. From the
triangle under a pixel follows an affine to any other placement of the mesh, be it texture or photo, so one drawing serves all maps.
A map between two placements is smooth but for fine kinks at the edges, hence it may be enlarged to the picture's
resolution; that is why a 4K face costs little more here than a small one.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]

_SUBPIXEL_BITS = 4


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


def front_to_back(points: FloatArray, triangles: IntArray) -> IntArray:
    """Triangles that look at the camera, the farthest first: the painter's order."""
    visible = np.flatnonzero(facing(points, triangles) > 0)
    depth = points[triangles[visible], 2].sum(1)
    return np.asarray(visible[np.argsort(-depth, kind="stable")], dtype=np.int32)


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
    p, q = here[triangles].astype(np.float64), there[triangles].astype(np.float64)
    p1, p2, q1, q2 = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0], q[:, 1] - q[:, 0], q[:, 2] - q[:, 0]
    area = p1[:, 0] * p2[:, 1] - p1[:, 1] * p2[:, 0]
    inverse = np.divide(1.0, area, out=np.zeros_like(area), where=np.abs(area) > 1e-6)[:, None]
    along_x = (q1 * p2[:, 1:] - q2 * p1[:, 1:]) * inverse
    along_y = (q2 * p1[:, :1] - q1 * p2[:, :1]) * inverse
    shift = q[:, 0] - along_x * p[:, 0, :1] - along_y * p[:, 0, 1:]
    affine = np.stack([along_x, along_y, shift], axis=2).astype(np.float32)
    return TriangleMaps(affine, q.min(1).astype(np.float32), q.max(1).astype(np.float32))


def dense_map(ids: IntArray, maps: TriangleMaps) -> FloatArray:
    """Where each pixel lies on the other placement.

    A drawn triangle also covers pixels that it merely touches, and a sliver would take those far away: so no pixel may
    leave its triangle's bounds.

    Args:
        ids: `(h, w)` from `draw_triangles`.
        maps: From `triangle_maps`.

    Returns:
        `(h, w, 2)` float32; 0 where no triangle is.
    """
    h, w = ids.shape
    table = np.concatenate([maps.affine, maps.low[..., None], maps.high[..., None]], axis=2)
    table = np.concatenate([table.reshape(-1, 10), np.zeros((1, 10), np.float32)])
    rows = table.take(ids.ravel(), axis=0, mode="wrap").reshape(h, w, 10)
    x = np.arange(w, dtype=np.float32)
    y = np.arange(h, dtype=np.float32)[:, None]
    out = np.empty((h, w, 2), np.float32)
    for axis in (0, 1):
        by_x, by_y, shift, low, high = np.moveaxis(rows[..., 5 * axis : 5 * axis + 5], 2, 0)
        np.clip(by_x * x + by_y * y + shift, low, high, out=out[..., axis])
    return out


def grown(dense: FloatArray, ids: IntArray, radius_px: int = 2) -> FloatArray:
    """Continue a map a little beyond the mesh, so that it may be enlarged without an edge.

    Returns:
        `(h, w, 2)` float32: outside the mesh the mean of the mesh pixels nearby, 0 where there are none.
    """
    covered = (ids >= 0).astype(np.float32)
    kernel = (2 * radius_px + 1,) * 2
    share = cv2.blur(covered, kernel, borderType=cv2.BORDER_CONSTANT)
    near = cv2.blur(dense, kernel, borderType=cv2.BORDER_CONSTANT)
    mean = near / np.maximum(share, 1e-6)[..., None]
    return np.where(covered[..., None] > 0, dense, mean)

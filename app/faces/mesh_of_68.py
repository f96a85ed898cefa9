"""The 478 points of the face mesh from the 68 points of the 300-W data set.

Landmarkers of the public zoo give 68 points, and everything behind them (masks, crops, the mesh swapper) knows the
mesh. So the canonical face is laid over the 68 points: first turned, scaled and sheared as a whole, then bent to where
the points really lie. Both steps are linear, so one matrix does them for any number of faces.
"""

import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray
from app.core.mesh_topology import load_topology

_Points = NDArray[np.float64]

MESH_INDICES = (
    *(127, 234, 132, 58, 172, 136, 149, 148, 152, 377, 378, 365, 397, 288, 361, 454, 356),
    *(70, 63, 105, 66, 107, 336, 296, 334, 293, 300),
    *(168, 197, 5, 4, 75, 97, 2, 326, 305),
    *(33, 160, 158, 133, 153, 144, 362, 385, 387, 263, 373, 380),
    *(61, 39, 37, 0, 267, 269, 291, 405, 314, 17, 84, 181),
    *(78, 82, 13, 312, 308, 317, 14, 87),
)
"""The mesh point next to each of the 68: jaw, brows, nose, eyes, outer and inner lips."""

_REACH_CM = 3.0
"""How far a point pulls its surroundings along, on the canonical face."""
_YIELDING = 0.05
"""Of the pull, how much is let go for smoothness: landmarks of 68 points tremble."""
_EYES = (((33, 133), (159, 145)), ((362, 263), (386, 374)))
_IRIS_SHARE = 0.2
"""Radius of an iris, of the width of its eye."""


class MeshFit:
    """Lays the canonical face over 68 points."""

    def __init__(self) -> None:
        vertices = load_topology().vertices.astype(np.float64)
        known = vertices[list(MESH_INDICES)]
        whole = np.column_stack([vertices, np.ones(len(vertices))])
        camera = np.linalg.pinv(whole[list(MESH_INDICES)])
        pull = _kernel(known, known) + _YIELDING * np.eye(len(known))
        bend = _kernel(vertices, known) @ np.linalg.inv(pull)
        rest = np.eye(len(known)) - whole[list(MESH_INDICES)] @ camera
        self._vertices = vertices.astype(np.float32)
        self._camera = camera[:3].astype(np.float32)
        self._matrix = (whole @ camera + bend @ rest).astype(np.float32)

    def mesh(self, points: FloatArray) -> FloatArray:
        """The mesh of each face.

        Args:
            points: `(n, 68, 2)` float32, pixels.

        Returns:
            `(n, 478, 3)` float32, same pixels; z at the scale of x, smaller is nearer.
        """
        mesh = np.empty((len(points), 478, 3), np.float32)
        mesh[:, :468, :2] = self._matrix @ points
        mesh[:, :468, 2] = self._depth(points)
        for row, (corners, lids) in enumerate(_EYES):
            mesh[:, 468 + 5 * row : 473 + 5 * row] = _iris(mesh, corners, lids)
        return mesh

    def _depth(self, points: FloatArray) -> FloatArray:
        """Depth of the canonical face, turned as the points are, `(n, 468)`."""
        axes = self._camera @ points
        across, down = axes[..., 0], axes[..., 1]
        ahead = np.cross(across, down)
        scale = np.sqrt(np.linalg.norm(across, axis=1) * np.linalg.norm(down, axis=1))
        ahead /= np.maximum(scale, 1e-6)[:, None]
        return np.asarray(ahead @ self._vertices.T, np.float32)


def _kernel(a: _Points, b: _Points) -> _Points:
    """How much each point follows another. Lips lie close and part, so that it must fall at once, not bell-shaped."""
    return np.asarray(np.exp(-np.linalg.norm(a[:, None] - b[None], axis=2) / _REACH_CM))


def _iris(mesh: FloatArray, corners: tuple[int, int], lids: tuple[int, int]) -> FloatArray:
    """Middle, right, top, left and bottom of an iris that looks ahead, `(n, 5, 3)`."""
    middle = mesh[:, [*corners, *lids]].mean(1)
    across = (mesh[:, corners[1]] - mesh[:, corners[0]]) * np.float32(_IRIS_SHARE)
    up = np.stack([across[:, 1], -across[:, 0], np.zeros(len(mesh), np.float32)], axis=1)
    return np.stack([middle, middle + across, middle + up, middle - across, middle - up], axis=1)

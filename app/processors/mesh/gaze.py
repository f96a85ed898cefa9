"""The source's eyes, looking where the target looks.

Eyes say a good part of who somebody is: the color of the iris, the lashes, the shape of the white. A texture has
them as the source held them, looking at the camera perhaps. So inside the lids the texture is shifted until its iris
lies where the target's iris is; the corners of the eye stay, and the white between gives way. Where the target
looks so far aside that the white would smear, its own eyeball fades in; so does it where the source's eye was
shut, which has none to offer. What lids do is said by the mesh.
"""

from dataclasses import dataclass

import numpy as np

from app.core import mesh_regions as regions
from app.core.mesh_topology import MESH_POINTS
from app.processors.mesh.filters import FloatArray, ramp
from app.processors.mesh.masks import box_around, soft_area
from app.processors.mesh.raster import IntArray
from app.processors.mesh.shape import gap_share

_IRISES = (
    tuple(range(MESH_POINTS, MESH_POINTS + 5)),
    tuple(range(MESH_POINTS + 5, MESH_POINTS + 10)),
)
_IRIS_REACH = 0.2
"""Half a large iris in widths of the eye, which is shifted without being stretched."""

_LEAST_WHITE = 0.08
_FAR = (0.65, 0.95)
"""Shift over the white that it has to give way: up to the first it does, from the second it smears."""

_SHUT = (0.12, 0.18)
"""Gap between the source's lids over the width of its eye: below the first there is no eye to be seen."""

_NARROW = (0.16, 0.24)
"""Gap between the target's lids: below the first a texture would be squeezed into a dark slit."""

_SOFT_PX = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class SourceEyes:
    """What the texture knows of the source's eyes, in the order of `mesh_regions.EYES`.

    Attributes:
        iris_uv: `(2, 2)` float32, middles of the irises on the texture.
        open: `(2,)` float32, 0 to 1: how much of an eye there is to be seen.
    """

    iris_uv: FloatArray
    open: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Shift:
    """How the texture moves inside one eye.

    Attributes:
        at: Place of the target's iris between the corners, 0 outer to 1 inner.
        by_uv: `(2,)` from the target's iris to the source's on the texture.
        strain: Shift over the white that gives way.
    """

    at: float
    by_uv: FloatArray
    strain: float


def iris_middles(landmarks: FloatArray) -> FloatArray:
    """Where both irises are, `(2, 2)` float32, in the order of `mesh_regions.EYES`.

    Args:
        landmarks: `(478, 3)` float32.
    """
    middles = [landmarks[list(rows), :2].mean(0) for rows in _IRISES]
    return np.asarray(middles, dtype=np.float32)


def source_eyes(landmarks: FloatArray, uv: FloatArray, triangles: IntArray) -> SourceEyes:
    """Learn where a photo's irises lie on the texture.

    Args:
        landmarks: `(478, 3)` float32 of the photo.
        uv: `(468, 2)` float32.
        triangles: `(t, 3)` of the mesh.
    """
    gaps = [gap_share(landmarks, *lids) for _, _, lids in regions.EYES]
    opened = ramp(np.array(gaps, np.float32), _SHUT)
    return SourceEyes(_on_texture(landmarks, uv, triangles), opened)


class Gaze:
    """Where a target looks, and what that asks of the texture.

    Args:
        landmarks: `(478, 3)` float32 of the target, at any scale.
        uv: `(468, 2)` float32.
        triangles: `(t, 3)` of the mesh.
        source: The eyes on the texture.
    """

    def __init__(
        self, landmarks: FloatArray, uv: FloatArray, triangles: IntArray, *, source: SourceEyes
    ) -> None:
        self._uv = uv
        here = _on_texture(landmarks, uv, triangles)
        self._shifts = [
            _shift(uv[list(lids[2:])], mine, theirs)
            for (_, _, lids), mine, theirs in zip(regions.EYES, here, source.iris_uv, strict=True)
        ]
        far = ramp(np.array([shift.strain for shift in self._shifts], np.float32), _FAR)
        gaps = [gap_share(landmarks, *lids) for _, _, lids in regions.EYES]
        free = ramp(np.array(gaps, np.float32), _NARROW)
        self.kept = tuple((1 - (1 - far) * free * source.open).tolist())
        """How much of each of the target's own eyeballs stays, 0 to 1."""

    def follow_inplace(self, map_uv: FloatArray, points: FloatArray) -> None:
        """Shift the texture inside the lids.

        Args:
            map_uv: `(h, w, 2)` float32, texture coordinates of a drawing.
            points: `(468, 3)` float32, the mesh in its pixels.
        """
        size_wh = map_uv.shape[1], map_uv.shape[0]
        for (contour, _, lids), shift in zip(regions.EYES, self._shifts, strict=True):
            box = box_around(points, contour, size_wh, 2)
            if box.is_empty or shift.strain >= _FAR[1]:
                continue
            inside = soft_area(contour, points, box, _SOFT_PX)
            part = map_uv[box.y0 : box.y1, box.x0 : box.x1]
            share = inside * _tent(part, self._uv[list(lids[2:])], shift.at)
            part += share[..., None] * shift.by_uv


def _shift(corners_uv: FloatArray, mine: FloatArray, theirs: FloatArray) -> _Shift:
    outer, inner = corners_uv
    axis = inner - outer
    width_sq = float(axis @ axis)
    at = float(np.clip((mine - outer) @ axis / width_sq, 0, 1))
    by_uv = np.asarray(theirs - mine, dtype=np.float32)
    white = max(min(at, 1 - at) - _IRIS_REACH, _LEAST_WHITE)
    return _Shift(at, by_uv, float(np.sqrt(by_uv @ by_uv / width_sq)) / white)


def _tent(map_uv: FloatArray, corners_uv: FloatArray, at: float) -> FloatArray:
    """1 over the iris, falling to 0 at the corners of the eye."""
    outer, inner = corners_uv
    axis = inner - outer
    along = (map_uv - outer) @ (axis / (axis @ axis))
    rising = along / max(at - _IRIS_REACH, _LEAST_WHITE)
    falling = (1 - along) / max(1 - at - _IRIS_REACH, _LEAST_WHITE)
    return np.asarray(np.clip(np.minimum(rising, falling), 0, 1), dtype=np.float32)


def _on_texture(landmarks: FloatArray, uv: FloatArray, triangles: IntArray) -> FloatArray:
    """Middles of the irises carried to the texture by the triangles of the eyes they lie in, `(2, 2)`."""
    places = []
    for (contour, _, _), iris in zip(regions.EYES, iris_middles(landmarks), strict=True):
        rows = triangles[np.isin(triangles, contour).all(1)]
        corners = np.dstack([landmarks[rows, :2], np.ones((*rows.shape, 1), np.float32)])
        singular = np.abs(np.linalg.det(corners)) < 1e-6
        corners[singular] = np.eye(3)
        shares = np.linalg.solve(corners.transpose(0, 2, 1), np.append(iris, 1)[None, :, None])
        shares = shares[..., 0]
        shares[singular] = -1e6
        best = int(shares.min(1).argmax())
        places.append(shares[best] @ uv[rows[best]])
    return np.asarray(places, dtype=np.float32)

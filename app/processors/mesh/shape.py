"""Proportions: what makes a face somebody's besides its skin.

A texture alone leaves the target's eye distance, nose length and mouth place. So the inner points of
the target's mesh are moved part of the way towards the source's proportions, compared in the canonical
frame after a rigid fit on points that expression hardly moves. The outline stays, because hair and neck
are the target's. How far lids and lips are open stays too: that is acting.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.processors.mesh.face_model import FaceModel
from app.processors.mesh.filters import FloatArray

_LIDS_FREE = (0.15, 0.30)
"""Gap between the lids over the width of the eye: below they stay, above they follow the source."""


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """A similarity in space: `scale * rotation @ point + shift`."""

    scale: float
    rotation: NDArray[np.float64]
    shift: NDArray[np.float64]

    def apply(self, points: FloatArray) -> FloatArray:
        """Take `(n, 3)` points along."""
        return np.asarray(self.scale * points @ self.rotation.T + self.shift, dtype=np.float32)


def rigid_pose(source: FloatArray, target: FloatArray) -> Pose:
    """The similarity that best takes the stable points of one mesh to those of another.

    Args:
        source: `(468, 3)` float32.
        target: `(468, 3)` float32.

    Source: Umeyama 1991, eq. 40 to 43.
    """
    rows = list(regions.STABLE)
    a, b = source[rows].astype(np.float64), target[rows].astype(np.float64)
    mean_a, mean_b = a.mean(0), b.mean(0)
    a, b = a - mean_a, b - mean_b
    left, singular, right = np.linalg.svd(b.T @ a)
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    rotation = (left * signs) @ right
    scale = float((singular * signs).sum() / max(float((a * a).sum()), 1e-9))
    return Pose(scale, rotation, mean_b - scale * rotation @ mean_a)


def proportions(points: FloatArray, model: FaceModel) -> FloatArray:
    """A face's points without its pose and size, `(468, 3)` float32 canonical centimeters."""
    return rigid_pose(points, model.canonical).apply(points)


def gap_share(points: FloatArray, upper: int, lower: int, one: int, other: int) -> float:
    """How far lids or lips are open: their gap over the width between their corners."""
    gap = np.linalg.norm(points[upper, :2] - points[lower, :2])
    width = np.linalg.norm(points[one, :2] - points[other, :2])
    return float(gap / max(float(width), 1e-3))


def reshaped(
    points: FloatArray, wanted: FloatArray, model: FaceModel, strength: float
) -> FloatArray:
    """Move a target's points towards other proportions.

    Args:
        points: `(468, 3)` float32, the target's mesh in pixels.
        wanted: `(468, 3)` float32 from `proportions` of the source.
        model: Says how far each point may move.
        strength: 0 leaves them, 1 takes the source's proportions where the model allows it.

    Returns:
        `(468, 3)` float32 in pixels.
    """
    if strength == 0:
        return points
    change = (wanted - proportions(points, model)) * model.shape_weights[:, None] * strength
    change = _with_calm_lips(_with_calm_lids(change, points, model))
    back = rigid_pose(model.canonical, points)
    return points + np.asarray(back.scale * change @ back.rotation.T, dtype=np.float32)


def _with_calm_lids(change: FloatArray, points: FloatArray, model: FaceModel) -> FloatArray:
    """Let the lids of a closing eye follow its corners: when it closes is the target's to say.

    A wide open eye may take the source's opening; a closed one stays closed whatever the source does.
    """
    calm = change.copy()
    low, high = _LIDS_FREE
    for contour, _, lids in regions.EYES:
        rows, (outer, inner) = list(contour), lids[2:]
        axis = model.canonical[inner] - model.canonical[outer]
        along = (model.canonical[rows] - model.canonical[outer]) @ axis / (axis @ axis)
        along = np.clip(along, 0, 1)[:, None]
        level = change[outer] * (1 - along) + change[inner] * along
        free = np.clip((gap_share(points, *lids) - low) / (high - low), 0, 1)
        calm[rows] = level + (change[rows] - level) * free
    return calm


def _with_calm_lips(change: FloatArray) -> FloatArray:
    """Move facing points of the lips alike, so that the mouth stays as far open as it is."""
    calm = change.copy()
    upper, lower = (list(row) for row in zip(*regions.LIP_PAIRS, strict=True))
    calm[upper] = calm[lower] = (change[upper] + change[lower]) / 2
    return calm

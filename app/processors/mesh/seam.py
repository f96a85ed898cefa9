"""Both sides of the mask's edge agree: what they differ by, seen broadly, is spread over the new face.

The idea is that of seamless cloning (Pérez, Gangnet and Blake 2003, "Poisson Image Editing"): the difference along the
edge is continued inwards as smoothly as can be. Instead of an equation, blurs of two widths are weighted by how near
the edge a pixel lies; hair and whatever else is no skin have no say.
"""

import numpy as np

from app.processors.mesh.color import FacePair, near_edge
from app.processors.mesh.filters import FloatArray, blurred_on_nothing, resized

_GRAIN = 0.025
"""Size of a pixel of the correction, in face sizes."""

_BROAD, _CLOSE = 0.2, 0.05
"""Blur in face sizes: of what all of the face is moved by, and of what only the edge is."""

_MOST_LEVELS = 40.0
_MIN_WEIGHT = 1e-3


def seam_change(shown: FloatArray, pair: FacePair) -> FloatArray:
    """What to add to a colored face, so that its edge has the target's color.

    Args:
        shown: `(h, w, 3)` float32 RGB, the colored texture.
        pair: Both faces over the same box.

    Returns:
        `(h, w, 3)` float32, levels.
    """
    h, w = pair.weights.shape
    step = max(1.0, pair.face_px * _GRAIN)
    size_wh = max(4, round(w / step)), max(4, round(h / step))
    near = near_edge(pair.alpha, size_wh)
    weights = resized(pair.weights * (pair.alpha > 0), size_wh)[..., None] * near
    skin = resized(pair.weights, size_wh)[..., None]
    apart = resized((pair.target - shown) * pair.weights[..., None], size_wh)
    apart /= np.maximum(skin, np.float32(_MIN_WEIGHT))
    broad = _spread(apart, weights, _BROAD * pair.face_px / step)
    close = _spread(apart - broad, weights, _CLOSE * pair.face_px / step)
    change = np.clip(broad + close * near, -_MOST_LEVELS, _MOST_LEVELS)
    return resized(np.asarray(change, np.float32), (w, h))


def _spread(apart: FloatArray, weights: FloatArray, blur_px: float) -> FloatArray:
    """The weighted mean of what is around each pixel."""
    soft = blurred_on_nothing(np.dstack([apart * weights, weights]), blur_px)
    return np.asarray(soft[..., :3] / np.maximum(soft[..., 3:], _MIN_WEIGHT), np.float32)

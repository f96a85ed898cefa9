"""Lips that can be shut: a smiling photo's mouth, laid flat, without its teeth.

What lies between the lips is painted over, because teeth drawn on a closed mouth show as a white line, and an open
mouth is the target's to show. The mesh's inner lip line is off by a pixel or two, and thin smiling lips are hardly
more, so teeth bleed into the lips themselves; squeezed into a shut mouth they are a gray line that turns purple in
another light. So texels of a lip that are no redder than teeth take the color of the lip around them. And no lip is
bluer, against its own skin, than blood makes it.
"""

import numpy as np

from app.core import mesh_regions as regions
from app.processors.mesh.face_model import FaceModel, texture_points
from app.processors.mesh.filters import FloatArray, blurred, dilated, filled, ramp, resized

_GAP_SHADE = np.array([0.72, 0.55, 0.55], np.float32)
"""The line between closed lips against the lips themselves: a shadow, lit by what is red around it."""

_MOST_BLUE = 1.05

_TEETH_REDNESS = (0.55, 0.95)
"""(Red - green) / (red + green) against the skin's: below the first it is no lip, from the second it is."""

_TEETH_BRIGHT = (1.25, 1.5)
"""Brightness against the skin's: up to the first it may be lip, beyond the second it is teeth, or gloss."""

_AROUND = 1 / 50
"""How far lip color is taken from, in texture sides."""

_SOFT = 1 / 250


def closable_lips(rgb: FloatArray, model: FaceModel) -> FloatArray:
    """A texture without teeth, in and between its lips.

    Args:
        rgb: `(n, n, 3)` float32, 0 to 255.
        model: Says where the lips are.

    Returns:
        `(n, n, 3)` float32.
    """
    side = rgb.shape[0]
    points = texture_points(model.uv, side)
    gap = filled((regions.LIPS_INNER,), points, (side, side))
    mouth = dilated(gap, 2 * (side // 256) + 1)
    lips = np.clip(filled((regions.LIPS_OUTER,), points, (side, side)) - mouth, 0, 1)
    skin = _skin_color(rgb, model)
    bright = rgb.mean(2) / np.float32(max(float(skin.mean()), 1.0))
    lip_like = lips * ramp(_redness(rgb), _bounds(skin)) * (1 - ramp(bright, _TEETH_BRIGHT))
    color = (rgb * lip_like[..., None]).sum((0, 1)) / max(float(lip_like.sum()), 1e-3)
    if float(lip_like.sum()) < 1:
        color = skin
    near = blurred(rgb * lip_like[..., None], _AROUND * side) + color * np.float32(1e-3)
    near /= blurred(lip_like, _AROUND * side)[..., None] + np.float32(1e-3)
    whole = np.maximum(lips, mouth)
    odd = blurred(dilated(whole - lip_like, 3), max(0.6, _SOFT * side)) * whole
    healed = _no_bluer(rgb + (near - rgb) * odd[..., None], skin, whole)
    line = _no_bluer(color[None, None].astype(np.float32), skin, np.ones((1, 1), np.float32))
    soft = np.minimum(blurred(gap, _SOFT * side), 1)[..., None]
    return np.asarray(healed * (1 - soft) + line * _GAP_SHADE * soft, dtype=np.float32)


def _skin_color(rgb: FloatArray, model: FaceModel) -> FloatArray:
    seeds = resized(model.painted.seeds.astype(np.float32), (rgb.shape[1], rgb.shape[0]))
    total = (rgb * seeds[..., None]).sum((0, 1))
    return np.asarray(total / max(float(seeds.sum()), 1e-3), dtype=np.float32)


def _redness(rgb: FloatArray) -> FloatArray:
    red, green = rgb[..., 0], rgb[..., 1]
    return np.asarray((red - green) / (red + green + 1), dtype=np.float32)


def _bounds(skin: FloatArray) -> tuple[float, float]:
    """Redness from which a texel may be lip; in a gray picture every texel may."""
    own = float(_redness(skin))
    low, high = (share * own for share in _TEETH_REDNESS)
    return (low, high) if own > 0.02 else (-2.0, -1.0)


def _no_bluer(rgb: FloatArray, skin: FloatArray, where: FloatArray) -> FloatArray:
    """Blue against the skin's hardly more than red or green are against theirs."""
    share = rgb / np.maximum(skin, 1)
    most = np.maximum(share[..., 0], share[..., 1]) * np.float32(_MOST_BLUE) * skin[2]
    blue = np.minimum(rgb[..., 2], most)
    healed = rgb.copy()
    healed[..., 2] += (blue - rgb[..., 2]) * where
    return healed

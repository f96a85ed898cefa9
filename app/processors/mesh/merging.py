"""Several photos of one face into one texture, without seams and without blur.

All layers are first brought to the first one's colors. Then they are mixed in two bands: broad shades blend softly by how
squarely they were seen, so that no seam shows; fine structure comes almost wholly from the layer that sees it best, so that two
slightly misplaced photos do not blur each other. What no photo saw is filled from the other half of the face.
"""

from collections.abc import Sequence

import cv2
import numpy as np

from app.processors.mesh.layers import Layer
from app.processors.mesh.raster import FloatArray

_MIRRORED_TRUST = 0.9
_SURELY_SEEN = 0.85
_FINE_BAND = 0.01
"""Blur that parts the two bands, in texture sides."""

_FINE_LEVELS = 6.0
"""Mean fine structure, in levels, of a photo as sharp as it need be."""

_FAVOR_FIRST = 1.15
"""The first photo's features win where another sees them about as well."""

_GAIN = (0.4, 2.5)


def merged(layers: Sequence[Layer]) -> Layer:
    """Mix all photos of one face.

    Args:
        layers: At least one, all of one size; the first one's colors hold.
    """
    first = layers[0]
    if len(layers) == 1:
        return first
    toned = [first, *(_toned(layer, first) for layer in layers[1:])]
    broad = [_blurred(layer.rgb, _FINE_BAND) for layer in toned]
    soft = _shares([layer.seen for layer in toned], power=2)
    favor = [_FAVOR_FIRST, *([1.0] * (len(layers) - 1))]
    sharp = _shares(
        [layer.seen * _sharpness(layer) * f for layer, f in zip(toned, favor, strict=True)],
        power=16,
    )
    rgb = np.zeros_like(first.rgb)
    for layer, wide, share, pick in zip(toned, broad, soft, sharp, strict=True):
        rgb += share[..., None] * wide + pick[..., None] * (layer.rgb - wide)
    return Layer(np.clip(rgb, 0, 255), np.max([layer.seen for layer in toned], axis=0))


def completed(layer: Layer) -> Layer:
    """Fill what was not seen from the other half of the face, in the seen half's colors."""
    flipped = _toned(Layer(layer.rgb[:, ::-1], layer.seen[:, ::-1]), layer)
    best = np.maximum(layer.seen, flipped.seen * _MIRRORED_TRUST)
    share = np.where(layer.seen > _SURELY_SEEN, 1, (layer.seen + 0.03) / (best + 0.03))
    share = cv2.GaussianBlur(share.astype(np.float32), (0, 0), len(share) / 60)[..., None]
    return Layer(layer.rgb * share + flipped.rgb * (1 - share), best)


def _shares(weights: Sequence[FloatArray], power: int) -> list[FloatArray]:
    raised = [weight**power + 1e-6 for weight in weights]
    total = np.sum(raised, axis=0)
    return [cv2.GaussianBlur(each / total, (0, 0), len(total) / 100) for each in raised]


def _sharpness(layer: Layer) -> float:
    """0.5 to 1: a small or soft photo shall not win over a sharp one."""
    fine = np.abs(layer.rgb - _blurred(layer.rgb, _FINE_BAND)).mean(2)
    level = float((fine * layer.seen).sum() / max(float(layer.seen.sum()), 1.0))
    return float(np.clip(level / _FINE_LEVELS, 0.5, 1))


def _toned(layer: Layer, like: Layer) -> Layer:
    """Give a layer the broad colors of another: learned nearby where both are seen, from farther away elsewhere."""
    both = (layer.seen * like.seen)[..., None]
    near, far = (
        [_blurred(image * both, radius) for image in (like.rgb, layer.rgb, np.ones_like(both))]
        for radius in (0.06, 0.3)
    )
    trust = np.clip(near[2] * 2, 0, 1)
    local, broad = ((ours + 0.01) / (theirs + 0.01) for ours, theirs, _ in (near, far))
    gain = np.clip(local * trust + broad * (1 - trust), *_GAIN)
    return Layer(np.clip(layer.rgb * gain, 0, 255), layer.seen)


def _blurred(image: FloatArray, radius: float) -> FloatArray:
    """Blur by a share of the side; wide blurs on a small copy."""
    side = image.shape[0]
    small_side = min(side, max(32, round(4 / radius)))
    small = cv2.resize(image, (small_side, small_side), interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(small, (0, 0), radius * small_side)
    return cv2.resize(soft, (side, side), interpolation=cv2.INTER_LINEAR).reshape(image.shape)

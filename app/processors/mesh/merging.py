"""Several photos of one face into one texture, without seams and without blur.

All layers are first brought to the first one's colors. Then they are mixed in two bands: broad shades
blend softly by how squarely they were seen, so that no seam shows; fine structure comes almost wholly
from the layer that sees it best, so that two slightly misplaced photos do not blur each other. What no
photo saw is filled from the other half of the face.
"""

from collections.abc import Sequence

import numpy as np

from app.processors.mesh.filters import FloatArray, blurred, resized
from app.processors.mesh.layers import Layer

_MIRRORED_TRUST = 0.9
_SURELY_SEEN = 0.85
_UNSEEN = 0.03
"""Where neither half was seen, a half keeps its own."""

_FINE_BAND = 0.01
"""Blur that parts the two bands, in texture sides."""

_FINE_LEVELS = 6.0
"""Mean fine structure, in levels, of a photo as sharp as it need be."""

_FAVOR_FIRST = 1.15
"""The first photo's features win where another sees them about as well."""

_NEAR, _FAR = 0.06, 0.3
"""How far away, in texture sides, a color is learned: where both layers see the skin, and elsewhere."""

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
    soft = _shares([layer.seen for layer in toned], power=2)
    sharp = _shares(_sharp_weights(toned), power=16)
    rgb = np.zeros_like(first.rgb)
    for layer, share, pick in zip(toned, soft, sharp, strict=True):
        broad = _broad(layer.rgb, _FINE_BAND)
        rgb += share[..., None] * broad + pick[..., None] * (layer.rgb - broad)
    seen = np.max([layer.seen for layer in toned], axis=0)
    return Layer(np.clip(rgb, 0, 255), np.asarray(seen, dtype=np.float32))


def completed(layer: Layer) -> Layer:
    """Fill what was not seen from the other half of the face, in the seen half's colors."""
    flipped = _toned(Layer(layer.rgb[:, ::-1], layer.seen[:, ::-1]), layer)
    best = np.maximum(layer.seen, flipped.seen * np.float32(_MIRRORED_TRUST))
    share = (layer.seen + np.float32(_UNSEEN)) / (best + np.float32(_UNSEEN))
    share[layer.seen > _SURELY_SEEN] = 1
    share = blurred(share, len(share) / 60)[..., None]
    return Layer(layer.rgb * share + flipped.rgb * (1 - share), best)


def _shares(weights: Sequence[FloatArray], power: int) -> list[FloatArray]:
    raised = [weight**power + np.float32(1e-6) for weight in weights]
    total = np.sum(raised, axis=0)
    return [blurred(each / total, len(total) / 100) for each in raised]


def _sharp_weights(layers: Sequence[Layer]) -> list[FloatArray]:
    """How well a layer sees fine structure: a small or soft photo shall not win over a sharp one."""
    favor = [_FAVOR_FIRST, *([1.0] * (len(layers) - 1))]
    return [
        layer.seen * np.float32(_sharpness(layer) * extra)
        for layer, extra in zip(layers, favor, strict=True)
    ]


def _sharpness(layer: Layer) -> float:
    fine = np.abs(layer.rgb - _broad(layer.rgb, _FINE_BAND)).mean(2)
    level = float((fine * layer.seen).sum() / max(float(layer.seen.sum()), 1.0))
    return float(np.clip(level / _FINE_LEVELS, 0.5, 1))


def _toned(layer: Layer, like: Layer) -> Layer:
    """Give a layer the broad colors of another: learned nearby where both are seen, farther off elsewhere."""
    both = (layer.seen * like.seen)[..., None]
    near, far = (
        (_broad(like.rgb * both, radius) + 0.01) / (_broad(layer.rgb * both, radius) + 0.01)
        for radius in (_NEAR, _FAR)
    )
    trust = np.clip(_broad(both, _NEAR) * 2, 0, 1)
    gain = np.clip(near * trust + far * (1 - trust), *_GAIN)
    return Layer(np.clip(layer.rgb * gain, 0, 255), layer.seen)


def _broad(image: FloatArray, radius: float) -> FloatArray:
    """Blur by a share of the side; wide blurs on a small copy."""
    side = image.shape[0]
    small_side = min(side, max(32, round(4 / radius)))
    soft = blurred(resized(image, (small_side, small_side)), radius * small_side)
    return resized(soft, (side, side)).reshape(image.shape)

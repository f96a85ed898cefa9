"""Put the source's skin under the target's light.

Light multiplies. So the texture gets a *gain* per channel, measured in linear light: one for the whole face, which takes the target's
skin tone and exposure over, and a slowly varying one, which takes its shading over (a lamp from the side, a red stage). Since display values are
nearly a power of light, a gain in light is a gain in display values, and the full picture need never be converted.

What a gain cannot say is how strong contrast is, and how hue changes with brightness (shadows redder, highlights paler). The second
step matches those: chroma is scaled, never up, and the hue that belongs to each brightness is exchanged for the target's. With a gray or
tinted target the scale is 0, and what is left is brightness in the target's tint. All is learned small; the result is a tiny gain
picture and a curve.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.raster import FloatArray

_GAMMA = 2.2
_LIGHT = ((np.arange(256) / 255) ** _GAMMA).astype(np.float32)
_LUMA = np.array([[0.299, 0.587, 0.114]], np.float32)

_SHADING_SHARE = 0.16
"""Blur of the shading in face sizes; half of it copies the target's features, and identity falls (SFace 0.54 to 0.51)."""

_EDGE_BLUR = 0.3
_DARKEST_LIGHT = 0.004
_MAX_GAIN, _MAX_SHADING = 6.0, 4.0
_CONTRAST = (0.9, 1.2)
_SKIN_REACH = 1.5
"""Spreads of brightness within which contrast is matched; brows, lashes and nostrils beyond keep their depth."""

_TINT_REACH = 46.0
"""Levels around the skin's mean brightness within which hue follows brightness; beyond, it stays."""

_MAX_TINT_SLOPE = 0.5
_DARK_LEVEL = 64.0
_MIN_WEIGHT = 50.0


@dataclass(frozen=True, slots=True, eq=False)
class ColorMatch:
    """How to color a texture like a target.

    Attributes:
        gain: `(k, l, 3)` float32 over the face's box, to be enlarged: factors on display values.
        chroma: Factor on what is left of a color after its brightness.
        curve: `(256, 3)` float32, what to add for each brightness.
        step: Levels between two entries of the curve; above 1 where the gain lifts highlights over 255.
    """

    gain: FloatArray
    chroma: float
    curve: FloatArray
    step: float

    def apply(self, texture: NDArray[np.uint8]) -> FloatArray:
        """Color a texture of any resolution over the same box.

        Args:
            texture: `(h, w, 3)` uint8 RGB.

        Returns:
            `(h, w, 3)` float32, 0 to 255 but for rounding.
        """
        lit = _lit(texture, self.gain)
        index = _luma_index(lit, self.step)
        return lit * np.float32(self.chroma) + cv2.LUT(index, self.curve[None])


def match_color(texture: NDArray[np.uint8], target: NDArray[np.uint8], weights: FloatArray, alpha: FloatArray, *, face_px: float, shading: float
) -> ColorMatch:
    """Learn how to color a texture like the target.

    Args:
        texture: `(h, w, 3)` uint8 RGB, the drawn source, small.
        target: `(h, w, 3)` uint8 RGB, the target at the same place and size.
        weights: `(h, w)` float32: how surely both show plain skin.
        alpha: `(h, w)` float32, the mask: at its edge the light is followed closely, so that no seam shows.
        face_px: Size of the face in these pixels.
        shading: 0 to 1, how much of the target's light and shade to take over.
    """
    gain = _gain(texture, target, weights, alpha, _SHADING_SHARE * face_px, shading)
    lit = _lit(texture, gain)
    step = max(1.0, float(lit.max()) / 255)
    chroma, curve = _tone(lit, target, weights, step)
    return ColorMatch(gain, chroma, curve, step)


def _lit(texture: NDArray[np.uint8], gain: FloatArray) -> FloatArray:
    full = cv2.resize(gain, texture.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return cv2.multiply(texture, full, dtype=cv2.CV_32F)


def _luma_index(rgb: FloatArray, step: float) -> NDArray[np.uint8]:
    """Brightness as a row of the curve, in each of three channels, as a table wants it."""
    index = cv2.transform(rgb, np.repeat(_LUMA / np.float32(step), 3, 0))
    return np.clip(np.rint(index), 0, 255).astype(np.uint8)


def _gain(
    texture: NDArray[np.uint8], target: NDArray[np.uint8], weights: FloatArray, alpha: FloatArray, blur_px: float, shading: float
) -> FloatArray:
    step = max(1.0, blur_px * _EDGE_BLUR / 2)
    size_wh = tuple(max(4, round(side / step)) for side in texture.shape[1::-1])

    def shrunk(image: FloatArray) -> FloatArray:
        return cv2.resize(image, size_wh, interpolation=cv2.INTER_AREA)

    small = shrunk(weights)
    ours, theirs = (
        shrunk(cv2.LUT(image, _LIGHT) * weights[..., None]) for image in (texture, target)
    )
    if float(weights.sum()) < _MIN_WEIGHT:
        return np.ones((*size_wh[::-1], 3), np.float32)
    whole = theirs.sum((0, 1)) / np.maximum(ours.sum((0, 1)), 1e-6)
    whole = np.clip(whole, 1 / _MAX_GAIN, _MAX_GAIN)
    ours = ours * whole.astype(np.float32)
    broad = _ratio(ours, theirs, small, blur_px / step) ** shading
    close = _ratio(ours, theirs, small, blur_px * _EDGE_BLUR / step) ** max(shading, 1.0 * (shading > 0))
    edge = 1 - shrunk(alpha)[..., None]
    local = broad + (close - broad) * edge
    return np.asarray((whole * local) ** (1 / _GAMMA), dtype=np.float32)


def _ratio(ours, theirs, weights, blur_px):
    def spread(image: FloatArray) -> FloatArray:
        return cv2.GaussianBlur(image, (0, 0), blur_px, borderType=cv2.BORDER_CONSTANT)

    near = spread(weights)[..., None] + 1e-3
    local = (spread(theirs) / near + _DARKEST_LIGHT) / (spread(ours) / near + _DARKEST_LIGHT)
    return np.clip(local, 1 / _MAX_SHADING, _MAX_SHADING)


def _tone(
    lit: FloatArray, target: NDArray[np.uint8], weights: FloatArray, step: float
) -> tuple[float, FloatArray]:
    ours, theirs = _Tone.of(lit, weights), _Tone.of(target.astype(np.float32), weights)
    level = np.arange(256, dtype=np.float32) * np.float32(step)
    contrast = float(np.clip(theirs.contrast / max(ours.contrast, 1e-3), *_CONTRAST))
    chroma = float(np.clip(theirs.chroma / max(ours.chroma, 1e-3), 0, 1))
    reach = _SKIN_REACH * ours.contrast
    wanted = level - ours.mean + theirs.mean
    wanted += (contrast - 1) * np.clip(level - ours.mean, -reach, 0)
    high = float(np.clip(theirs.highlight / max(ours.highlight, 1e-3), 0.2, 1.2))
    wanted += (high - 1) * np.clip(level - ours.mean, 0, None)
    slope = ours.slope * chroma + np.clip(theirs.slope - ours.slope * chroma, -_MAX_TINT_SLOPE, _MAX_TINT_SLOPE)
    curve = (wanted - chroma * level)[:, None]
    curve = curve + theirs.tint(wanted, slope) - chroma * ours.tint(level, ours.slope)
    return chroma, curve.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class _Tone:
    """Brightness and hue of skin: mean and spread of luma, color difference at the mean, its slope, and what is left of it."""

    mean: float
    contrast: float
    highlight: float
    color: FloatArray
    slope: FloatArray
    chroma: float

    @classmethod
    def of(cls, rgb: FloatArray, weights: FloatArray) -> "_Tone":
        share = (weights / max(float(weights.sum()), 1e-6)).ravel()
        pixels = rgb.reshape(-1, 3)
        luma = pixels @ _LUMA[0]
        difference = pixels - luma[:, None]
        mean, color = float(share @ luma), share @ difference
        offset = luma - mean
        variance = float(share @ (offset * offset))
        slope = (share * offset) @ (difference - color) / (variance + 25)
        rest = difference - color - offset[:, None] * slope
        highlight = float(share @ np.maximum(offset, 0)**2)**.5
        return cls(mean, variance**0.5, highlight, color, slope, float(share @ (rest * rest).sum(1)) ** 0.5)

    def tint(self, level: FloatArray, slope: FloatArray) -> FloatArray:
        """Color difference that belongs to each brightness; none in black."""
        reach = np.clip(level - self.mean, -_TINT_REACH, _TINT_REACH)
        fade = np.clip(level / min(_DARK_LEVEL, max(self.mean, 1.0)), 0, 1)
        return (self.color + reach[:, None] * slope) * fade[:, None]

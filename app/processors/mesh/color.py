"""Put the source's skin under the target's light.

Light multiplies. So the texture gets a *gain* per channel, measured in linear light: one for the whole
face, which takes the target's skin tone and exposure over, and a slowly varying one, which takes its
shading over (a lamp from the side, a red stage). Towards the mask's edge the shading is followed more
closely, so that both sides of the seam agree. Since display values are nearly a power of light, a gain
in light is a gain in display values, and the full picture need never be converted.

What a gain cannot say is how strong contrast is, and how hue changes with brightness (shadows redder,
highlights paler). The second step matches those as functions of brightness: highlights stay within what
the target has room for, chroma is scaled, never up, and the hue that belongs to each brightness is
exchanged for the target's. With a gray or tinted target the scale is 0, and what is left is brightness
in the target's tint.

All is learned small; the result is a small gain picture and two curves.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.filters import LUMA, FloatArray, blurred, blurred_on_nothing, ramp, resized

_GAMMA = 2.2
_LIGHT = ((np.arange(256) / 255) ** _GAMMA).astype(np.float32)

_BROAD, _CLOSE = 0.18, 0.05
"""Blur of the shading in face sizes, inside and towards the edge.

Half of the broad one copies the target's features all over, and identity falls.
"""

_CLOSE_HUE = 0.8
"""Share by which the shading's hue, unlike its brightness, follows the target closely all over: ruddy cheeks on a pale
face leave the rest of it green, and hue says little about who it is."""

_EDGE_PULL = 1.25
_EDGE_BLUR = 3.0
"""In pixels of the gain picture, which are half of the close blur each."""

_DARKEST_LIGHT = 0.004
_MAX_GAIN, _MAX_SHADING = 6.0, 4.0
_COOLING = 0.15
"""Share by which blue must gain over red until features are spared."""

_SPARED = 0.65
"""Wholly spared, the lips of a dark face turn orange; not spared, purple."""

_HAIR_DARK = (0.3, 0.6)
"""Against the skin: as dark as the first are brows, which are wholly spared; lips are not."""


_CONTRAST = (0.9, 1.2)
_HIGHLIGHTS = (0.9, 1.2)
"""Flatter highlights than these cost identity: 0.03 of SFace cosine at 0.5."""

_CEILING, _MIN_ROOM = 4.0, 28.0
"""How far highlights may rise above the mean: in spreads of the target's, and at least in levels."""

_KNEE = 0.45
"""Share of that room up to which nothing is flattened: a cheek in full light is no highlight."""

_WHITE = 250.0
_SKIN_REACH = 1.5
"""Spreads below the mean within which contrast is matched; brows and nostrils beyond keep their depth."""

_TINT_REACH = 46.0
"""Levels around the skin's mean brightness within which hue follows brightness; beyond, it stays."""

_TINT_SPREADS = 2.0
"""And within so many of the skin's own spreads. What it does beyond, nobody saw: a flatly lit face with pale highlights
would bleach all that is brighter."""

_MAX_TINT_SLOPE = 0.5
_DARK_LEVEL = 64.0
_NO_CHROMA = 0.4
"""Levels of color spread that rounding alone makes; a gray target stays gray to the last pixel."""

_MIN_WEIGHT = 50.0
_STRIDE = 2
"""Statistics look at every second pixel and row; means of some ten thousand do not notice."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FacePair:
    """Both faces over the same box, small.

    Attributes:
        texture: `(h, w, 3)` uint8 RGB, the drawn source.
        target: `(h, w, 3)` uint8 RGB.
        weights: `(h, w)` float32: how surely both show plain skin.
        colored: `(h, w)` float32: how surely the texture has the color of skin; 0 on brows, lips, beard.
        alpha: `(h, w)` float32, the mask.
        face_px: Size of the face in these pixels.
    """

    texture: NDArray[np.uint8]
    target: NDArray[np.uint8]
    weights: FloatArray
    colored: FloatArray
    alpha: FloatArray
    face_px: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ColorMatch:
    """How to color a texture: `texture * gain`, then `* factor + offset` by the brightness it then has.

    Attributes:
        gain: `(h, w, 3)` float32 over the face's box, to be enlarged.
        factor: `(256,)` float32.
        offset: `(256, 3)` float32.
        step: Levels between two entries of the curves; above 1 where the gain lifts highlights over 255.
    """

    gain: FloatArray
    factor: FloatArray
    offset: FloatArray
    step: float

    def apply(self, texture: NDArray[np.uint8]) -> FloatArray:
        """Color a texture of any resolution over the same box.

        Args:
            texture: `(h, w, 3)` uint8 RGB.

        Returns:
            `(h, w, 3)` float32, 0 to 255 but for rounding.
        """
        lit = _lit(texture, self.gain)
        index = _curve_index(lit, self.step)
        lit *= cv2.LUT(index, self.factor)
        lit += cv2.LUT(index, self.offset[None])
        return lit


def match_color(pair: FacePair, shading: float) -> ColorMatch:
    """Learn how to color a texture like the target.

    Args:
        pair: Both faces.
        shading: 0 to 1, how much of the target's light and shade to take over.
    """
    gain = _features_spared(_gain(pair, shading), pair)
    lit = _lit(pair.texture, gain)
    step = max(1.0, float(lit.max()) / 255)
    ours, theirs = _tone_of(lit, pair.weights), _tone_of(pair.target, pair.weights)
    factor, offset = _curves(ours, theirs, step)
    return ColorMatch(gain=gain, factor=factor, offset=offset, step=step)


def _lit(texture: NDArray[np.uint8], gain: FloatArray) -> FloatArray:
    full = resized(gain, (texture.shape[1], texture.shape[0]))
    return np.asarray(cv2.multiply(texture, full, dtype=cv2.CV_32F), dtype=np.float32)


def _curve_index(rgb: FloatArray, step: float) -> NDArray[np.uint8]:
    """Brightness as an entry of the curves, in each of three channels, as `cv2.LUT` wants it."""
    index = cv2.convertScaleAbs(cv2.transform(rgb, LUMA / np.float32(step)))
    return np.asarray(cv2.merge([index, index, index]), dtype=np.uint8)


def _gain(pair: FacePair, shading: float) -> FloatArray:
    """Factors on display values for each pixel of the pair."""
    h, w = pair.weights.shape
    if float(pair.weights.sum()) < _MIN_WEIGHT:
        return np.ones((h, w, 3), np.float32)
    step = max(1.0, pair.face_px * _CLOSE / 2)
    size_wh = max(4, round(w / step)), max(4, round(h / step))
    weights = resized(pair.weights, size_wh)
    ours, theirs = (
        _weighted_light(image, pair.weights, size_wh) for image in (pair.texture, pair.target)
    )
    whole = theirs.sum((0, 1)) / np.maximum(ours.sum((0, 1)), 1e-6)
    whole = np.clip(whole, 1 / _MAX_GAIN, _MAX_GAIN)
    broad, close = (
        _blurred_ratio(ours * whole, theirs, weights, share * pair.face_px / step)
        for share in (_BROAD, _CLOSE)
    )
    broad = _in_hue_of(close, broad, _CLOSE_HUE) ** shading
    light = whole * (broad + (close - broad) * near_edge(pair.alpha, size_wh))
    return resized(light ** np.float32(1 / _GAMMA), (w, h))


def _in_hue_of(hue: FloatArray, light: FloatArray, share: float) -> FloatArray:
    """One gain's brightness with, by this share, another one's color."""
    gray_hue, gray = (cv2.transform(gain, np.repeat(LUMA, 3, 0)) for gain in (hue, light))
    mixed = light + (hue * (gray / gray_hue) - light) * np.float32(share)
    return np.asarray(mixed, dtype=np.float32)


def _weighted_light(
    image: NDArray[np.uint8], weights: FloatArray, size_wh: tuple[int, int]
) -> FloatArray:
    light = np.asarray(cv2.LUT(image, _LIGHT), dtype=np.float32)
    return resized(light * weights[..., None], size_wh)


def near_edge(alpha: FloatArray, size_wh: tuple[int, int]) -> FloatArray:
    """1 at the mask's edge and beyond, falling to 0 inside, `(h, w, 1)`."""
    soft = blurred(resized(alpha, size_wh), _EDGE_BLUR)
    pull = np.minimum(np.float32(_EDGE_PULL) * (1 - soft), 1)
    return np.asarray(pull[..., None], dtype=np.float32)


def _blurred_ratio(
    ours: FloatArray, theirs: FloatArray, weights: FloatArray, blur_px: float
) -> FloatArray:
    """Light of the target over that of the texture, both weighted and blurred."""
    soft = blurred_on_nothing(np.dstack([ours, theirs, weights]), blur_px)
    floor = (soft[..., 6:] + np.float32(1e-3)) * np.float32(_DARKEST_LIGHT)
    ratio = (soft[..., 3:6] + floor) / (soft[..., :3] + floor)
    gray = np.asarray(cv2.transform(ratio, np.repeat(LUMA, 3, 0)), dtype=np.float32)
    return ratio * (np.clip(gray, 1 / _MAX_SHADING, _MAX_SHADING) / gray)


def _features_spared(gain: FloatArray, pair: FacePair) -> FloatArray:
    """Keep what is no skin from turning blue.

    Brown skin that is to become pale needs far more blue than red. Brows and lips, which never had the
    brown, would come out blue and purple; they get more nearly one factor for all channels instead. A gain
    that warms is left alone: it may be a lamp.
    """
    cooling = np.clip((gain[..., 2] / gain[..., 0] - 1) / np.float32(_COOLING), 0, 1)
    dark = 1 - ramp(_darkness(pair), _HAIR_DARK)
    spared = np.float32(_SPARED) + np.float32(1 - _SPARED) * dark
    share = (spared * cooling * (1 - pair.colored))[..., None]
    even = np.asarray(cv2.transform(gain, np.repeat(LUMA, 3, 0)), dtype=np.float32)
    return np.asarray(gain + (even - gain) * share, dtype=np.float32)


def _darkness(pair: FacePair) -> FloatArray:
    """Brightness of the texture against its skin's."""
    luma = np.asarray(cv2.cvtColor(pair.texture, cv2.COLOR_RGB2GRAY), dtype=np.float32)
    skin = float((luma * pair.weights).sum() / max(float(pair.weights.sum()), 1e-3))
    return luma / np.float32(max(skin, 1.0))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Tone:
    """Brightness and hue of skin.

    Attributes:
        mean: Of luma.
        spread: Of luma.
        rise: Spread of the luma above the mean.
        color: `(3,)` color less luma at the mean.
        slope: `(3,)` change of `color` per level of luma.
        chroma: Spread of color that luma does not explain.
    """

    mean: float
    spread: float
    rise: float
    color: FloatArray
    slope: FloatArray
    chroma: float

    def tint(self, level: FloatArray, slope: FloatArray) -> FloatArray:
        """Color difference that belongs to each brightness; none in black."""
        most = min(_TINT_REACH, _TINT_SPREADS * self.spread)
        reach = np.clip(level - self.mean, -most, most)
        fade = np.clip(level / min(_DARK_LEVEL, max(self.mean, 1.0)), 0, 1)
        return np.asarray((self.color + reach[:, None] * slope) * fade[:, None], dtype=np.float32)


def _tone_of(rgb: NDArray[np.uint8] | FloatArray, weights: FloatArray) -> _Tone:
    chosen = weights[::_STRIDE, ::_STRIDE].ravel()
    share = chosen / max(float(chosen.sum()), 1e-6)
    pixels = rgb[::_STRIDE, ::_STRIDE].reshape(-1, 3).astype(np.float32)
    luma = pixels @ LUMA[0]
    difference = pixels - luma[:, None]
    mean, color = float(share @ luma), share @ difference
    offset = luma - np.float32(mean)
    variance = float(share @ (offset * offset))
    slope = (share * offset) @ (difference - color) / (variance + 25)
    rest = difference - color - offset[:, None] * slope
    return _Tone(
        mean=mean,
        spread=variance**0.5,
        rise=float(share @ np.square(np.maximum(offset, 0))) ** 0.5,
        color=color,
        slope=slope,
        chroma=float(share @ (rest * rest).sum(1)) ** 0.5,
    )


def _curves(ours: _Tone, theirs: _Tone, step: float) -> tuple[FloatArray, FloatArray]:
    level = np.arange(256, dtype=np.float32) * np.float32(step)
    wanted = _wanted_level(level, ours, theirs)
    chroma = float(np.clip((theirs.chroma - _NO_CHROMA) / max(ours.chroma, 1e-3), 0, 1))
    factor = chroma * np.minimum(1, wanted / np.maximum(level, 1))
    bend = np.clip(theirs.slope - ours.slope * chroma, -_MAX_TINT_SLOPE, _MAX_TINT_SLOPE)
    theirs_tint = theirs.tint(wanted, ours.slope * chroma + bend)
    ours_tint = ours.tint(level, ours.slope) * factor[:, None]
    offset = (wanted - factor * level)[:, None] + theirs_tint - ours_tint
    return factor.astype(np.float32), offset.astype(np.float32)


def _wanted_level(level: FloatArray, ours: _Tone, theirs: _Tone) -> FloatArray:
    """The brightness that each brightness of the lit texture shall have."""
    contrast = np.clip(theirs.spread / max(ours.spread, 1e-3), *_CONTRAST)
    rise = np.clip(theirs.rise / max(ours.rise, 1e-3), *_HIGHLIGHTS)
    above = np.maximum(level - ours.mean, 0) * rise
    below = np.minimum(level - ours.mean, 0)
    below = below + (contrast - 1) * np.maximum(below, -_SKIN_REACH * ours.spread)
    room = max(_CEILING * theirs.rise, _MIN_ROOM)
    room = min(room, max(_WHITE - theirs.mean, 4.0))
    knee = _KNEE * room
    beyond = np.maximum(above - knee, 0) / (room - knee)
    shoulder = np.minimum(above, knee) + (room - knee) * (1 - np.exp(-beyond))
    return np.asarray(theirs.mean + shoulder + below, dtype=np.float32)

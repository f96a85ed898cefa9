"""No brighter, no paler and no grayer than the target's skin.

A camera clips: where hot light brings red to its end, skin that is brighter still only turns paler, and most pictures
do not let it come to that. A texture that is brightened to the target's mean knows nothing of it; its cheeks rise above
all that the target shows, and look like chalk. So the lit face is exposed once more through the target's own end of
the scale: brightness bends towards the target's brightest skin, and what the mean loses by that is given back by more
exposure, which also lifts the shadows, as it does in the camera.

What each brightness has for a color is then read off the target, level by level: where red is clipped, no straight
line says it. And skin that is grayer than the target's ever is at that brightness, such as a shaven chin or the bags
under eyes, is brought nearer to it. Brows, lips and beards have colors of their own and keep them.

All of it varies slowly over a face, so it is worked out at working size.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.color import FacePair
from app.processors.mesh.filters import FloatArray, luma_of, ramp

_LEVELS = np.arange(256, dtype=np.float32)

_BRIGHTEST = 99.0
"""Percentile of the target's skin above which single pixels and not skin decide."""

_END_OF_SCALE = (210.0, 220.0)
"""Levels of the strongest channel, in the middle of the skin, from which half of the skin lies where a camera's curve
grows flat, and surely does."""

_LEEWAY = 20.0
"""Levels by which light that does not clip lets ours be brighter. An oily nose may be; without, another 0.005 of
SFace cosine are lost."""

_BEND = (4.0, 10.0)
"""Width of the bend in levels: half the way from the middle to the brightest, within these."""

_MOST_EXPOSURE = 1.25
_EXPOSURE_STEPS = 4

_SMOOTH = 12.0
"""Levels over which colors of neighboring brightness are averaged; half as many cost 0.001 of SFace cosine."""

_MAX_SHIFT = 24.0
_DARK = (24.0, 72.0)
"""Levels up to which nothing is known of color, and from which it is."""

_GRAYEST = 95.0
"""Percentile of what the target's skin lacks of the chroma usual at its brightness, which ours may tend to lack."""

_MIN_GRAYNESS = 3.0
_HAS_HUE = (4.0, 10.0)
"""Levels of chroma from which there is a hue to speak of; a gray target has none."""

_MIN_PIXELS = 100
_STRIDE = 3
"""Statistics look at every third pixel and row."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Exposure:
    """What to do with a lit face, by its brightness.

    Attributes:
        level: `(256,)` float32, the brightness that each brightness shall have.
        tint: `(256, 3)` float32, the target's color less luma at each brightness.
        shift: `(256, 3)` float32, what ours lacks of it.
        grayness: How far below the usual chroma skin may fall, in levels.
    """

    level: FloatArray
    tint: FloatArray
    shift: FloatArray
    grayness: float

    def between(self, other: "Exposure", share: float) -> "Exposure":
        """This one at 0, the other at 1."""
        part = np.float32(share)
        return Exposure(
            level=self.level + part * (other.level - self.level),
            tint=self.tint + part * (other.tint - self.tint),
            shift=self.shift + part * (other.shift - self.shift),
            grayness=self.grayness + share * (other.grayness - self.grayness),
        )

    def change(self, shown: FloatArray, colored: FloatArray) -> FloatArray:
        """What to add to a lit face.

        Args:
            shown: `(h, w, 3)` float32 RGB.
            colored: `(h, w)` float32, 0 to 1: how surely it has the color of skin.

        Returns:
            `(h, w, 3)` float32.
        """
        out = _leveled(shown, self.level)
        luma, color = _parted(out)
        index = _index(luma)
        shift = self.shift[index]
        shift += _regained(color + shift, self.tint, index, self.grayness)
        out += shift * (colored * ramp(luma, _DARK))[..., None]
        return np.asarray(out - shown, dtype=np.float32)


def expose(shown: FloatArray, pair: FacePair) -> Exposure:
    """Learn how a lit face is to be exposed; it stays as it is where too little of both is skin.

    Args:
        shown: `(h, w, 3)` float32 RGB, the texture in the target's light.
        pair: Both faces over the same box.
    """
    chosen = ((pair.weights > 0.5) & (pair.alpha > 0))[::_STRIDE, ::_STRIDE]
    if np.count_nonzero(chosen) < _MIN_PIXELS:
        zeros = np.zeros((256, 3), np.float32)
        return Exposure(level=_LEVELS, tint=zeros, shift=zeros, grayness=_MIN_GRAYNESS)
    ours = shown[::_STRIDE, ::_STRIDE][chosen][None]
    theirs = pair.target[::_STRIDE, ::_STRIDE][chosen][None].astype(np.float32)
    level = _level_curve(luma_of(ours), luma_of(theirs), _clipping(theirs))
    tint = _color_by_level(theirs)
    shift = np.clip(tint - _color_by_level(_leveled(ours, level)), -_MAX_SHIFT, _MAX_SHIFT)
    luma, color = _parted(theirs)
    lacking = float(np.percentile(_lack(color, tint, _index(luma)), _GRAYEST))
    return Exposure(level=level, tint=tint, shift=shift, grayness=max(_MIN_GRAYNESS, lacking))


def _parted(rgb: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Luma, and color less luma."""
    luma = luma_of(rgb)
    return luma, rgb - luma[..., None]


def _leveled(rgb: FloatArray, level: FloatArray) -> FloatArray:
    """Brightness by the curve, hue and saturation as they were."""
    factor = level / np.maximum(_LEVELS, 1)
    return np.asarray(rgb * factor[_index(luma_of(rgb))][..., None], dtype=np.float32)


def _index(luma: FloatArray) -> NDArray[np.uint8]:
    return np.asarray(cv2.convertScaleAbs(luma), dtype=np.uint8)


def _clipping(rgb: FloatArray) -> float:
    """How far the light on skin, `(1, n, 3)`, is at the end of the scale, 0 to 1."""
    return float(ramp(np.median(rgb.max(2)), _END_OF_SCALE))


def _level_curve(ours: FloatArray, theirs: FloatArray, clipping: float) -> FloatArray:
    """The brightness that each level shall have, given the luma of both skins."""
    brightest, middle = np.percentile(theirs, [_BRIGHTEST, 50])
    bend = float(np.clip((brightest - middle) / 2, *_BEND))
    top = float(brightest) + (1 - clipping) * _LEEWAY
    mean, exposure = float(ours.mean()), 1.0
    for _ in range(_EXPOSURE_STEPS):
        exposure *= mean / max(float(_bent(ours * np.float32(exposure), top, bend).mean()), 1.0)
    exposure = 1 + clipping * (min(exposure, _MOST_EXPOSURE) - 1)
    return _bent(_LEVELS * np.float32(exposure), top, bend)


def _bent(level: FloatArray, top: float, bend: float) -> FloatArray:
    """Levels that approach the top and never reach it; far below, they stay."""
    room = np.logaddexp(0, (top - level) / bend)
    return np.asarray(np.maximum(top - bend * room, 0), dtype=np.float32)


def _color_by_level(rgb: FloatArray) -> FloatArray:
    """Mean color less luma at each level, `(256, 3)`; the nearest known one where there is none."""
    luma, color = _parted(rgb)
    columns = *color.reshape(-1, 3).T, None
    sums = [np.bincount(_index(luma).ravel(), column, 256) for column in columns]
    kernel = cv2.getGaussianKernel(round(6 * _SMOOTH) | 1, _SMOOTH)
    border = cv2.BORDER_CONSTANT
    smooth = cv2.filter2D(np.stack(sums, 1), cv2.CV_64F, kernel, borderType=border)
    known = smooth[:, 3] >= min(1.0, smooth[:, 3].max())
    means = smooth[known, :3] / smooth[known, 3:]
    spread = [np.interp(_LEVELS, _LEVELS[known], mean) for mean in means.T]
    return np.stack(spread, 1).astype(np.float32)


def _lack(color: FloatArray, tint: FloatArray, index: NDArray[np.uint8]) -> FloatArray:
    """How much less chroma colors have than the tint of their level, in its direction."""
    chroma = _chroma(tint)
    hue = tint / np.maximum(chroma, np.float32(1e-3))[:, None]
    return np.asarray(chroma[index] - np.einsum("ijk,ijk->ij", color, hue[index]), np.float32)


def _regained(
    color: FloatArray, tint: FloatArray, index: NDArray[np.uint8], grayness: float
) -> FloatArray:
    """What to add to colors that lack more chroma than skin may."""
    lack = np.maximum(_lack(color, tint, index), 0)
    excess = lack - np.float32(grayness) * (1 - np.exp(lack * np.float32(-1 / grayness)))
    chroma = _chroma(tint)
    hue = tint * (ramp(chroma, _HAS_HUE) / np.maximum(chroma, np.float32(1e-3)))[:, None]
    return np.asarray(hue[index] * excess[..., None], dtype=np.float32)


def _chroma(color: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(color, axis=-1), dtype=np.float32)

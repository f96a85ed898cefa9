"""What is skin, judged by the face itself.

There is no segmentation network here, so a face's own cheeks, nose and the spot between its brows say
how its skin looks: the median in CIELAB and how far the middle half strays from it. A pixel far off in
those units is hair, cloth or metal. Lightness counts for less than hue, because shadows are still skin;
darker counts for more than brighter, because hair is dark and a highlight is skin. The verdict is used
where a wrong one does little harm: where hair falls, and to weigh pixels in the color statistics.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.filters import FloatArray, blurred

_MIN_SPREAD = np.array([10.0, 4.0, 4.0], np.float32)
"""Units of 8-bit LAB; below these, camera noise and compression decide."""

_DARKER, _BRIGHTER = 0.55, 0.35
_MIN_PIXELS = 30


@dataclass(frozen=True, slots=True)
class Strictness:
    """Distances from the skin tone, in its spreads: up to the first a pixel surely is skin, from the second never."""

    surely: float
    never: float


@dataclass(frozen=True, slots=True, eq=False)
class SkinTone:
    """Median and spread of a face's skin, `(3,)` float32 each, in 8-bit LAB."""

    median: FloatArray
    spread: FloatArray


def skin_likelihood(
    rgb: NDArray[np.uint8], seeds: NDArray[np.bool_], strictness: Strictness
) -> FloatArray:
    """How much each pixel looks like the skin of this face.

    Args:
        rgb: `(h, w, 3)` uint8.
        seeds: `(h, w)`, true on pixels that are skin on almost every face.
        strictness: Where to draw the line.

    Returns:
        `(h, w)` float32, 0 to 1; 1 everywhere when there are too few seeds to learn from.
    """
    lab = np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB), dtype=np.uint8)
    tone = skin_tone(lab, seeds)
    if tone is None:
        return np.ones(rgb.shape[:2], np.float32)
    squares = cv2.LUT(blurred(lab, 0.8), _square_offsets(tone))
    distance = np.sqrt(cv2.transform(squares, np.ones((1, 3), np.float32)))
    share = (strictness.never - distance) / (strictness.never - strictness.surely)
    return np.asarray(np.clip(share, 0, 1), dtype=np.float32)


def skin_tone(lab: NDArray[np.uint8], seeds: NDArray[np.bool_]) -> SkinTone | None:
    """Learn the tone from pixels that are surely skin; `None` when there are too few of them."""
    samples = lab[seeds]
    if len(samples) < _MIN_PIXELS:
        return None
    median = np.median(samples, axis=0)
    spread = np.maximum(1.48 * np.median(np.abs(samples - median), axis=0), _MIN_SPREAD)
    return SkinTone(median.astype(np.float32), spread.astype(np.float32))


def _square_offsets(tone: SkinTone) -> FloatArray:
    """Squared distance from the tone for each value of each channel, `(1, 256, 3)`, for `cv2.LUT`."""
    offset = (np.arange(256, dtype=np.float32)[:, None] - tone.median) / tone.spread
    offset[:, 0] *= np.where(offset[:, 0] < 0, np.float32(_DARKER), np.float32(_BRIGHTER))
    return np.asarray(np.square(offset)[None], dtype=np.float32)

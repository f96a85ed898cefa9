"""What is skin, judged by the face itself.

There is no segmentation network here, so a face's own cheeks, nose and the spot between its brows say how its skin looks: the median
in CIELAB and how far the middle half strays from it. A pixel far off in those units is hair, cloth or metal. Lightness counts for
less than hue, because shadows are still skin; darker than skin counts for more than brighter, because hair is dark and a highlight is not.
The verdict is used where a wrong one does no harm: above the brows, where hair falls, and to weigh pixels in the color statistics.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.raster import FloatArray

_MIN_SPREAD = np.array([10.0, 4.0, 4.0], np.float32)
"""Units of 8-bit LAB; below these, camera noise and compression decide."""

_DARKER, _BRIGHTER = 0.55, 0.35
_MIN_PIXELS = 30


@dataclass(frozen=True, slots=True, eq=False)
class SkinTone:
    """Median and spread of a face's skin, `(3,)` float32 each, in 8-bit LAB."""

    median: FloatArray
    spread: FloatArray


def lab(rgb: NDArray[np.uint8]) -> FloatArray:
    """8-bit LAB as float32, `(h, w, 3)`."""
    return cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB).astype(np.float32)


def skin_tone(lab_image: FloatArray, seeds: NDArray[np.bool_]) -> SkinTone | None:
    """Learn the tone from pixels that are surely skin; `None` when there are too few of them."""
    samples = lab_image[seeds]
    if len(samples) < _MIN_PIXELS:
        return None
    median = np.median(samples, axis=0)
    spread = np.maximum(1.48 * np.median(np.abs(samples - median), axis=0), _MIN_SPREAD)
    return SkinTone(median.astype(np.float32), spread.astype(np.float32))


def skin_likelihood(
    lab_image: FloatArray, tone: SkinTone | None, surely: float, never: float
) -> FloatArray:
    """How much each pixel looks like skin.

    Args:
        lab_image: `(h, w, 3)` from `lab`.
        tone: From `skin_tone`; without one everything counts as skin.
        surely: Distance in spreads up to which the answer is 1.
        never: Distance from which it is 0.

    Returns:
        `(h, w)` float32, 0 to 1.
    """
    if tone is None:
        return np.ones(lab_image.shape[:2], np.float32)
    offset = (cv2.GaussianBlur(lab_image, (0, 0), 0.8) - tone.median) / tone.spread
    offset[..., 0] *= np.where(offset[..., 0] < 0, np.float32(_DARKER), np.float32(_BRIGHTER))
    distance = np.sqrt((offset * offset).sum(2))
    return np.asarray(np.clip((never - distance) / (never - surely), 0, 1), dtype=np.float32)

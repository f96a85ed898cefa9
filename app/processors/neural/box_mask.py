"""How much of a swapped crop is put back: a soft box around the face, in the crop's own pixels.

What a swap network gives beyond the face is the target's own picture at the network's resolution, which is lower. So
the box ends a little outside the face, and never at the crop's border.
"""

import numpy as np

from app.core.types import FloatArray

_GROWN = 0.12
"""What is added to the face's box on each side, of its longer side: chin and forehead are wholly inside."""
_SOFT = 0.15
"""Width of the soft edge, of the crop's side; it lies inside the box."""


def face_box_mask(points: FloatArray, side_px: int) -> FloatArray:
    """The mask of one face.

    Args:
        points: `(k, 2)` float32, landmarks in crop pixels.
        side_px: Side `S` of the crop.

    Returns:
        `(S, S)` float32, 0 at the box's edge and beyond, 1 inside; 0 everywhere where the face is not in the crop.
    """
    low, high = points.min(0), points.max(0)
    pad = np.float32(_GROWN * float((high - low).max()))
    across, down = (
        _ramp(float(low[axis] - pad), float(high[axis] + pad), side_px) for axis in (0, 1)
    )
    return np.asarray(down[:, None] * across, np.float32)


def _ramp(start: float, end: float, side_px: int) -> FloatArray:
    """0 up to `start` and from `end` on, smoothly 1 between; ends that lie outside are moved to the border."""
    start, end = max(start, 0.0), min(end, side_px - 1.0)
    soft = max(_SOFT * side_px, 1.0)
    at = np.arange(side_px, dtype=np.float32)
    rise = np.clip(np.minimum(at - start, end - at) / soft, 0, 1)
    return np.asarray(rise * rise * (3 - 2 * rise), np.float32)

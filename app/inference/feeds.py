"""Pictures as networks want them."""

import numpy as np

from app.core.types import FloatArray, RgbImage, check_shape
from app.inference.spec import InputContract


def picture_feed(pictures: RgbImage, contract: InputContract) -> FloatArray:
    """Turn RGB pictures of one size into a network's input.

    Args:
        pictures: `(n, H, W, 3)` uint8 RGB.
        contract: Order of colors and axes, mean and scale.

    Returns:
        `(n, 3, H, W)` or `(n, H, W, 3)` float32, contiguous.

    Raises:
        ValueError: The array is no stack of RGB pictures.
    """
    check_shape("pictures", pictures, (None, None, None, 3))
    ordered = pictures[..., ::-1] if contract.color == "bgr" else pictures
    mean, std = np.array(contract.mean, np.float32), np.array(contract.std, np.float32)
    scaled = (ordered.astype(np.float32) - mean) / std
    if contract.layout == "nchw":
        scaled = scaled.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(scaled, np.float32)

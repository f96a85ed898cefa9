"""68 landmarks by 2D-FAN of the public zoo, as the mesh that everything else knows.

The numbering is that of the 300-W data set: jaw 0 to 16, brows to 26, nose to 35, eyes to 47, mouth to 67.
"""

import cv2
import numpy as np

from app.core.geometry import FloatArray
from app.core.types import RgbImage
from app.faces.landmarks import CROP_PX, SIDE_PER_FACE, FaceLandmarker, Located
from app.faces.mesh_of_68 import MeshFit
from app.inference.feeds import picture_feed
from app.inference.soundness import require_sound
from app.inference.spec import ModelId, ModelZoo, Outputs

_SEEN_PX, _GRID = 256, 64
_FACE_PX = 195.0
"""Longer side of the face's box in the crop that the network was trained with."""
_INNER_PX = round(CROP_PX / SIDE_PER_FACE * _SEEN_PX / _FACE_PX)
_BORDER_PX = (CROP_PX - _INNER_PX) // 2
_INNER = slice(_BORDER_PX, _BORDER_PX + _INNER_PX)
"""The middle of the usual crop in which the face's box is as large as the network wants it."""
_CERTAIN = 0.9
"""A heat map's peak that counts as certain."""


class FanLandmarker(FaceLandmarker):
    """Measures faces with 2D-FAN; see `FaceLandmarker`.

    The network sees the middle of the usual crop, which shows more around the face than it was trained with.

    Args:
        zoo: Has the model.
        model_id: Of the landmarker.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo, model_id: ModelId) -> None:
        self._model_id = model_id
        self._contract = zoo.spec(model_id).input
        self._session = zoo.session(model_id)
        self._fit = MeshFit()

    def in_crops(self, crops: RgbImage) -> Located:
        """See `FaceLandmarker.in_crops`."""
        seen = np.empty((len(crops), _SEEN_PX, _SEEN_PX, 3), np.uint8)
        for square, crop in zip(seen, crops, strict=True):
            cv2.resize(crop[_INNER, _INNER], (_SEEN_PX, _SEEN_PX), dst=square)
        feeds = {self._contract.name: picture_feed(seen, self._contract)}
        points, scores = decode_fan(self._session.run(feeds))
        in_crop = require_sound(points, self._model_id) * np.float32(
            _INNER_PX / _SEEN_PX
        ) + np.float32(_BORDER_PX)
        return self._fit.mesh(in_crop), scores


def decode_fan(outputs: Outputs) -> tuple[FloatArray, FloatArray]:
    """Points `(n, 68, 2)` in the network's pixels, and scores `(n,)`, of its two outputs.

    Args:
        outputs: Points `(n, 68, 3)` on a grid of 64, and heat maps `(n, 68, 64, 64)`, in this order.
    """
    grid, heat = (np.asarray(values, np.float32) for values in outputs.values())
    points = grid[..., :2] * (_SEEN_PX / _GRID)
    peaks = heat.reshape(*heat.shape[:2], -1).max(-1).mean(-1)
    return points, np.clip(peaks / _CERTAIN, 0, 1).astype(np.float32)

"""68 landmarks by 2D-FAN of the public zoo.

The numbering is that of the 300-W data set: jaw 0 to 16, brows to 26, nose to 35, eyes to 47, mouth to 67.
"""

from collections.abc import Sequence

import numpy as np

from app.core.geometry import FloatArray, invert_affine, transform_points
from app.core.picture import Picture
from app.core.types import Face
from app.faces.sampling import sample_square
from app.inference.feeds import picture_feed
from app.inference.spec import ModelId, ModelZoo, Outputs

_CROP_PX, _GRID = 256, 64
_FACE_PX = 195.0
"""Longer side of the face's box in the crop."""
_CERTAIN = 0.9
"""A heat map's peak that counts as certain."""
_BATCH = 16


class FanLandmarker:
    """Measures 68 points of many faces at once.

    Args:
        zoo: Has the model.
        model_id: Of the landmarker.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo, model_id: ModelId) -> None:
        self._contract = zoo.spec(model_id).input
        self._session = zoo.session(model_id)

    def locate(self, items: Sequence[tuple[Picture, Face]]) -> tuple[FloatArray, FloatArray]:
        """Measure each face in its upright box.

        Returns:
            Points `(n, 68, 2)` in picture pixels, and scores `(n,)`, 0 to 1.
        """
        points = np.zeros((len(items), 68, 2), np.float32)
        scores = np.zeros(len(items), np.float32)
        for start in range(0, len(items), _BATCH):
            part = slice(start, start + _BATCH)
            affines = [crop_affine(face.bbox_xyxy) for _, face in items[part]]
            crops = [
                sample_square(picture, affine, _CROP_PX)
                for (picture, _), affine in zip(items[part], affines, strict=True)
            ]
            feed = picture_feed(np.stack(crops), self._contract)
            in_crop, scores[part] = decode_fan(self._session.run({self._contract.name: feed}))
            for row, affine in enumerate(affines):
                points[start + row] = transform_points(in_crop[row], invert_affine(affine))
        return points, scores


def crop_affine(bbox_xyxy: FloatArray) -> FloatArray:
    """The `(2, 3)` affine from picture to crop that the network was trained with."""
    low, high = bbox_xyxy[:2], bbox_xyxy[2:]
    scale = _FACE_PX / max(float((high - low).max()), 1.0)
    shift = _CROP_PX / 2 - scale * (low + high) / 2
    return np.array([[scale, 0, shift[0]], [0, scale, shift[1]]], np.float32)


def decode_fan(outputs: Outputs) -> tuple[FloatArray, FloatArray]:
    """Points in crop pixels and scores of the network's two outputs.

    Args:
        outputs: Points `(n, 68, 3)` on a grid of 64, and heat maps `(n, 68, 64, 64)`, in this order.
    """
    grid, heat = (np.asarray(values, np.float32) for values in outputs.values())
    points = grid[..., :2] * (_CROP_PX / _GRID)
    peaks = heat.reshape(*heat.shape[:2], -1).max(-1).mean(-1)
    return points, np.clip(peaks / _CERTAIN, 0, 1).astype(np.float32)

"""ArcFace recognizers of the public zoo: vectors of a face as its network gives them, and of unit length."""

from collections.abc import Sequence

import numpy as np

from app.core.geometry import TEMPLATES_112, FloatArray, similarity
from app.core.picture import Picture
from app.core.types import Face
from app.faces.sampling import sample_square
from app.inference.feeds import picture_feed
from app.inference.spec import ModelId, ModelZoo

_CROP_PX = 112
_BATCH = 16


class ArcFaceRecognizer:
    """Describes faces for the swap networks that were trained with ArcFace.

    Args:
        zoo: Has the model.
        model_id: Of the recognizer; its entry tells how pixels become numbers.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo, model_id: ModelId) -> None:
        self._contract = zoo.spec(model_id).input
        self._session = zoo.session(model_id)

    def embed(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """Describe each face by its key points.

        Returns:
            `(n, k)` float32 as the network gives them: their length tells how sure it is.

        Raises:
            DegenerateKpsError: A face's key points lie on one spot.
        """
        parts = []
        for start in range(0, len(items), _BATCH):
            crops = [_aligned(picture, face) for picture, face in items[start : start + _BATCH]]
            feed = picture_feed(np.stack(crops), self._contract)
            (vectors,) = self._session.run({self._contract.name: feed}).values()
            parts.append(np.asarray(vectors, np.float32))
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


def _aligned(picture: Picture, face: Face) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    affine = similarity(face.kps, TEMPLATES_112["arcface_112"])
    return sample_square(picture, affine, _CROP_PX)

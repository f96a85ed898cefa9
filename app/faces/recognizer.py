"""Who it is: one vector a face. The network is SFace (Zhong et al. 2021)."""

from collections.abc import Sequence

import numpy as np

from app.core.geometry import FloatArray, similarity, template_points
from app.core.picture import Picture
from app.core.types import Face
from app.faces.sampling import sample_square
from app.inference.feeds import picture_feed
from app.inference.soundness import require_sound
from app.inference.spec import InputContract, ModelId, ModelZoo

MODEL = ModelId("sface")
SAME_PERSON_COSINE = 0.363
"""At least this, and two faces are one person; published with the model (OpenCV Zoo, measured on LFW)."""

_INPUT = InputContract(name="data", layout="nchw", color="rgb")
_CROP_PX = 112
_BATCH = 16
_WIDTH = 128


class FaceRecognizer:
    """Makes vectors whose cosine says how alike two faces are.

    Args:
        zoo: Has the model `sface`.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo) -> None:
        self._session = zoo.session(MODEL)

    def embed(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """Describe each face by its key points.

        Returns:
            `(n, 128)` float32, rows of unit length.

        Raises:
            DegenerateKpsError: A face's key points lie on one spot.
            ModelError: The network gave no numbers.
        """
        return normed(self._vectors(items))

    def strengths(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """How much there is to tell each face by: the length of its vector, `(n,)`; 10 to 15 for faces.

        Raises:
            DegenerateKpsError: A face's key points lie on one spot.
            ModelError: The network gave no numbers.
        """
        return np.asarray(np.linalg.norm(self._vectors(items), axis=1), dtype=np.float32)

    def _vectors(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        vectors = np.empty((len(items), _WIDTH), np.float32)
        for start in range(0, len(items), _BATCH):
            crops = [_aligned(picture, face) for picture, face in items[start : start + _BATCH]]
            feeds = {_INPUT.name: picture_feed(np.stack(crops), _INPUT)}
            vectors[start : start + _BATCH] = self._session.run(feeds)["fc1"]
        return require_sound(vectors, MODEL)


def normed(vectors: FloatArray) -> FloatArray:
    """Rows scaled to unit length; `(..., k)`."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


def _aligned(picture: Picture, face: Face) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    affine = similarity(face.kps, template_points("arcface_112", _CROP_PX))
    return sample_square(picture, affine, _CROP_PX)

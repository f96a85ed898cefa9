"""ArcFace recognizers of the public zoo: vectors of a face as its network gives them, and of unit length."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.geometry import FloatArray, similarity, template_points
from app.core.picture import Picture
from app.core.types import Face, Identity
from app.faces.landmarks import face_from_landmarks
from app.faces.recognizer import FaceRecognizer, normed
from app.faces.sampling import sample_square
from app.inference.feeds import picture_feed
from app.inference.soundness import require_sound
from app.inference.spec import ModelId, ModelZoo

_CROP_PX = 112
_BATCH = 16
_STRENGTH_SHARE = 0.6
"""From the length of ArcFace's vectors, about 20 for a clear face, to that of the embedded recognizer's, about 12. The
limit that was measured with the embedded one is thus about 15; it has not been measured on ArcFace's weights."""


class ArcFaceRecognizer(FaceRecognizer):
    """Describes faces: for the swap networks that were trained with ArcFace, and, where chosen, to tell people apart.

    Args:
        zoo: Has the model.
        model_id: Of the recognizer; its entry tells how pixels become numbers.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo, model_id: ModelId) -> None:
        self.model_id = model_id
        self._contract = zoo.spec(model_id).input
        self._session = zoo.session(model_id)

    def embed(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """Describe each face by its key points; see `FaceRecognizer.embed`.

        Returns:
            `(n, k)` float32, rows of unit length.

        Raises:
            DegenerateKpsError: A face's key points lie on one spot.
        """
        return normed(self.vectors(items))

    def strengths(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """How much there is to tell each face by, on the embedded recognizer's scale, `(n,)`."""
        return np.asarray(np.linalg.norm(self.vectors(items), axis=1) * _STRENGTH_SHARE, np.float32)

    def vectors(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """Describe each face by its key points.

        Returns:
            `(n, k)` float32 as the network gives them.

        Raises:
            DegenerateKpsError: A face's key points lie on one spot.
        """
        parts = []
        for start in range(0, len(items), _BATCH):
            crops = [_aligned(picture, face) for picture, face in items[start : start + _BATCH]]
            feed = picture_feed(np.stack(crops), self._contract)
            (vectors,) = self._session.run({self._contract.name: feed}).values()
            parts.append(require_sound(np.asarray(vectors, np.float32), self.model_id))
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


def described(identity: Identity, recognizer: ArcFaceRecognizer) -> Identity:
    """The identity whose views carry the recognizer's embedding, as a swap network wants it.

    A view keeps the photo's pixels around the face, so that a face saved long ago can be described by any recognizer.

    Raises:
        DegenerateKpsError: A view's key points lie on one spot.
    """
    name = str(recognizer.model_id)
    if all(name in view.embeddings for view in identity.views):
        return identity
    items = [
        (Picture.from_rgb(view.crop), face_from_landmarks(view.landmarks, 1.0))
        for view in identity.views
    ]
    views = tuple(
        replace(view, embeddings={**view.embeddings, name: vector})
        for view, vector in zip(identity.views, recognizer.vectors(items), strict=True)
    )
    return replace(identity, views=views)


def _aligned(picture: Picture, face: Face) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    affine = similarity(face.kps, template_points("arcface_112", _CROP_PX))
    return sample_square(picture, affine, _CROP_PX)

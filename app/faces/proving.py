"""Whether a find that the detector is not sure of is a face at all.

A dog's head, seen at some sizes, scores like a turned face and takes the mesh well. Two things tell it from a face. The
mesh does not settle: measured again from its own last result it moves on, by 2 to 4 % of its size, where on 144 finds
in stills real faces stay within 1.4 %. And the recognizer finds nothing to tell it by: the vector that it makes, before
its length is made one, is short, at most 8.3 where real faces had 9.7 to 14.7.
"""

from collections.abc import Sequence

import numpy as np

from app.core.errors import DegenerateKpsError
from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.faces.landmarks import (
    FaceLandmarker,
    face_from_landmarks,
    region_from_landmarks,
    share_inside,
    unrest,
)
from app.faces.recognizer import FaceRecognizer
from app.faces.tracks import Candidate

_SURE_SCORE = 0.9
"""Nothing but faces was ever scored so high."""
_MAX_UNREST = 0.02
_MIN_STRENGTH = 8.8
_WHOLE_SHARE = 0.9
"""Of a face that the border cuts by more there is less to recognize: half a face has 7.7. The mesh alone decides."""


class FaceProver:
    """Takes a closer look at doubtful finds; sure ones cost nothing.

    Args:
        landmarker: Measures again.
        recognizer: Says how much of a face there is to tell; without it only the mesh is asked.
    """

    def __init__(
        self, landmarker: FaceLandmarker, recognizer: FaceRecognizer | None = None
    ) -> None:
        self._landmarker = landmarker
        self._recognizer = recognizer

    def proven(self, items: Sequence[tuple[Picture, Candidate]]) -> list[bool]:
        """Which candidates are faces."""
        is_face = [candidate.face.det_score >= _SURE_SCORE for _, candidate in items]
        doubtful = [index for index, is_sure in enumerate(is_face) if not is_sure]
        if not doubtful:
            return is_face
        settled, landmarks = self._settled([items[index] for index in doubtful])
        rest = [
            (index, points)
            for index, is_settled, points in zip(doubtful, settled, landmarks, strict=True)
            if is_settled
        ]
        strong = [self._is_strong(items[index], points) for index, points in rest]
        for (index, _), is_strong in zip(rest, strong, strict=True):
            is_face[index] = is_strong
        return is_face

    def _settled(
        self, items: Sequence[tuple[Picture, Candidate]]
    ) -> tuple[list[bool], list[FloatArray]]:
        """Whether a second and a third measure agree, and the third."""
        looks = [candidate.landmarks for _, candidate in items]
        moved = np.zeros(len(items))
        for _ in range(2):
            regions = [region_from_landmarks(points) for points in looks]
            pictures = [picture for picture, _ in items]
            again, _ = self._landmarker.locate(list(zip(pictures, regions, strict=True)))
            moved = np.array([unrest(a, b) for a, b in zip(looks, again, strict=True)], np.float64)
            looks = list(again)
        return [bool(value <= _MAX_UNREST) for value in moved], looks

    def _is_strong(self, item: tuple[Picture, Candidate], landmarks: FloatArray) -> bool:
        if self._recognizer is None:
            return True
        picture, candidate = item
        if share_inside(landmarks, picture.size_wh) < _WHOLE_SHARE:
            return True
        face = face_from_landmarks(landmarks, candidate.face.det_score)
        try:
            return float(self._recognizer.strengths([(picture, face)])[0]) >= _MIN_STRENGTH
        except DegenerateKpsError:
            return False

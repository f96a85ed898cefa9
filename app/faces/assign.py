"""Who gets the source's face: everybody, or one person who is followed through the video."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.errors import NoSuchPersonError
from app.core.geometry import FloatArray
from app.core.types import Face, Frame, Identity, TrackId, Window
from app.faces.recognizer import SAME_PERSON_COSINE


class Assigner:
    """Writes `Face.identity`, window by window.

    One person is named by a number: the order, left to right (ties top to bottom), in the first frame that shows a
    face. From there this person is followed by track; a track that begins later, after a cut or a return, belongs to
    the person when its embedding is at least as near as two photos of one person are.

    Args:
        person: The number, from 0; `None` is everybody.
        identity: The face to put on.
    """

    def __init__(self, person: int | None, identity: Identity) -> None:
        self._person = person
        self._identity = identity
        self._wanted: FloatArray | None = None
        self._is_found = False
        self._is_person: dict[TrackId, bool] = {}

    def assign(self, window: Window) -> Window:
        """Give the faces of the next window their identity.

        Raises:
            NoSuchPersonError: The first frame with faces shows fewer people than the number says.
        """
        return tuple(self._assigned(frame) for frame in window)

    def _assigned(self, frame: Frame) -> Frame:
        if not frame.faces:
            return frame
        chosen = self._chosen(frame.faces)
        faces = tuple(
            replace(face, identity=self._identity) if is_chosen else face
            for face, is_chosen in zip(frame.faces, chosen, strict=True)
        )
        return replace(frame, faces=faces)

    def _chosen(self, faces: Sequence[Face]) -> list[bool]:
        if self._person is None:
            return [True] * len(faces)
        index = self._followed(faces) if self._is_found else self._first(faces, self._person)
        chosen = [at == index for at in range(len(faces))]
        if index is not None:
            self._decide(faces, chosen)
        return chosen

    def _first(self, faces: Sequence[Face], person: int) -> int:
        count = len(faces)
        if person >= count:
            raise NoSuchPersonError(
                f"the first frame with faces shows {count}, so there is no such person; "
                "people are counted from left to right"
            )
        self._is_found, self._wanted = True, faces[person].embedding
        return person

    def _followed(self, faces: Sequence[Face]) -> int | None:
        """Where the person is; `None` when away."""
        likeness = [self._likeness(face) for face in faces]
        best = int(np.argmax(likeness))
        return best if likeness[best] >= SAME_PERSON_COSINE else None

    def _likeness(self, face: Face) -> float:
        """How surely this is the person: a cosine, or above and below all cosines where the track was decided."""
        if face.track_id in self._is_person:
            return 2.0 if self._is_person[face.track_id] else -2.0
        if self._wanted is None or face.embedding is None:
            return -2.0
        return float(self._wanted @ face.embedding)

    def _decide(self, faces: Sequence[Face], chosen: Sequence[bool]) -> None:
        """Decide tracks for good. One person is at one place: whoever is seen beside them is somebody else."""
        for face, is_person in zip(faces, chosen, strict=True):
            if face.track_id is not None:
                self._is_person.setdefault(face.track_id, is_person)

"""Who gets the source's face: everybody, or one person who is followed through the video."""

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
        self._is_found = person is None
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
        if not self._is_found:
            self._find_person(frame)
        chosen = self._chosen(frame)
        faces = tuple(
            replace(face, identity=self._identity) if is_chosen else face
            for face, is_chosen in zip(frame.faces, chosen, strict=True)
        )
        return replace(frame, faces=faces)

    def _find_person(self, frame: Frame) -> None:
        assert self._person is not None
        count = len(frame.faces)
        if self._person >= count:
            raise NoSuchPersonError(
                f"person {self._person} was asked for, but the first frame with faces shows {count}, "
                f"numbered from 0 to {count - 1} from left to right"
            )
        face = frame.faces[self._person]
        self._is_found, self._wanted = True, face.embedding
        if face.track_id is not None:
            self._is_person.update({f.track_id: f is face for f in frame.faces if f.track_id is not None})

    def _chosen(self, frame: Frame) -> list[bool]:
        if self._person is None:
            return [True] * len(frame.faces)
        likeness = [self._likeness(face) for face in frame.faces]
        best = int(np.argmax(likeness))
        # One person is at one place: of several who look alike, the likest.
        return [index == best and score > 0 for index, score in enumerate(likeness)]

    def _likeness(self, face: Face) -> float:
        """How surely this is the person: 0 is not at all, above 1 when the track says so."""
        if face.track_id in self._is_person:
            return 2.0 if self._is_person[face.track_id] else 0.0
        if self._wanted is None or face.embedding is None:
            return 0.0
        cosine = float(self._wanted @ face.embedding)
        is_same = cosine >= SAME_PERSON_COSINE
        if face.track_id is not None:
            self._is_person[face.track_id] = is_same
        return cosine if is_same else 0.0

"""Who gets which face: one-to-one in every frame, decided once a track."""

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.core.geometry import FloatArray, bbox_iou
from app.core.types import Face, Frame, Identity, TrackId, Window
from app.faces.matching import best_pairs, likest_pairs
from app.faces.person import Place
from app.faces.recognizer import normed

_MARGIN = 0.1
"""By so much contrary evidence must be stronger before a decision is changed."""
_PLACE_WEIGHT = 2.0
"""A place where a person was seen says more than any likeness."""
_SAME_TIME_S = 0.021
"""As far apart two frames may be that show one face in one place: a step at 48 frames a second."""
_SAME_PLACE_IOU = 0.5
_UNKNOWN = -2.0
_FORGET_AFTER = 8
"""Windows after which a track that was not seen again is forgotten; trackers bridge less."""


_Tracks = tuple[TrackId | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Treatment:
    """What happens to a face: nothing, unless it says so.

    Attributes:
        identity: The face to put on.
        is_blurred: To be made unrecognizable.
    """

    identity: Identity | None = None
    is_blurred: bool = False


LEFT_ALONE = Treatment()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Role:
    """A person of the target who is known, and what happens to their face.

    Attributes:
        who: How results call the person; `None` where nobody has chosen anything.
        normed_embeddings: `(k, 128)` float32, rows of unit length, k at least 1.
        treatment: What happens to the face.
        places: Where and when the person was seen, if anybody looked.
    """

    who: str | None
    normed_embeddings: FloatArray
    treatment: Treatment
    places: tuple[Place, ...] = ()


def likeness(normed_embeddings: FloatArray, embedding: FloatArray) -> float:
    """How much a face is like a person known by several views: the cosine of the view that is likest, -1 to 1."""
    return float((normed_embeddings @ embedding).max())


@dataclass(slots=True, eq=False)
class _TrackState:
    """What is known of one track.

    Attributes:
        looks: Embedding of all looks, of unit length; the newest counts as much as all before it.
        newest: The look that came last, to know it again.
        votes: One a role: how often, and how lately, the track was where the person was seen.
        role: Index of the role that it has; `None` is a stranger.
        beside: Indices of roles that others had while they were seen beside it: those it cannot have when they are
            away.
        seen: Number of the window in which it was seen last.
    """

    votes: FloatArray
    beside: set[int] = field(default_factory=set)
    looks: FloatArray | None = None
    newest: FloatArray | None = None
    is_decided: bool = False
    role: int | None = None
    seen: int = 0

    def look(self, embedding: FloatArray) -> None:
        self.newest = embedding
        self.looks = embedding if self.looks is None else normed(self.looks + embedding)

    def vote(self, role: int) -> None:
        self.votes *= 0.5
        self.votes[role] += 1
        self.beside.discard(role)


class Assigner:
    """Writes `Face.identity`, `is_blurred` and `who`, window by window.

    A track is somebody by its likeness to what is known of a person, and surely where it lies in a place in which
    the person was seen. In each frame people and faces are paired so that the likeness of all together is greatest;
    whoever is like nobody stays a stranger. A decision stands until what speaks against it is clearly stronger.

    Args:
        roles: The people who are known.
        others: What happens to everybody else.
        threshold: Least likeness at which a face is taken for a person, 0 to 1.
        clock_s: What is to be added to a frame's time to get the time of the roles' places.
    """

    def __init__(
        self,
        roles: Sequence[Role],
        *,
        others: Treatment,
        threshold: float,
        clock_s: float = 0.0,
    ) -> None:
        self._roles = tuple(roles)
        self._others = others
        self._threshold = threshold
        self._clock_s = clock_s
        self._places = sorted(
            (
                (place.time_s, index, place)
                for index, role in enumerate(roles)
                for place in role.places
            ),
            key=lambda entry: entry[:2],
        )
        self._tracks: dict[TrackId, _TrackState] = {}
        self._settled: set[_Tracks] = set()
        self._window = 0

    @property
    def remembered_tracks(self) -> int:
        """How many tracks it knows of: those of the last few windows."""
        return len(self._tracks)

    def assign(self, window: Window) -> Window:
        """Say what happens to the faces of the next window."""
        if not self._roles:
            return tuple(self._treated(frame, [None] * len(frame.faces)) for frame in window)
        self._window += 1
        for frame in window:
            self._gather(frame)
        # Twice, so that who is seen late in a window has a say in whom an earlier frame shows.
        for frame in window:
            self._decided(frame)
        assigned = tuple(self._treated(frame, self._decided(frame)) for frame in window)
        self._forget()
        return assigned

    def _treated(self, frame: Frame, roles: Sequence[int | None]) -> Frame:
        if not frame.faces:
            return frame
        faces = tuple(self._face(face, role) for face, role in zip(frame.faces, roles, strict=True))
        return replace(frame, faces=faces)

    def _face(self, face: Face, role: int | None) -> Face:
        treatment = self._others if role is None else self._roles[role].treatment
        return replace(
            face,
            identity=treatment.identity,
            is_blurred=treatment.is_blurred,
            who=None if role is None else self._roles[role].who,
        )

    def _gather(self, frame: Frame) -> None:
        """Take in what a frame tells of its tracks."""
        for face in frame.faces:
            if face.track_id is None:
                continue
            state = self._state(face.track_id)
            if face.embedding is not None and face.embedding is not state.newest:
                state.look(face.embedding)
                self._settled.clear()
        for index, role in self._sightings(frame):
            track_id = frame.faces[index].track_id
            if track_id is not None:
                self._state(track_id).vote(role)
                self._settled.clear()

    def _state(self, track_id: TrackId) -> _TrackState:
        votes = np.zeros(len(self._roles), np.float32)
        state = self._tracks.setdefault(track_id, _TrackState(votes))
        state.seen = self._window
        return state

    def _sightings(self, frame: Frame) -> list[tuple[int, int]]:
        """Faces of a frame that lie where somebody was seen then: positions of face and role."""
        at_s = frame.time_s + self._clock_s
        first = bisect_left(self._places, at_s - _SAME_TIME_S, key=lambda entry: entry[0])
        end = bisect_left(self._places, at_s + _SAME_TIME_S, key=lambda entry: entry[0])
        if first == end or not frame.faces:
            return []
        seen = self._places[first:end]
        boxes = np.stack([face.bbox_xyxy for face in frame.faces])
        overlap = bbox_iou(boxes, np.stack([place.bbox_xyxy for _, _, place in seen]))
        pairs = best_pairs(1 - overlap, 1 - _SAME_PLACE_IOU)
        return [(face, seen[place][1]) for face, place in pairs]

    def _decided(self, frame: Frame) -> list[int | None]:
        """The role of each face of a frame; remembers it by track."""
        key = tuple(face.track_id for face in frame.faces)
        if key not in self._settled:
            roles = self._paired(frame)
            self._remember(key, roles)
            return roles
        return [self._tracks[id].role for id in key if id is not None]

    def _remember(self, key: _Tracks, roles: Sequence[int | None]) -> None:
        given = {role for role in roles if role is not None}
        for track_id, role in zip(key, roles, strict=True):
            if track_id is None:
                continue
            state = self._tracks[track_id]
            if not state.is_decided or state.role != role:
                self._settled.clear()
            state.role, state.is_decided = role, True
            state.beside |= given
            state.beside -= {role}
        if None not in key:
            self._settled.add(key)

    def _paired(self, frame: Frame) -> list[int | None]:
        roles: list[int | None] = [None] * len(frame.faces)
        if not frame.faces:
            return roles
        held = {self._tracks[f.track_id].role for f in frame.faces if f.track_id is not None}
        alike = np.stack([self._alike(face, held) for face in frame.faces])
        for face, role in self._sightings(frame):
            if frame.faces[face].track_id is None:
                alike[face, role] = max(alike[face, role], 0) + _PLACE_WEIGHT
        for face, role in likest_pairs(alike, self._threshold):
            roles[face] = role
        return roles

    def _alike(self, face: Face, held: Container[int | None]) -> FloatArray:
        """How surely a face is each of the roles, with what was decided before; `(roles,)`.

        Roles that tracks of the same frame hold are open to all of them: the likest has it.
        """
        state = None if face.track_id is None else self._tracks[face.track_id]
        embedding = face.embedding if state is None else state.looks
        values = np.full(len(self._roles), _UNKNOWN, np.float32)
        if embedding is not None:
            values[:] = [likeness(role.normed_embeddings, embedding) for role in self._roles]
        if state is None:
            return values
        if (total := float(state.votes.sum())) > 0:
            values = np.maximum(values, 0) + _PLACE_WEIGHT * state.votes / total
        if state.is_decided:
            values -= _MARGIN
            if state.role is not None:
                values[state.role] += 2 * _MARGIN
        values[[role for role in state.beside if role not in held]] = _UNKNOWN
        return np.asarray(values, np.float32)

    def _forget(self) -> None:
        oldest = self._window - _FORGET_AFTER
        self._tracks = {id: state for id, state in self._tracks.items() if state.seen >= oldest}
        self._settled.clear()

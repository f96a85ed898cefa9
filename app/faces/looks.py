"""What each track looks like: a mean of its few best views, better with every window."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face, TrackId
from app.faces.landmarks import face_size_px, share_inside, yaw_deg
from app.faces.recognizer import FaceRecognizer, normed

_MAX_VIEWS = 4
_BETTER = 1.15
"""A full set takes a new view for its worst one only if it tells so much more."""
_FIRST_WAIT_FRAMES = 12
"""Frames until the second view; the wait doubles with each view, since neighbors in time look alike."""


@dataclass(frozen=True, slots=True, eq=False)
class Glance:
    """A track's face in one frame, offered as a view."""

    number: int
    picture: Picture
    face: Face

    @property
    def worth(self) -> float:
        """0 to 1: whole, frontal, large and surely detected faces tell most."""
        landmarks = self.face.landmarks
        assert landmarks is not None
        whole = share_inside(landmarks, self.picture.size_wh)
        frontal = float(np.cos(np.deg2rad(yaw_deg(landmarks))))
        size = min(1.0, face_size_px(landmarks) / 112)
        return self.face.det_score * whole**2 * frontal**2 * size


class _Looks:
    """One track's views, the most worthy first: how much each is worth, and its embedding."""

    def __init__(self) -> None:
        self._last = 0
        self._views: list[tuple[float, FloatArray]] = []
        self.mean: FloatArray | None = None

    def wants(self, number: int, worth: float) -> bool:
        """True where a view would tell enough more to be worth a network call."""
        if not self._views:
            return True
        if number - self._last < _FIRST_WAIT_FRAMES << (len(self._views) - 1):
            return False
        return len(self._views) < _MAX_VIEWS or worth > _BETTER * self._views[-1][0]

    def add(self, number: int, worth: float, embedding: FloatArray) -> None:
        """Take a view in; the mean is another array from here on."""
        self._last = number
        self._views.append((worth, embedding))
        self._views.sort(key=lambda view: -view[0])
        del self._views[_MAX_VIEWS:]
        self.mean = normed(np.sum([worth * embedding for worth, embedding in self._views], axis=0))


class LooksBook:
    """Keeps the looks of all tracks of a video that are still followed.

    Args:
        recognizer: Describes faces; at most one a track and window, fewer as a track's views get good.
    """

    def __init__(self, recognizer: FaceRecognizer) -> None:
        self._recognizer = recognizer
        self._looks: dict[TrackId, _Looks] = {}

    def of(self, track_id: TrackId) -> FloatArray | None:
        """The mean of a track's best views so far, `(128,)` of unit length; `None` for one not yet described.

        It is the same array until a view is added.
        """
        looks = self._looks.get(track_id)
        return looks.mean if looks else None

    def describe(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        """Embeddings of some faces, `(n, 128)`."""
        return self._recognizer.embed(items)

    def offer(self, glances: Iterable[Glance]) -> None:
        """Take a window's views in: of each track the best one, if it is wanted."""
        best: dict[TrackId, tuple[float, Glance]] = {}
        for glance in glances:
            track_id = glance.face.track_id
            assert track_id is not None
            worth = glance.worth
            if track_id not in best or worth > best[track_id][0]:
                best[track_id] = worth, glance
        wanted = {key: pair for key, pair in best.items() if self._wants(key, pair)}
        items = [(glance.picture, glance.face) for _, glance in wanted.values()]
        for (key, (worth, glance)), embedding in zip(
            wanted.items(), self._recognizer.embed(items), strict=True
        ):
            looks = self._looks.setdefault(key, _Looks())
            looks.add(glance.number, worth, embedding)

    def keep_only(self, live: Iterable[TrackId]) -> None:
        """Forget all other tracks."""
        wanted = set(live)
        self._looks = {key: looks for key, looks in self._looks.items() if key in wanted}

    def _wants(self, key: TrackId, pair: tuple[float, Glance]) -> bool:
        looks = self._looks.get(key)
        return looks is None or looks.wants(pair[1].number, pair[0])

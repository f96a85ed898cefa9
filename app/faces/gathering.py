"""From sparse looks at a file to its people: faces that stay become trails, trails of one person become a person.

Nothing is followed frame by frame here. A look is a picture every half second or so; a face that hardly moves from
one look to the next is one trail, unless it has become another one, and everything else is decided by appearance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face, Frame
from app.faces.grouping import Group, grouped
from app.faces.landmarks import (
    CropRegion,
    FaceLandmarker,
    face_from_landmarks,
    region_from_landmarks,
)
from app.faces.matching import best_pairs
from app.faces.person import Person, Place
from app.faces.proving import FaceProver
from app.faces.recognizer import FaceRecognizer
from app.faces.resemblance import face_gray, look_alike
from app.faces.tracks import Candidate, region_cost
from app.faces.views import View, view_of

_SAME_TRAIL = 0.3
"""A face that moved less from look to look (unit of `region_cost`) is the same one, unless another is near."""
_RIVAL = 0.8
"""A second face within this makes place alone a poor witness."""
_SAME_PLACE_COSINE = 0.25
"""Least likeness, from look to look, of one face in one place whose pixels have changed."""
_MAX_MISSED = 1
"""Looks that may miss a face of a trail."""
_VIEWS_PER_TRAIL = 3
_VIEWS_PER_PERSON = 6

Detect = Callable[[Sequence[Picture]], Sequence[Sequence[Face]]]
"""Finds the faces of many pictures."""


@dataclass(slots=True, eq=False)
class _Sight:
    """One measured face in one look; `embedding` once somebody has asked."""

    region: CropRegion
    place: Place
    view: View
    gray: FloatArray
    embedding: FloatArray | None = None


@dataclass(slots=True, eq=False)
class _Trail:
    """One face over several looks; `sights` the most useful ones first."""

    last: _Sight
    looks: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    sights: list[_Sight] = field(default_factory=list)

    def add(self, look: int, sight: _Sight) -> None:
        self.last = sight
        self.looks.append(look)
        self.places.append(sight.place)
        self.sights.append(sight)
        self.sights.sort(key=lambda each: -each.view.usefulness)
        del self.sights[_VIEWS_PER_TRAIL:]

    @property
    def views(self) -> list[View]:
        return [sight.view for sight in self.sights]

    @property
    def embeddings(self) -> list[FloatArray]:
        """Of the views; known once the trail is closed."""
        return [sight.embedding for sight in self.sights if sight.embedding is not None]


class PeopleGatherer:
    """Takes looks, gives people.

    Args:
        landmarker: Measures, and says what is no face.
        recognizer: Says who is who.
    """

    def __init__(self, landmarker: FaceLandmarker, recognizer: FaceRecognizer) -> None:
        self._landmarker = landmarker
        self._recognizer = recognizer
        self._prover = FaceProver(landmarker, recognizer)
        self._looks = 0
        self._live: list[_Trail] = []
        self._closed: list[_Trail] = []

    def look(self, frames: Sequence[Frame], detect: Detect, *, file: int = 0) -> None:
        """Take in the next looked-at frames; where `is_cut` is set, nothing is linked to the look before.

        Args:
            frames: In order of time, of one file.
            detect: Finds the faces of their pictures.
            file: Which of several files they belong to; the first frame of a file must be a cut.
        """
        for frame, sights in zip(frames, self._seen(frames, detect, file), strict=True):
            if frame.is_cut:
                self._close(self._live)
                self._live = []
            self._link(sights)
            self._looks += 1
            lost = [t for t in self._live if self._looks - 1 - t.looks[-1] > _MAX_MISSED]
            self._close(lost)
            self._live = [t for t in self._live if t not in lost]

    def people(self) -> tuple[Person, ...]:
        """Everybody seen so far, numbered by first appearance, ties left to right, then top to bottom."""
        self._close(self._live)
        self._live = []
        groups = grouped([_group_of(trail) for trail in self._closed])
        members = [[self._closed[index] for index in group] for group in groups]
        members.sort(key=_by_appearance)
        return tuple(self._person(number, trails) for number, trails in enumerate(members, start=1))

    def _seen(self, frames: Sequence[Frame], detect: Detect, file: int) -> list[list[_Sight]]:
        """The faces of each frame that mesh and detector agree on."""
        found = detect([frame.picture for frame in frames])
        pairs = [(at, face) for at, faces in enumerate(found) for face in faces]
        located = self._landmarker.locate_faces([(frames[at].picture, face) for at, face in pairs])
        likely = [
            (at, candidate)
            for (at, face), landmarks, presence in zip(pairs, *located, strict=True)
            if (candidate := Candidate(face, landmarks, float(presence))).may_begin_track
        ]
        proven = self._prover.proven([(frames[at].picture, each) for at, each in likely])
        faces = [pair for pair, is_face in zip(likely, proven, strict=True) if is_face]
        crops = self._landmarker.cut(
            [(frames[at].picture, region_from_landmarks(each.landmarks)) for at, each in faces]
        )
        sights: list[list[_Sight]] = [[] for _ in frames]
        for (at, candidate), crop in zip(faces, crops, strict=True):
            face = face_from_landmarks(candidate.landmarks, candidate.face.det_score)
            sights[at].append(_sight(frames[at], face, file, face_gray(crop)))
        return sights

    def _link(self, sights: Sequence[_Sight]) -> None:
        costs = [[region_cost(t.last.region, s.region) for s in sights] for t in self._live]
        table = np.array(costs, np.float32).reshape(len(self._live), len(sights))
        taken = {}
        for row, column in best_pairs(table, _SAME_TRAIL):
            is_alone = (table[row] < _RIVAL).sum() == 1 and (table[:, column] < _RIVAL).sum() == 1
            if is_alone and self._may_be_one(self._live[row].last, sights[column]):
                taken[column] = self._live[row]
        for column, sight in enumerate(sights):
            trail = taken.get(column)
            if trail is None:
                trail = _Trail(sight)
                self._live.append(trail)
            trail.add(self._looks, sight)

    def _may_be_one(self, before: _Sight, after: _Sight) -> bool:
        """Whether nothing speaks against two sights in one place: after a cut it may be somebody else."""
        if look_alike(before.gray, after.gray):
            return True
        self._describe([before, after])
        assert before.embedding is not None
        assert after.embedding is not None
        return float(before.embedding @ after.embedding) >= _SAME_PLACE_COSINE

    def _describe(self, sights: Sequence[_Sight]) -> None:
        """Ask what nobody has asked before."""
        new = [sight for sight in sights if sight.embedding is None]
        embeddings = self._recognizer.embed(
            [(Picture.from_rgb(sight.view.crop), sight.view.face) for sight in new]
        )
        for sight, embedding in zip(new, embeddings, strict=True):
            sight.embedding = embedding

    def _close(self, trails: Sequence[_Trail]) -> None:
        """Describe finished trails; of their pictures only the best one is kept."""
        self._describe([sight for trail in trails for sight in trail.sights])
        for trail in trails:
            for sight in trail.sights[1:]:
                sight.view = sight.view.without_picture()
        self._closed += trails

    def _person(self, number: int, trails: Sequence[_Trail]) -> Person:
        views = sorted(
            ((v, e) for t in trails for v, e in zip(t.views, t.embeddings, strict=True)),
            key=lambda pair: -pair[0].usefulness,
        )
        places = sorted(
            (place for trail in trails for place in trail.places),
            key=lambda place: (place.file, place.time_s),
        )
        widths = [float(place.bbox_xyxy[2] - place.bbox_xyxy[0]) for place in places]
        looks = {look for trail in trails for look in trail.looks}
        best = next(view for view, _ in views if view.crop.size)
        return Person(
            number=number,
            thumbnail=best.thumbnail(),
            normed_embeddings=np.stack([e for _, e in views[:_VIEWS_PER_PERSON]]),
            first_s=places[0].time_s,
            last_s=places[-1].time_s,
            share=len(looks) / self._looks,
            size_range_px=(min(widths), max(widths)),
            places=tuple(places),
        )


def _sight(frame: Frame, face: Face, file: int, gray: FloatArray) -> _Sight:
    assert face.landmarks is not None
    place = Place(time_s=frame.time_s, bbox_xyxy=face.bbox_xyxy, file=file)
    view = view_of(frame.picture, face)
    return _Sight(region_from_landmarks(face.landmarks), place, view, gray)


def _group_of(trail: _Trail) -> Group:
    return Group(
        looks=frozenset(trail.looks),
        embeddings=np.stack(trail.embeddings),
        weights=np.array([view.usefulness for view in trail.views], np.float32),
    )


def _by_appearance(trails: Sequence[_Trail]) -> tuple[int, float, float]:
    first = min(trails, key=lambda trail: trail.looks[0])
    x0, y0, x1, y1 = first.places[0].bbox_xyxy.tolist()
    return first.looks[0], round((x0 + x1) / 2), (y0 + y1) / 2

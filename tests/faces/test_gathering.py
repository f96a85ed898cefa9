"""Looks at a made-up world: faces whose place and looks a test tells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face, Frame, RgbImage
from app.faces.gathering import PeopleGatherer
from app.faces.landmarks import CropRegion, Located, face_from_landmarks
from app.faces.person import Person
from tests.conftest import MakeFrame
from tests.faces.conftest import MakeLandmarks


@dataclass(frozen=True)
class Seen:
    """One face of one look: who, where, how large."""

    who: int
    cx: float
    size: float = 40
    presence: float = 1.0
    pixels: int = 0


class World:
    """Detector, landmarker and recognizer that see what a test tells, look by look."""

    def __init__(self, make_landmarks: MakeLandmarks, looks: Sequence[Sequence[Seen]]) -> None:
        self._make = make_landmarks
        self._looks = list(looks)
        self._presences: list[float] = []
        self._who: dict[tuple[float, ...], int] = {}
        self._at = self._detected = 0
        self.embedded = 0

    def detect(self, pictures: Sequence[Picture]) -> list[tuple[Face, ...]]:
        rows = self._looks[self._at : self._at + len(pictures)]
        self._at += len(pictures)
        self._detected = len(pictures)
        self._presences = [seen.presence for row in rows for seen in row]
        return [tuple(self._face(seen) for seen in row) for row in rows]

    def _face(self, seen: Seen) -> Face:
        face = face_from_landmarks(self._make(cx=seen.cx, size=seen.size), 0.5 + seen.who / 100)
        return replace(face, det_score=0.95 + seen.who / 1000)

    def locate_faces(self, items: Sequence[tuple[Picture, Face]]) -> Located:
        points = [face.landmarks for _, face in items]
        presences = np.array(self._presences, np.float32)
        return np.array(points, np.float32).reshape(-1, 478, 3), presences

    def cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        rows = self._looks[self._at - self._detected : self._at]
        seeds = [seen.pixels for row in rows for seen in row if seen.presence > 0.5]
        return np.stack(
            [
                np.random.default_rng(seed).integers(0, 255, (192, 192, 3)).astype(np.uint8)
                for seed in seeds
            ]
            or [np.zeros((192, 192, 3), np.uint8)]
        )[: len(items)]

    def embed(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        self.embedded += len(items)
        rows = [round((face.det_score - 0.95) * 1000) for _, face in items]
        return np.eye(128, dtype=np.float32)[rows]


def gathered(world: World, frames: Sequence[Frame], batch: int = 3) -> tuple[Person, ...]:
    gatherer = PeopleGatherer(world, world)  # type: ignore[arg-type]
    for start in range(0, len(frames), batch):
        gatherer.look(frames[start : start + batch], world.detect)
    return gatherer.people()


@pytest.fixture
def make_looks(make_frame: MakeFrame):  # type: ignore[no-untyped-def]
    def build(count: int, cuts: Sequence[int] = (0,)) -> list[Frame]:
        noise = np.random.default_rng(0).integers(0, 255, (128, 256, 3)).astype(np.uint8)
        return [replace(make_frame(at, noise), is_cut=at in cuts) for at in range(count)]

    return build


@pytest.mark.parametrize("batch", [1, 3, 10])
def test_people_are_numbered_by_appearance_then_left_to_right(  # type: ignore[no-untyped-def]
    make_looks, make_landmarks: MakeLandmarks, batch: int
) -> None:
    looks = [[Seen(5, 200), Seen(7, 60)]] * 2 + [[Seen(7, 60), Seen(2, 20)]] * 2
    world = World(make_landmarks, looks)
    people = gathered(world, make_looks(4), batch)
    axes = [int(person.normed_embeddings[0].argmax()) for person in people]
    assert axes == [7, 5, 2]
    assert [person.number for person in people] == [1, 2, 3]
    assert [person.share for person in people] == [1.0, 0.5, 0.5]
    assert [(person.first_s, person.last_s) for person in people] == [
        pytest.approx((0, 0.12)),
        pytest.approx((0, 0.04)),
        pytest.approx((0.08, 0.12)),
    ]


def test_a_face_that_stays_is_described_by_a_few_views(  # type: ignore[no-untyped-def]
    make_looks, make_landmarks: MakeLandmarks
) -> None:
    world = World(make_landmarks, [[Seen(1, 60 + at, 40 + at)] for at in range(12)])
    (person,) = gathered(world, make_looks(12))
    assert world.embedded == 3
    assert len(person.places) == 12
    smallest, largest = person.size_range_px
    assert smallest < largest
    assert person.thumbnail.shape[0] == person.thumbnail.shape[1] <= 256


def test_a_cut_and_a_return_make_no_new_person(  # type: ignore[no-untyped-def]
    make_looks, make_landmarks: MakeLandmarks
) -> None:
    looks = [[Seen(1, 60)], [Seen(1, 60)], [Seen(2, 60)], [], [], [], [Seen(1, 200)]]
    people = gathered(World(make_landmarks, looks), make_looks(7, cuts=(0, 2)))
    assert len(people) == 2
    assert people[0].last_s == pytest.approx(0.24)
    assert [len(person.places) for person in people] == [3, 1]


@pytest.mark.parametrize(
    ("who", "pixels", "people"),
    [
        pytest.param(1, 0, 1, id="nothing has changed"),
        pytest.param(1, 9, 1, id="the same person in another light"),
        pytest.param(2, 9, 2, id="somebody else"),
    ],
)
def test_who_comes_in_the_place_of_somebody_is_known_by_their_looks(  # type: ignore[no-untyped-def]
    make_looks, make_landmarks: MakeLandmarks, who: int, pixels: int, people: int
) -> None:
    looks = [[Seen(1, 60)], [Seen(1, 60)], [Seen(who, 60, pixels=pixels)], [Seen(who, 60, pixels=pixels)]]  # fmt: skip
    world = World(make_landmarks, looks)
    assert len(gathered(world, make_looks(4))) == people


def test_two_who_pass_each_other_stay_two(make_looks, make_landmarks: MakeLandmarks) -> None:  # type: ignore[no-untyped-def]
    looks = [[Seen(1, 60 + 20 * at), Seen(2, 180 - 20 * at)] for at in range(7)]
    people = gathered(World(make_landmarks, looks), make_looks(7))
    assert [int(person.normed_embeddings[0].argmax()) for person in people] == [1, 2]
    assert all(np.ptp(person.normed_embeddings, axis=0).max() == 0 for person in people)


def test_what_the_mesh_does_not_take_for_a_face_is_nobody(  # type: ignore[no-untyped-def]
    make_looks, make_landmarks: MakeLandmarks
) -> None:
    world = World(make_landmarks, [[Seen(1, 60, presence=0.2)]] * 3)
    assert gathered(world, make_looks(3)) == ()

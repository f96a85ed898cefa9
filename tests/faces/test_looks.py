from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face, TrackId
from app.faces.landmarks import face_from_landmarks
from app.faces.looks import Glance, LooksBook
from tests.faces.conftest import MakeLandmarks

PICTURE = Picture.from_rgb(np.zeros((400, 400, 3), np.uint8))


class Counting:
    """A recognizer that gives each face it is shown the next axis."""

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        rows = np.eye(128, dtype=np.float32)[self.calls : self.calls + len(items)]
        self.calls += len(items)
        return rows


def glance(
    make_landmarks: MakeLandmarks, number: int, *, size: float = 60, cx: float = 200, track: int = 0
) -> Glance:
    face = face_from_landmarks(make_landmarks(cx=cx, cy=200, size=size), 0.9)
    return Glance(number, PICTURE, replace(face, track_id=TrackId(track)))


def test_an_unknown_track_has_no_looks() -> None:
    assert LooksBook(Counting()).of(TrackId(3)) is None  # type: ignore[arg-type]


def test_of_a_window_the_best_view_of_each_track_is_taken(make_landmarks: MakeLandmarks) -> None:
    recognizer = Counting()
    book = LooksBook(recognizer)  # type: ignore[arg-type]
    book.offer(glance(make_landmarks, n, size=40 + n, track=n % 2) for n in range(10))
    assert recognizer.calls == 2
    first, second = book.of(TrackId(0)), book.of(TrackId(1))
    assert first is not None
    assert second is not None
    assert first @ second == 0


def test_views_are_added_ever_more_seldom_and_then_only_better_ones(
    make_landmarks: MakeLandmarks,
) -> None:
    recognizer = Counting()
    book = LooksBook(recognizer)  # type: ignore[arg-type]
    calls = []
    for number in range(0, 400, 4):
        book.offer([glance(make_landmarks, number)])
        calls.append(recognizer.calls)
    assert recognizer.calls == 4
    assert calls.index(2) < calls.index(3) - calls.index(2) < calls.index(4) - calls.index(3)
    book.offer([glance(make_landmarks, 600, size=100)])
    assert recognizer.calls == 5


def test_the_mean_is_of_unit_length_and_leans_to_the_better_views(
    make_landmarks: MakeLandmarks,
) -> None:
    book = LooksBook(Counting())  # type: ignore[arg-type]
    book.offer([glance(make_landmarks, 0, size=30)])
    book.offer([glance(make_landmarks, 40, size=100)])
    mean = book.of(TrackId(0))
    assert mean is not None
    assert np.linalg.norm(mean) == pytest.approx(1)
    assert mean[1] > mean[0] > 0


def test_a_face_half_out_of_the_picture_is_worth_less(make_landmarks: MakeLandmarks) -> None:
    assert glance(make_landmarks, 0, cx=0).worth < 0.5 * glance(make_landmarks, 0).worth


def test_lost_tracks_are_forgotten(make_landmarks: MakeLandmarks) -> None:
    book = LooksBook(Counting())  # type: ignore[arg-type]
    book.offer([glance(make_landmarks, 0, track=track) for track in (0, 1)])
    book.keep_only([TrackId(1)])
    assert book.of(TrackId(0)) is None
    assert book.of(TrackId(1)) is not None


def test_the_mean_is_the_same_array_until_a_view_is_added(make_landmarks: MakeLandmarks) -> None:
    book = LooksBook(Counting())  # type: ignore[arg-type]
    book.offer([glance(make_landmarks, 0)])
    first = book.of(TrackId(0))
    book.offer([glance(make_landmarks, 4)])
    assert book.of(TrackId(0)) is first
    book.offer([glance(make_landmarks, 40)])
    assert book.of(TrackId(0)) is not first

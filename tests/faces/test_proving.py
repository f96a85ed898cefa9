from collections.abc import Sequence

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face
from app.faces.landmarks import CropRegion, Located, face_from_landmarks
from app.faces.proving import FaceProver
from app.faces.tracks import Candidate
from tests.faces.conftest import MakeLandmarks

PICTURE = Picture.from_rgb(np.zeros((128, 128, 3), np.uint8))


class World:
    """A mesh whose result moves on by some pixels each time, and a recognizer that sees so much."""

    def __init__(self, landmarks: FloatArray, *, moves_px: float, strength: float) -> None:
        self._landmarks = landmarks
        self._moves_px = moves_px
        self._strength = strength
        self.asked: list[str] = []

    def locate(self, items: Sequence[tuple[Picture, CropRegion]]) -> Located:
        self.asked.append("mesh")
        self._landmarks = self._landmarks + np.array([self._moves_px, 0, 0], np.float32)
        return np.stack([self._landmarks] * len(items)), np.ones(len(items), np.float32)

    def strengths(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        self.asked.append("recognizer")
        return np.full(len(items), self._strength, np.float32)


@pytest.mark.parametrize(
    ("score", "moves_px", "strength", "expected", "asked"),
    [
        pytest.param(0.93, 9.0, 1.0, True, [], id="the detector is sure"),
        pytest.param(0.8, 0.2, 12.0, True, ["mesh"] * 2 + ["recognizer"], id="a face all the same"),
        pytest.param(0.8, 4.0, 12.0, False, ["mesh"] * 2, id="the mesh does not settle"),
        pytest.param(
            0.8, 0.2, 7.0, False, ["mesh"] * 2 + ["recognizer"], id="nobody in particular"
        ),
    ],
)
def test_doubtful_finds_are_looked_at_closely(
    make_landmarks: MakeLandmarks,
    score: float,
    moves_px: float,
    strength: float,
    expected: bool,
    asked: list[str],
) -> None:
    landmarks = make_landmarks(size=80)
    world = World(landmarks, moves_px=moves_px, strength=strength)
    find = Candidate(face_from_landmarks(landmarks, score), landmarks, 1.0)
    prover = FaceProver(world, world)  # type: ignore[arg-type]
    assert prover.proven([(PICTURE, find)]) == [expected]
    assert world.asked == asked


def test_without_a_recognizer_the_mesh_decides(make_landmarks: MakeLandmarks) -> None:
    landmarks = make_landmarks(size=80)
    world = World(landmarks, moves_px=0.1, strength=0.0)
    find = Candidate(face_from_landmarks(landmarks, 0.8), landmarks, 1.0)
    assert FaceProver(world).proven([(PICTURE, find)]) == [True]  # type: ignore[arg-type]


def test_of_a_face_that_the_border_cuts_the_mesh_alone_decides(
    make_landmarks: MakeLandmarks,
) -> None:
    landmarks = make_landmarks(size=80)
    landmarks = landmarks - np.array([landmarks[:, 0].mean(), 0, 0], np.float32)
    world = World(landmarks, moves_px=0.2, strength=7.0)
    find = Candidate(face_from_landmarks(landmarks, 0.8), landmarks, 1.0)
    assert FaceProver(world, world).proven([(PICTURE, find)]) == [True]  # type: ignore[arg-type]

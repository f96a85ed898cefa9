"""Portraits painted from the canonical mesh: faces whose every point is known, without a camera or a network."""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.mesh_topology import load_topology
from app.core.types import FaceBatch, Identity, IdentityId, SourceView
from app.processors.mesh.face_model import FaceModel, build_face_model

RgbImage = NDArray[np.uint8]
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Portrait:
    """A painted face and where its points are."""

    image: RgbImage
    landmarks: FloatArray


MakePortrait = Callable[..., Portrait]
MakeIdentity = Callable[..., Identity]
MakeBatch = Callable[..., FaceBatch]


@pytest.fixture(scope="session")
def model() -> FaceModel:
    """The canonical face."""
    return build_face_model(load_topology())


@pytest.fixture
def make_portrait(model: FaceModel) -> MakePortrait:
    """Paint a face; `features` is the color of brows and lips, `yaw_deg` turns it, `mouth_open_cm` opens the mouth."""

    def build(
        *,
        side_px: int = 160,
        face_px: float = 110,
        skin: tuple[int, int, int] = (205, 160, 130),
        features: tuple[int, int, int] = (70, 40, 40),
        yaw_deg: float = 0,
        mouth_open_cm: float = 0,
        seed: int = 0,
    ) -> Portrait:
        points = _acted(model.canonical, mouth_open_cm)
        landmarks = _placed(points, side_px, face_px, yaw_deg)
        image = np.full((side_px, side_px, 3), (60, 90, 120), np.uint8)
        for triangle in landmarks[model.triangles, :2]:
            cv2.fillConvexPoly(image, np.rint(triangle * 16).astype(np.int32), skin, shift=4)
        _paint_features_inplace(image, landmarks, features)
        noise = np.random.default_rng(seed).normal(0, 3, image.shape)
        return Portrait(np.clip(image + noise, 0, 255).astype(np.uint8), landmarks)

    return build


def _acted(canonical: FloatArray, mouth_open_cm: float) -> FloatArray:
    points = canonical.copy()
    lower = [pair[1] for pair in regions.LIP_PAIRS]
    upper = [pair[0] for pair in regions.LIP_PAIRS]
    points[lower] = points[upper] + [0, mouth_open_cm, 0]
    return points


def _placed(points: FloatArray, side_px: int, face_px: float, yaw_deg: float) -> FloatArray:
    angle = np.deg2rad(yaw_deg)
    turn = np.array(
        [[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]]
    )
    scale = face_px / np.ptp(points[:, 1])
    placed = points @ turn.T * scale
    placed[:, :2] += side_px / 2 - (placed[:, :2].min(0) + placed[:, :2].max(0)) / 2
    eyes = (regions.LEFT_EYE, regions.RIGHT_EYE)
    irises = np.repeat([placed[list(eye)].mean(0) for eye in eyes], 5, axis=0)
    return np.concatenate([placed, irises]).astype(np.float32)


def _paint_features_inplace(
    image: RgbImage, landmarks: FloatArray, features: tuple[int, int, int]
) -> None:
    for contour, color in (
        (regions.LEFT_BROW, features),
        (regions.RIGHT_BROW, features),
        (regions.LEFT_EYE, (235, 235, 235)),
        (regions.RIGHT_EYE, (235, 235, 235)),
        (regions.LIPS_OUTER, features),
        (regions.LIPS_INNER, (250, 250, 245)),
    ):
        polygon = np.rint(landmarks[list(contour), :2] * 16).astype(np.int32)
        cv2.fillPoly(image, [polygon], color, cv2.LINE_AA, 4)


@pytest.fixture
def make_identity() -> MakeIdentity:
    """An identity of one or more portraits."""

    def build(*portraits: Portrait, name: str = "someone") -> Identity:
        unit = np.zeros(128, np.float32)
        unit[0] = 1
        views = tuple(
            SourceView(crop=each.image, landmarks=each.landmarks, normed_embedding=unit)
            for each in portraits
        )
        return Identity(id=IdentityId(name), label=name, views=views, normed_embedding=unit)

    return build


@pytest.fixture
def make_batch(make_portrait: MakePortrait, make_identity: MakeIdentity) -> MakeBatch:
    """A batch of `n` painted targets, all of which shall get one source."""

    def build(n: int = 1, **target: object) -> FaceBatch:
        source = make_identity(make_portrait(skin=(150, 100, 70), features=(20, 20, 30), seed=9))
        rows = [make_portrait(**{"seed": seed, **target}) for seed in range(n)]
        side = rows[0].image.shape[0] if rows else 64
        return FaceBatch(
            crops=np.stack([row.image for row in rows])
            if rows
            else np.empty((0, side, side, 3), np.uint8),
            masks=np.ones((n, side, side), np.float32),
            affine=np.tile(np.eye(2, 3, dtype=np.float32), (n, 1, 1)),
            landmarks=(
                np.stack([row.landmarks for row in rows])
                if rows
                else np.empty((0, 478, 3), np.float32)
            ),
            identities=(source,) * n,
        )

    return build

"""Landmarks of a made-up face, and identities."""

from collections.abc import Callable

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.mesh_topology import load_topology
from app.core.types import Identity, IdentityId, SourceView

MakeLandmarks = Callable[..., FloatArray]
MakeIdentity = Callable[..., Identity]


@pytest.fixture(scope="session")
def make_landmarks() -> MakeLandmarks:
    """Build the canonical face at a place: `size` is its height in pixels, `roll_rad` turns it clockwise."""
    shape = load_topology().vertices * np.array([1, -1, -1], np.float32)
    low, high = shape.min(0), shape.max(0)
    shape = (shape - (low + high) / 2) / (high[1] - low[1])
    irises = np.repeat(shape[[159, 386]], 5, axis=0)
    shape = np.concatenate([shape, irises])

    def build(
        *, cx: float = 64, cy: float = 64, size: float = 60, roll_rad: float = 0
    ) -> FloatArray:
        cosine, sine = np.cos(roll_rad), np.sin(roll_rad)
        turned = shape.copy()
        turned[:, :2] = shape[:, :2] @ np.array([[cosine, sine], [-sine, cosine]])
        return (turned * size + np.array([cx, cy, 0])).astype(np.float32)

    return build


@pytest.fixture
def make_identity(make_landmarks: MakeLandmarks) -> MakeIdentity:
    """Build an identity of one gray view."""

    def build(name: str = "somebody") -> Identity:
        embedding = np.eye(128, dtype=np.float32)[0]
        view = SourceView(
            crop=np.full((128, 128, 3), 100, np.uint8),
            landmarks=make_landmarks(),
            normed_embedding=embedding,
        )
        return Identity(id=IdentityId(name), label=name, views=(view,), normed_embedding=embedding)

    return build

"""Faces that touch and overlap: each with its own mask, the nearer one in front, whoever of them is changed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.mesh_topology import load_topology
from app.core.types import CropSpec, Face, FaceBatch, Frame
from app.faces.align import AlignedFaces, align
from app.faces.paste import paste
from tests.conftest import MakeFace, MakeFrame
from tests.faces.conftest import MakeIdentity

NATIVE = CropSpec(template="native", size_px=16, margin=0.1)
FAR, NEAR = (0, 0, 255), (255, 0, 0)
FAR_PX, NEAR_PX = 60, 90


def points(cx: float, cy: float, size_px: float) -> NDArray[np.float32]:
    mesh = load_topology().vertices * [1, -1, -1]
    placed = mesh * (size_px / np.ptp(mesh[:, 1]))
    placed[:, :2] += np.array([cx, cy]) - (placed[:, :2].min(0) + placed[:, :2].max(0)) / 2
    return np.concatenate([placed, np.repeat(placed[:1], 10, 0)]).astype(np.float32)


def painted(faces: AlignedFaces) -> FaceBatch:
    """Blue for the farther face, red for the nearer one, with a mask well beyond the face itself."""
    batch = faces.batch
    crops = batch.crops.copy()
    for row, mesh in enumerate(batch.landmarks):
        crops[row] = NEAR if np.ptp(mesh[:, 1]) > (FAR_PX + NEAR_PX) / 2 else FAR
    return replace(batch, crops=crops)


def laid(frame: Frame) -> NDArray[np.uint8]:
    aligned = align((frame,), NATIVE)
    out = paste((frame,), aligned, [painted(each) for each in aligned])[0]
    return out.picture.read(out.picture.box)


@pytest.fixture
def pair(make_face: MakeFace, make_identity: MakeIdentity) -> tuple[Face, Face]:
    """A farther and a nearer face, a third of the farther one behind the other."""
    far = make_face(landmarks=points(48, 64, FAR_PX), identity=make_identity())
    near = make_face(landmarks=points(92, 64, NEAR_PX), identity=make_identity())
    return far, near


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["far first", "near first"])
def test_the_nearer_face_lies_in_front(
    pair: tuple[Face, Face], make_frame: MakeFrame, order: tuple[int, int]
) -> None:
    image = laid(make_frame(faces=tuple(pair[at] for at in order)))
    assert image[64, 66].tolist() == list(NEAR)
    assert image[64, 35].tolist() == list(FAR)


def test_a_changed_face_does_not_lie_over_a_nearer_one_that_stays(
    pair: tuple[Face, Face], make_frame: MakeFrame
) -> None:
    far, near = pair
    image = laid(make_frame(faces=(far, replace(near, identity=None))))
    assert image[64, 66].tolist() == [100, 100, 100]
    assert image[64, 35].tolist() == list(FAR)


def test_a_farther_face_that_stays_takes_nothing_from_a_nearer_one(
    pair: tuple[Face, Face], make_frame: MakeFrame
) -> None:
    far, near = pair
    alone = laid(make_frame(faces=(near,)))
    assert np.array_equal(laid(make_frame(faces=(replace(far, identity=None), near))), alone)


def test_faces_apart_do_not_know_each_other(
    make_face: MakeFace, make_identity: MakeIdentity, make_frame: MakeFrame
) -> None:
    far = make_face(landmarks=points(20, 64, 30), identity=make_identity())
    near = make_face(landmarks=points(92, 64, NEAR_PX), identity=make_identity())
    both, alone = laid(make_frame(faces=(far, near))), laid(make_frame(faces=(far,)))
    assert np.array_equal(both[:, :34], alone[:, :34])

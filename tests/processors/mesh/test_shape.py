"""Proportions move from face to face; pose and acting do not."""

import numpy as np
import pytest

from app.core import mesh_regions as regions
from app.processors.mesh.face_model import FaceModel
from app.processors.mesh.shape import gap_share, proportions, reshaped, rigid_pose
from tests.processors.conftest import MakePortrait


def turned(points: np.ndarray, angle_deg: float, scale: float) -> np.ndarray:
    angle = np.deg2rad(angle_deg)
    turn = np.array(
        [[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]]
    )
    return (scale * points @ turn.T + [40, -7, 3]).astype(np.float32)


def wide_nosed(model: FaceModel) -> np.ndarray:
    points = model.canonical.copy()
    nose = np.linalg.norm(points - points[1], axis=1) < 4
    points[nose, 0] *= 1.4
    return points


def test_a_rigid_pose_is_found_again(model: FaceModel) -> None:
    there = turned(model.canonical, 25, 12)
    assert np.abs(rigid_pose(model.canonical, there).apply(model.canonical) - there).max() < 1e-2


def test_proportions_do_not_depend_on_pose_or_size(model: FaceModel) -> None:
    face = wide_nosed(model)
    near, far = (proportions(turned(face, *pose), model) for pose in ((20, 30), (-10, 4)))
    assert np.abs(near - far).max() < 1e-3


def test_a_face_moves_towards_other_proportions(model: FaceModel) -> None:
    target = turned(model.canonical, 15, 20)
    wanted = proportions(wide_nosed(model), model)
    half, whole = (reshaped(target, wanted, model, strength) for strength in (0.5, 1.0))
    wing = 98
    assert np.linalg.norm(whole[wing] - target[wing]) > 4
    assert np.allclose(half - target, (whole - target) / 2, atol=0.01)


def test_strength_zero_moves_nothing(model: FaceModel) -> None:
    target = turned(model.canonical, 15, 20)
    assert reshaped(target, proportions(wide_nosed(model), model), model, 0) is target


def test_the_outline_never_moves(model: FaceModel) -> None:
    target = turned(model.canonical, 5, 20)
    wanted = proportions(model.canonical * np.array([1.2, 0.8, 1], np.float32), model)
    moved = reshaped(target, wanted, model, 1) - target
    assert np.abs(moved[list(regions.FACE_OVAL)]).max() < 1e-4


def test_an_open_source_does_not_open_the_targets_mouth(
    model: FaceModel, make_portrait: MakePortrait
) -> None:
    shut = make_portrait().landmarks[:468]
    gaping = make_portrait(mouth_open_cm=2).landmarks[:468]
    out = reshaped(shut, proportions(gaping, model), model, 1)
    corners = (*regions.MOUTH_GAP, *regions.MOUTH_CORNERS)
    assert gap_share(out, *corners) == pytest.approx(gap_share(shut, *corners), abs=0.02)


def test_a_wide_eyed_source_does_not_open_closed_eyes(model: FaceModel) -> None:
    shut = model.canonical.copy()
    for contour, _, lids in regions.EYES:
        shut[list(contour), 1] = shut[lids[2], 1]
    out = reshaped(turned(shut, 0, 20), proportions(model.canonical, model), model, 1)
    assert max(gap_share(out, *lids) for _, _, lids in regions.EYES) < 0.05

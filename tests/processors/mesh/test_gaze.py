"""The source's eyes look where the target looks."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from app.core import mesh_regions as regions
from app.core.types import FaceBatch
from app.processors.face_swapper import MeshSwapper, Options
from app.processors.mesh.face_model import FaceModel
from app.processors.mesh.gaze import Gaze, source_eyes
from tests.processors.conftest import MakeBatch, MakeIdentity, MakePortrait, Portrait

RED = np.array([200, 0, 0])
IRIS_PX = 6


def looking(portrait: Portrait, shift_px: float) -> Portrait:
    """The same face with red irises, moved aside."""
    landmarks, image = portrait.landmarks.copy(), portrait.image.copy()
    landmarks[468:, 0] += shift_px
    for row in (468, 473):
        x, y = landmarks[row, :2].round().astype(int).tolist()
        cv2.circle(image, (x, y), IRIS_PX, RED.tolist(), -1)
    return Portrait(image, landmarks)


def with_eyes_at(gap: float, landmarks: np.ndarray) -> np.ndarray:
    """Lids moved until their gap is so many widths of the eye."""
    moved = landmarks.copy()
    for contour, _, (upper, lower, outer, inner) in regions.EYES:
        rows = list(contour)
        width = np.linalg.norm(landmarks[outer, :2] - landmarks[inner, :2])
        now = np.linalg.norm(landmarks[upper, :2] - landmarks[lower, :2]) / width
        middle = landmarks[rows, 1].mean()
        moved[rows, 1] = middle + (landmarks[rows, 1] - middle) * gap / now
    return moved


def red_middle(image: np.ndarray, landmarks: np.ndarray, iris: int) -> float:
    """Where the red of one eye is, in pixels right of the middle between its corners."""
    lids = regions.EYES[0 if iris == 468 else 1][2]
    corners = landmarks[list(lids[2:]), :2]
    (x0, x1), y = sorted(corners[:, 0].round().astype(int)), round(float(corners[:, 1].mean()))
    part = image[y - 4 : y + 5, x0:x1].astype(float)
    red = np.maximum(part[..., 0] - part[..., 1:].max(2) - 40, 0)
    assert red.sum() > 0
    across = np.arange(x0, x1)
    return float((red.sum(0) * across).sum() / red.sum() - corners[:, 0].mean())


@pytest.mark.parametrize("theirs_px", [-3, 0, 3], ids="target looks {}".format)
@pytest.mark.parametrize("ours_px", [-2, 2], ids="source looks {}".format)
def test_the_iris_lies_where_the_targets_is(
    ours_px: int,
    theirs_px: int,
    make_portrait: MakePortrait,
    make_identity: MakeIdentity,
    make_batch: MakeBatch,
) -> None:
    size = {"side_px": 320, "face_px": 240.0}
    source = make_identity(looking(make_portrait(**size), ours_px))
    target = looking(make_portrait(**size), theirs_px)
    batch = replace(
        make_batch(**size), landmarks=target.landmarks[None], identities=(source,), track_ids=()
    )
    out = swapped(batch)
    for iris in (468, 473):
        assert red_middle(out, target.landmarks, iris) == pytest.approx(theirs_px, abs=2)


def swapped(batch: FaceBatch) -> np.ndarray:
    result: np.ndarray = MeshSwapper(Options(shape=0)).process(batch).crops[0]
    return result


@pytest.mark.parametrize(
    ("ours", "theirs", "aside_px", "kept"),
    [
        pytest.param(0.4, 0.4, 0, 0, id="open and straight ahead"),
        pytest.param(0.4, 0.1, 0, 1, id="the target's eye is closed"),
        pytest.param(0.1, 0.4, 0, 1, id="the source's eye is closed"),
        pytest.param(0.4, 0.4, 16, 1, id="the target looks far aside"),
    ],
)
def test_where_the_source_has_no_eye_to_offer_the_targets_stays(
    ours: float,
    theirs: float,
    aside_px: float,
    kept: float,
    model: FaceModel,
    make_portrait: MakePortrait,
) -> None:
    portrait = make_portrait(side_px=320, face_px=240.0)
    source = with_eyes_at(ours, portrait.landmarks)
    target = with_eyes_at(theirs, portrait.landmarks)
    target[468:, 0] += aside_px
    eyes = source_eyes(source, model.uv, model.triangles)
    gaze = Gaze(target, model.uv, model.triangles, source=eyes)
    assert gaze.kept == pytest.approx((kept, kept), abs=0.01)


def test_texture_moves_inside_the_lids_only(model: FaceModel, make_portrait: MakePortrait) -> None:
    landmarks = make_portrait(side_px=320, face_px=240.0).landmarks
    aside = landmarks.copy()
    aside[468:, 0] += 5
    gaze = Gaze(
        aside, model.uv, model.triangles, source=source_eyes(landmarks, model.uv, model.triangles)
    )
    still = np.zeros((320, 320, 2), np.float32)
    still[...] = model.uv[list(regions.LEFT_EYE)].mean(0)
    moved = still.copy()
    gaze.follow_inplace(moved, landmarks[:468])
    changed = (moved != still).any(2)
    canvas = np.zeros((320, 320), np.uint8)
    for contour, _, _ in regions.EYES:
        cv2.fillPoly(canvas, [landmarks[list(contour), :2].round().astype(np.int32)], (1,))
    assert changed.any()
    assert not (changed & (cv2.dilate(canvas, np.ones((9, 9), np.uint8)) == 0)).any()

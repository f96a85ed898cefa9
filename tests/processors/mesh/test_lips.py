"""A smiling photo's lips can be shut."""

import cv2
import numpy as np
import pytest

from app.core import mesh_regions as regions
from app.processors.mesh.atlas import build_atlas
from app.processors.mesh.face_model import FaceModel, texture_points
from app.processors.mesh.filters import filled
from app.processors.mesh.lips import closable_lips
from tests.processors.conftest import MakeIdentity, MakePortrait

SIDE = 384
SKIN = (205, 160, 130)
LIP = (170, 90, 90)


def areas(model: FaceModel) -> tuple[np.ndarray, np.ndarray]:
    points = texture_points(model.uv, SIDE)
    inner = filled((regions.LIPS_INNER,), points, (SIDE, SIDE)) > 0.5
    return (filled((regions.LIPS_OUTER,), points, (SIDE, SIDE)) > 0.5) & ~inner, inner


def texture(model: FaceModel, teeth: tuple[int, int, int], bleed: bool) -> np.ndarray:
    lips, inner = areas(model)
    rgb = np.full((SIDE, SIDE, 3), SKIN, np.float32)
    rgb[lips] = LIP
    rgb[inner] = teeth
    if bleed:
        rows = np.flatnonzero(lips.any(1))
        upper = rows[: len(rows) // 2][-3:]
        rgb[upper] = np.where(lips[upper][..., None], teeth, rgb[upper])
    return rgb


@pytest.mark.parametrize("bleed", [False, True], ids=["teeth between", "teeth on the lips too"])
def test_no_teeth_are_left(bleed: bool, model: FaceModel) -> None:
    healed = closable_lips(texture(model, (235, 230, 220), bleed), model)
    lips, inner = areas(model)
    where = lips | inner
    assert healed[where].mean(1).max() < np.mean(SKIN)
    redness = healed[where][:, 0] - healed[where][:, 1]
    assert redness.min() > 0.5 * (SKIN[0] - SKIN[1])


def test_the_line_between_the_lips_is_darker_than_they_are_and_no_bluer(model: FaceModel) -> None:
    healed = closable_lips(texture(model, (235, 230, 220), bleed=False), model)
    _, inner = areas(model)
    line = healed[inner].mean(0)
    assert line.mean() < 0.9 * np.mean(LIP)
    assert line[2] <= line[1] * 1.1 < line[0]


def test_skin_is_left_alone(model: FaceModel) -> None:
    rgb = texture(model, (235, 230, 220), bleed=True)
    points = texture_points(model.uv, SIDE)
    near = cv2.dilate(filled((regions.LIPS_OUTER,), points, (SIDE, SIDE)), np.ones((15, 15)))
    far = near == 0
    assert np.allclose(closable_lips(rgb, model)[far], rgb[far], atol=0.01)


def test_a_gray_picture_stays_gray(model: FaceModel) -> None:
    rgb = texture(model, (235, 230, 220), bleed=False).mean(2, keepdims=True).repeat(3, 2)
    lips, _ = areas(model)
    healed = closable_lips(rgb, model)[lips]
    assert np.ptp(healed, axis=1).mean() < 6


def test_an_atlas_of_a_smile_has_no_white_in_its_mouth(
    model: FaceModel, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    smile = make_portrait(side_px=480, face_px=400, features=(170, 80, 80), mouth_open_cm=1)
    atlas = build_atlas(make_identity(smile), model)
    top = atlas.levels[0]
    points = texture_points(model.uv, top.shape[0])
    mouth = filled((regions.LIPS_OUTER,), points, (top.shape[1], top.shape[0])) > 0.5
    assert top[mouth].mean(1).max() < 1.2 * 165  # as bright as its skin, but for noise

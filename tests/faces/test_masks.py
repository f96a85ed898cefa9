"""What lies before a painted face is kept; what belongs to a face is not taken for something before it."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.mesh_topology import load_topology
from app.faces.masks import ColorMasker

RgbImage = NDArray[np.uint8]
SIDE = 200
SKINS = {"pale": (225, 185, 165), "brown": (150, 100, 70), "dark": (85, 55, 42)}


def landmarks() -> NDArray[np.float32]:
    points = load_topology().vertices * [1, -1, -1]
    placed = points * (150 / np.ptp(points[:, 1]))
    placed[:, :2] += SIDE / 2 - (placed[:, :2].min(0) + placed[:, :2].max(0)) / 2
    irises = np.repeat(
        [placed[list(eye)].mean(0) for eye in (regions.LEFT_EYE, regions.RIGHT_EYE)], 5, 0
    )
    return np.concatenate([placed, irises]).astype(np.float32)


POINTS = landmarks()


def fill(image: RgbImage, contour: tuple[int, ...], color: tuple[int, ...]) -> None:
    cv2.fillPoly(image, [np.rint(POINTS[list(contour), :2]).astype(np.int32)], color)


def oval() -> NDArray[np.bool_]:
    canvas = np.zeros((SIDE, SIDE, 3), np.uint8)
    fill(canvas, regions.FACE_OVAL, (1, 1, 1))
    return canvas[..., 0] > 0


def portrait(skin: tuple[int, int, int], lips: tuple[int, int, int] = (170, 40, 60)) -> RgbImage:
    image = np.full((SIDE, SIDE, 3), (70, 80, 90), np.uint8)
    fill(image, regions.FACE_OVAL, skin)
    for brow in (regions.LEFT_BROW, regions.RIGHT_BROW):
        fill(image, brow, (40, 30, 25))
    for eye in (regions.LEFT_EYE, regions.RIGHT_EYE):
        fill(image, eye, (235, 235, 235))
    fill(image, regions.LIPS_OUTER, lips)
    noise = np.random.default_rng(0).normal(0, 3, image.shape)
    return np.asarray(np.clip(image + noise, 0, 255), np.uint8)


def covered(image: RgbImage) -> NDArray[np.bool_]:
    mask = ColorMasker().masks(image[None], POINTS[None], ())[0]
    return np.asarray(mask < 0.5)


def lit(image: RgbImage, light: NDArray[np.float64]) -> RgbImage:
    return np.asarray(np.clip(image * light, 0, 255), np.uint8)


def bearded(image: RgbImage, color: int) -> RgbImage:
    out = image.copy()
    below = oval() & (np.arange(SIDE)[:, None] > POINTS[2, 1] + 4)
    spots = below & (np.random.default_rng(1).random((SIDE, SIDE)) < 0.7)
    out[spots] = color
    fill(out, regions.LIPS_OUTER, (160, 60, 70))
    return out


@pytest.mark.parametrize("skin", SKINS.values(), ids=SKINS)
@pytest.mark.parametrize(
    "color",
    [(40, 90, 170), (60, 140, 70), (160, 60, 160), (240, 230, 20)],
    ids=["blue", "green", "violet", "yellow"],
)
def test_a_bar_before_a_face_stays(skin: tuple[int, int, int], color: tuple[int, ...]) -> None:
    image = portrait(skin)
    bar = np.zeros((SIDE, SIDE), bool)
    bar[:, 60:95] = True
    image[bar] = color
    found, inside = covered(image), oval()
    overlap = (found & bar & inside).sum() / ((found | bar) & inside).sum()
    assert overlap > 0.85


def test_a_gray_thing_before_a_cheek_stays() -> None:
    image = portrait(SKINS["pale"])
    image[85:125, 40:75] = (150, 150, 152)
    found = covered(image)
    assert found[90:120, 50:70].mean() > 0.9
    assert found[:, 110:].mean() < 0.02


@pytest.mark.parametrize("skin", SKINS.values(), ids=SKINS)
@pytest.mark.parametrize(
    "lips", [(170, 40, 60), (120, 20, 90), (30, 20, 60)], ids=["red", "plum", "nearly black"]
)
def test_eyes_brows_and_made_up_lips_are_the_face(
    skin: tuple[int, int, int], lips: tuple[int, int, int]
) -> None:
    assert not covered(portrait(skin, lips)).any()


@pytest.mark.parametrize("color", [25, 120, 215], ids=["black", "gray", "white"])
def test_a_beard_is_the_face(color: int) -> None:
    assert not covered(bearded(portrait(SKINS["pale"]), color)).any()


@pytest.mark.parametrize(
    "light",
    [
        pytest.param(np.linspace(0.15, 1.1, SIDE)[None, :, None], id="from one side"),
        pytest.param(np.linspace(1.5, 0.8, SIDE)[:, None, None], id="strong from above"),
        pytest.param(
            np.linspace((1.2, 0.7, 0.6), (0.6, 0.75, 1.3), SIDE)[None], id="red and blue lamps"
        ),
    ],
)
def test_light_is_no_thing(light: NDArray[np.float64]) -> None:
    assert covered(lit(portrait(SKINS["brown"]), light))[oval()].mean() < 0.02


def test_a_gray_picture_tells_nothing() -> None:
    image = portrait(SKINS["pale"])
    image[:, 60:95] = (40, 90, 170)
    gray = np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, 2)
    assert not covered(gray).any()


def test_uncovered_faces_cost_no_memory() -> None:
    crops = np.stack([portrait(SKINS["pale"])] * 3)
    masks = ColorMasker().masks(crops, np.stack([POINTS] * 3), ())
    assert masks.shape == (3, SIDE, SIDE)
    assert masks.strides == (0, 0, 0)


def test_an_empty_batch_has_no_masks() -> None:
    masks = ColorMasker().masks(
        np.empty((0, 64, 64, 3), np.uint8), np.empty((0, 478, 3), np.float32), ()
    )
    assert masks.shape == (0, 64, 64)


def test_a_speck_of_a_face_is_left_alone() -> None:
    small = cv2.resize(portrait(SKINS["pale"]), (24, 24))
    points = POINTS * np.float32(24 / SIDE)
    assert ColorMasker().masks(small[None], points[None], ()).min() == 1

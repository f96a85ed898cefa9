"""The face's own skin is the measure, and the picture's own grain."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.processors.mesh.sharpness import fine_change, fineness_ratio, match_sharpness
from app.processors.mesh.skin import Strictness, skin_likelihood

STRICTNESS = Strictness(surely=3.0, never=4.4)


@pytest.mark.parametrize(
    "skin", [(225, 185, 165), (150, 100, 70), (70, 45, 35)], ids=["pale", "brown", "dark"]
)
def test_hair_is_told_from_any_skin(skin: tuple[int, int, int]) -> None:
    image = np.full((40, 40, 3), skin, np.uint8)
    hair = tuple(level // 5 for level in skin) if sum(skin) > 200 else (190, 180, 150)
    image[:12] = hair
    seeds = np.zeros((40, 40), bool)
    seeds[20:34, 10:30] = True
    likely = skin_likelihood(image, seeds, STRICTNESS)
    assert likely[16:].min() == 1
    assert likely[:8].max() < 0.2


def test_shadows_and_highlights_are_still_skin() -> None:
    shade = np.linspace(0.6, 1.15, 40)[None, :, None]
    image = np.clip(np.array((190, 145, 120)) * shade, 0, 255).repeat(40, 0).astype(np.uint8)
    seeds = np.zeros((40, 40), bool)
    seeds[10:30, 10:30] = True
    assert skin_likelihood(image, seeds, STRICTNESS).min() > 0.9


def test_without_seeds_everything_counts_as_skin() -> None:
    image = np.zeros((10, 10, 3), np.uint8)
    assert skin_likelihood(image, np.zeros((10, 10), bool), STRICTNESS).min() == 1


def textured(spread: float, blur_px: float = 0, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 1, (128, 128)).astype(np.float32)
    if blur_px:
        noise = cv2.GaussianBlur(noise, (0, 0), blur_px)
        noise /= noise.std()
    gray = np.clip(128 + spread * noise, 0, 255)
    return np.repeat(gray[..., None], 3, axis=2).astype(np.float32)


def sharpened(texture: np.ndarray, target: np.ndarray, skin: np.ndarray) -> np.ndarray:
    ratio = fineness_ratio(texture, target, skin)
    return match_sharpness(texture, target, skin=skin, face_px=100, ratio=ratio)


def ratio_after(texture: np.ndarray, target: np.ndarray) -> float:
    skin = np.ones((128, 128), np.float32)
    matched = sharpened(texture, target.astype(np.uint8), skin)
    return fineness_ratio(matched, target.astype(np.uint8), skin)


def test_a_texture_that_is_too_sharp_is_softened() -> None:
    texture, target = textured(6, 1.0), textured(6, 2.0, seed=1)
    before = fineness_ratio(texture, target.astype(np.uint8), np.ones((128, 128), np.float32))
    assert before < 0.7
    assert 0.6 < ratio_after(texture, target) < 1.6


def test_a_texture_that_is_too_soft_gets_the_targets_grain() -> None:
    texture, target = textured(4, 4.0), textured(2, 0.8, seed=1)
    before = fineness_ratio(texture, target.astype(np.uint8), np.ones((128, 128), np.float32))
    assert before > 1.5
    assert 0.7 < ratio_after(texture, target) < 1.5


def test_grain_is_laid_on_skin_only() -> None:
    texture, target = textured(1, 4.0), textured(5, 0.8, seed=1)
    skin = np.ones((128, 128), np.float32)
    skin[:64] = 0
    matched = sharpened(texture, target.astype(np.uint8), skin)
    assert np.array_equal(matched[:64], texture[:64])
    assert not np.array_equal(matched[64:], texture[64:])


def test_like_is_left_alone() -> None:
    texture = textured(5, 1.5)
    skin = np.ones((128, 128), np.float32)
    assert sharpened(texture, texture.astype(np.uint8), skin) is texture


SMOOTH = np.full((96, 96, 3), 150, np.uint8)


def lines(width_px: float, strength: float) -> NDArray[np.float32]:
    wave = np.sin(np.arange(96, dtype=np.float32) * np.float32(np.pi / width_px))
    return np.repeat((150 + strength * wave)[None, :, None].repeat(96, 0), 3, 2).astype(np.float32)


def left_of(width_px: float, skin: float, target: NDArray[np.uint8] = SMOOTH) -> float:
    """Share of a texture's lines that stays in a moving picture."""
    texture = lines(width_px, 12)
    where = np.full(texture.shape[:2], skin, np.float32)
    out = texture[..., 0] + fine_change(texture, target, skin=where, face_px=200)
    return float(out[20:-20, 20:-20].std() / texture[20:-20, 20:-20, 0].std())


def test_lines_that_a_smooth_target_has_not_are_taken_off_its_skin() -> None:
    assert left_of(3, skin=1) < 0.35
    assert left_of(5, skin=1) < left_of(5, skin=0) - 0.1


def test_where_the_target_has_lines_features_keep_theirs() -> None:
    target = lines(3, 30).astype(np.uint8)
    assert left_of(3, skin=0, target=target) > 0.95
    assert left_of(3, skin=1, target=target) < left_of(3, skin=0, target=target)


def test_what_is_broader_than_lines_stays() -> None:
    assert left_of(24, skin=1) > 0.9

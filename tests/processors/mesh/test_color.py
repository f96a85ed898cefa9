"""A texture takes on light, tone and tint of a target."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from app.processors.mesh.color import match_color
from tests.processors.mesh.pairs import face_pair

pair = partial(face_pair, face_px=80.0)

SIDE = 96


def skin(color: tuple[float, float, float], spread: float = 8, seed: int = 0) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    shade = rng.normal(0, spread, (SIDE, SIDE, 1))
    hue = rng.normal(0, spread / 3, (SIDE, SIDE, 3))
    return np.clip(np.array(color) + shade + hue, 0, 255).round().astype(np.uint8)


def colored(
    texture: NDArray[np.uint8], target: NDArray[np.uint8], shading: float = 0.75
) -> np.ndarray:
    return match_color(pair(texture, target), shading).apply(texture)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param((220, 185, 170), (120, 80, 60), id="pale to dark"),
        pytest.param((110, 72, 55), (225, 190, 175), id="dark to pale"),
        pytest.param((200, 160, 140), (170, 60, 50), id="white light to red"),
        pytest.param((128, 128, 128), (205, 160, 130), id="gray photo to color"),
    ],
)
def test_the_mean_becomes_the_targets(ours: tuple, theirs: tuple) -> None:
    out = colored(skin(ours), skin(theirs, seed=1))
    assert np.abs(out.mean((0, 1)) - np.array(theirs)).max() < 6


def test_matching_a_face_with_itself_changes_little() -> None:
    face = skin((190, 150, 125))
    assert np.abs(colored(face, face) - face).mean() < 2.5


def test_a_gray_target_leaves_no_color_at_all() -> None:
    gray = np.repeat(skin((140, 140, 140))[..., :1], 3, axis=2)
    out = colored(skin((200, 150, 120), seed=2), gray)
    assert np.ptp(out, axis=2).max() < 0.5


def test_chroma_is_never_raised() -> None:
    vivid, dull = skin((180, 140, 120), spread=12), skin((180, 140, 120), spread=3, seed=1)

    def chroma(image: np.ndarray) -> float:
        difference = image - image.mean(2, keepdims=True)
        return float(difference.std((0, 1)).mean())

    assert chroma(colored(dull, vivid).astype(float)) < 1.2 * chroma(dull.astype(float))
    assert chroma(colored(vivid, dull).astype(float)) < 1.3 * chroma(dull.astype(float))


def test_highlights_do_not_burn_out() -> None:
    texture = skin((150, 120, 100))
    texture[40:50, 40:50] = 235
    out = colored(texture, skin((235, 215, 205), spread=4, seed=1))
    assert out.mean(2).max() < 252


def test_shading_follows_the_target_as_far_as_asked() -> None:
    texture = skin((180, 140, 120), spread=2)
    lamp = np.linspace(0.5, 1.2, SIDE)[None, :, None]
    target = np.clip(skin((180, 140, 120), spread=2, seed=1) * lamp, 0, 255).astype(np.uint8)

    def slope(image: np.ndarray) -> float:
        return float(image[:, -20:].mean() / image[:, :20].mean())

    none, some, full = (slope(colored(texture, target, share)) for share in (0, 0.5, 1))
    assert none < 1.15 < some < full


def test_brows_do_not_turn_blue_when_brown_skin_becomes_pale() -> None:
    texture = skin((150, 100, 70), spread=3)
    texture[20:30, 20:60] = (45, 42, 40)
    plain = np.ones((SIDE, SIDE), np.float32)
    plain[18:32, 18:62] = 0
    target = skin((230, 205, 195), spread=3, seed=1)
    match = match_color(pair(texture, target, weights=plain, colored=plain), 0.75)
    brow = match.apply(texture)[22:28, 25:55].mean((0, 1))
    assert brow[2] < brow[0] + 6


def test_without_any_skin_the_texture_keeps_its_light() -> None:
    texture = skin((150, 100, 70))
    nothing = np.zeros((SIDE, SIDE), np.float32)
    match = match_color(pair(texture, skin((230, 205, 195)), weights=nothing), 0.75)
    assert np.array_equal(match.gain, np.ones((SIDE, SIDE, 3), np.float32))


def test_a_match_applies_at_any_resolution() -> None:
    texture = skin((150, 100, 70), spread=0)
    match = match_color(pair(texture, skin((220, 190, 170), spread=0, seed=1)), 0.75)
    large = np.repeat(np.repeat(texture, 3, 0), 3, 1)
    assert np.abs(match.apply(large).mean((0, 1)) - match.apply(texture).mean((0, 1))).max() < 1

"""A lit face is no brighter, paler or grayer than the target's skin, whatever light that is in."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from app.processors.mesh.color import FacePair, match_color
from app.processors.mesh.exposure import expose
from app.processors.mesh.filters import blurred
from app.processors.mesh.seam import seam_change
from tests.processors.mesh.pairs import face_pair

pair = partial(face_pair, face_px=110.0)

SIDE = 128
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
PALE, DARK = (228.0, 190.0, 172.0), (110.0, 72.0, 55.0)
GRAY_PATCH, HAIR = np.s_[70:90, 30:60], np.s_[20:28, 20:60]


def shaded(color: tuple[float, float, float], spread: float, seed: int) -> NDArray[np.float32]:
    """Skin with soft light and shade, of any range."""
    noise = np.random.default_rng(seed).normal(0, 1, (SIDE, SIDE)).astype(np.float32)
    soft = blurred(noise, 7.0)
    light = 1 + spread * soft / soft.std()
    return (np.array(color, np.float32) * light[..., None]).astype(np.float32)


def source(color: tuple[float, float, float]) -> NDArray[np.uint8]:
    return np.clip(shaded(color, 0.13, 0), 0, 255).astype(np.uint8)


def in_hot_light(brightness: float = 1.0) -> NDArray[np.uint8]:
    """Skin in orange light, as a camera shows it: each channel bends before its end, so what is bright is paler."""
    light = shaded((1.9, 1.05, 0.75), 0.25, 1) * brightness
    return (238 * (1 - np.exp(-1.6 * np.maximum(light, 0)))).astype(np.uint8)


def shown(both: FacePair) -> NDArray[np.float32]:
    lit = match_color(both, 0.75).apply(both.texture)
    lit += seam_change(lit, both)
    return np.asarray(lit + expose(lit, both).change(lit, both.colored), np.float32)


def chroma(rgb: NDArray[np.generic]) -> NDArray[np.float32]:
    color = rgb - (rgb @ LUMA)[..., None]
    return np.asarray(np.linalg.norm(color, axis=-1), np.float32)


@pytest.mark.parametrize("color", [pytest.param(PALE, id="pale"), pytest.param(DARK, id="dark")])
@pytest.mark.parametrize("brightness", [0.8, 1.0, 1.3])
def test_in_hot_light_highlights_stay_within_the_targets(
    color: tuple[float, float, float], brightness: float
) -> None:
    target = in_hot_light(brightness)
    ours, theirs = (image @ LUMA for image in (shown(pair(source(color), target)), target))
    assert np.percentile(ours, 99) <= np.percentile(theirs, 99) + 2
    assert ours.mean() == pytest.approx(theirs.mean(), abs=4)


@pytest.mark.parametrize("color", [pytest.param(PALE, id="pale"), pytest.param(DARK, id="dark")])
def test_skin_has_the_chroma_of_the_targets_skin_of_its_brightness(
    color: tuple[float, float, float],
) -> None:
    target = in_hot_light()
    out = shown(pair(source(color), target))
    ours, theirs = out @ LUMA, target @ LUMA
    edges = np.percentile(theirs, [2, 20, 40, 60, 80, 98])
    for low, high in pairwise(edges):
        here, there = ((luma >= low) & (luma < high) for luma in (ours, theirs))
        assert chroma(out)[here].mean() == pytest.approx(chroma(target)[there].mean(), rel=0.12)


def test_a_gray_patch_gets_back_what_skin_there_would_have() -> None:
    texture = source(PALE)
    texture[GRAY_PATCH] = (texture[GRAY_PATCH] @ LUMA)[..., None] * 0.9
    both, target = pair(texture, in_hot_light()), in_hot_light()
    lit = match_color(both, 0.75).apply(texture)
    exposed = lit + expose(lit, both).change(lit, both.colored)
    usual = np.percentile(chroma(target), 2)
    assert chroma(exposed)[GRAY_PATCH].mean() > max(0.9 * usual, chroma(lit)[GRAY_PATCH].mean())


def test_what_has_no_color_of_skin_keeps_its_own() -> None:
    texture = source(PALE)
    texture[HAIR] = (60, 58, 55)
    plain = np.ones((SIDE, SIDE), np.float32)
    plain[HAIR] = 0
    both = pair(texture, in_hot_light(), weights=plain, colored=plain)
    lit = match_color(both, 0.75).apply(texture)
    out = lit + expose(lit, both).change(lit, both.colored)
    luma = (lit @ LUMA)[HAIR], (out @ LUMA)[HAIR]
    grown = luma[1] / np.maximum(luma[0], 1)
    assert chroma(out)[HAIR] == pytest.approx(chroma(lit)[HAIR] * grown, abs=0.5)


def test_light_that_does_not_clip_leaves_room_for_a_shiny_nose() -> None:
    target = np.clip(shaded((135, 100, 85), 0.03, 1), 0, 255).astype(np.uint8)
    lit = np.clip(shaded((135, 100, 85), 0.03, 2), 0, 255)
    lit[60:66, 60:66] += 12
    out = lit + expose(lit, pair(source(PALE), target)).change(lit, np.zeros_like(lit[..., 0]))
    raised = out[60:66, 60:66].mean() - out[70:76, 60:66].mean()
    assert raised > 0.6 * (lit[60:66, 60:66].mean() - lit[70:76, 60:66].mean())


def test_a_face_like_the_target_is_hardly_touched() -> None:
    target = in_hot_light()
    lit = target.astype(np.float32)
    both = pair(target, target)
    assert np.abs(expose(lit, both).change(lit, both.colored)).mean() < 2.5


def test_a_gray_target_gets_no_color() -> None:
    gray = np.repeat(in_hot_light()[..., 1:2], 3, 2)
    assert np.ptp(shown(pair(source(PALE), gray)), axis=2).max() < 1


def test_too_little_skin_changes_nothing() -> None:
    lit = shaded(PALE, 0.05, 0)
    both = pair(source(PALE), in_hot_light(), weights=np.zeros((SIDE, SIDE), np.float32))
    assert np.abs(expose(lit, both).change(lit, both.colored)).max() < 0.5


def test_halfway_between_two_exposures_is_the_mean_of_both() -> None:
    lit = shaded(PALE, 0.1, 0)
    first, second = (expose(lit, pair(source(PALE), in_hot_light(each))) for each in (0.8, 1.3))
    half = first.between(second, 0.5)
    assert half.level == pytest.approx((first.level + second.level) / 2, abs=1e-3)
    assert half.tint == pytest.approx((first.tint + second.tint) / 2, abs=1e-3)
    assert half.grayness == pytest.approx((first.grayness + second.grayness) / 2)

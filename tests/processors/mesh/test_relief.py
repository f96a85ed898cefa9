"""Folds are brought down to the target's contrast, and never deepened."""

import numpy as np
import pytest

from app.processors.mesh.relief import broad_detail, halved, relief_change

FACE_PX = 120.0
SKIN = np.ones((128, 128), np.float32)


def folded(depth: float, columns: slice = slice(None)) -> np.ndarray:
    wave = np.full(128, 128.0)
    wave[columns] += depth * np.sin(np.arange(128) * 2 * np.pi / 10)[columns]
    return np.repeat(np.repeat(wave[None, :, None], 128, 0), 3, 2).astype(np.float32)


def detail(rgb: np.ndarray, face_px: float) -> np.ndarray:
    return broad_detail(halved(np.clip(rgb, 0, 255).astype(np.uint8)), face_px)


def strength(ours: np.ndarray, theirs: np.ndarray, skin: np.ndarray = SKIN) -> float:
    bands = [detail(image, FACE_PX) for image in (ours, theirs)]
    after = bands[0] + relief_change(*bands, drawn=skin, skin=skin, face_px=FACE_PX)
    return float(after[:, 12:-12].std() / bands[0][:, 12:-12].std())


@pytest.mark.parametrize(
    ("ours", "theirs", "share"),
    [
        pytest.param(20, 10, 0.5, id="twice as deep comes down"),
        pytest.param(40, 3, 0.3, id="much deeper keeps a part"),
        pytest.param(4, 20, 1.0, id="smoother stays smooth"),
        pytest.param(10, 10, 1.0, id="alike stays"),
    ],
)
def test_folds_come_down_to_the_target(ours: float, theirs: float, share: float) -> None:
    assert strength(folded(ours), folded(theirs)) == pytest.approx(share, abs=0.03)


def test_only_the_place_that_is_too_deep_changes() -> None:
    ours = folded(20, slice(0, 48)) + folded(3, slice(64, 128)) - 128
    bands = [detail(image, FACE_PX) for image in (ours, folded(4))]
    change = np.abs(relief_change(*bands, drawn=SKIN, skin=SKIN, face_px=FACE_PX))
    assert change[:, 4:20].max() > 3
    assert change[:, 44:].max() < 0.1


def test_shading_is_no_relief() -> None:
    lamp = np.linspace(60, 200, 128, dtype=np.float32)[None, :, None].repeat(128, 0).repeat(3, 2)
    assert np.abs(detail(lamp, FACE_PX)[10:-10, 12:-12]).max() < 0.5


def test_what_is_not_drawn_and_faces_without_skin_stay() -> None:
    bands = [detail(image, FACE_PX) for image in (folded(30), folded(2))]
    assert not relief_change(*bands, drawn=SKIN, skin=SKIN * 0, face_px=FACE_PX).any()
    half = SKIN.copy()
    half[:, 64:] = 0
    assert not relief_change(*bands, drawn=half, skin=SKIN, face_px=FACE_PX)[:, 34:].any()

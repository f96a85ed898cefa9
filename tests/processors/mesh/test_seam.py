"""The new face takes the target's color along its edge, and skin alone says what that is."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.processors.mesh.color import FacePair
from app.processors.mesh.seam import seam_change

SIDE_PX = 120
OURS = (120, 100, 90)

Image = NDArray[np.uint8]


def disk(radius_px: float) -> NDArray[np.float32]:
    y, x = np.mgrid[0:SIDE_PX, 0:SIDE_PX] - SIDE_PX / 2
    return (np.hypot(x, y) < radius_px).astype(np.float32)


def change(target: Image, weights: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    texture = np.full((SIDE_PX, SIDE_PX, 3), OURS, np.uint8)
    pair = FacePair(
        texture=texture,
        target=target,
        weights=disk(56) if weights is None else weights,
        colored=disk(56),
        alpha=disk(50),
        face_px=100.0,
    )
    return seam_change(texture.astype(np.float32), pair)


def flat(color: tuple[int, int, int]) -> Image:
    return np.full((SIDE_PX, SIDE_PX, 3), color, np.uint8)


def test_what_agrees_is_left_alone() -> None:
    assert np.abs(change(flat(OURS))).max() == pytest.approx(0, abs=1e-3)


def test_a_difference_all_around_moves_the_whole_face() -> None:
    moved = change(flat((132, 95, 90)))[disk(48) > 0]
    assert np.abs(moved - (12, -5, 0)).max() < 1


def test_a_difference_at_one_side_stays_there() -> None:
    target = flat(OURS)
    target[:, : SIDE_PX // 2] += 20
    moved = change(target)
    assert moved[60, 14].min() > 15
    assert np.abs(moved[60, 106]).max() < 4


def test_hair_at_the_edge_has_no_say() -> None:
    target, weights = flat(OURS), disk(56)
    target[:40], weights[:40] = 20, 0
    assert np.abs(change(target, weights)).max() < 1


def test_where_no_skin_is_seen_nothing_is_moved() -> None:
    nowhere = np.zeros((SIDE_PX, SIDE_PX), np.float32)
    assert np.abs(change(flat((250, 250, 250)), nowhere)).max() == 0


def test_no_color_is_moved_far() -> None:
    assert np.abs(change(flat((255, 255, 255)))).max() <= 40

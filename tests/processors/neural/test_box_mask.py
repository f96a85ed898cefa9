"""How much of a swapped crop is put back."""

import numpy as np
import pytest

from app.processors.neural.box_mask import face_box_mask

FACE = np.float32([[32, 30], [96, 30], [64, 100], [32, 100], [96, 100]])


def test_the_mask_is_whole_on_the_face_and_nothing_beyond_its_box() -> None:
    mask = face_box_mask(FACE, 128)
    assert (mask.shape, mask.dtype) == ((128, 128), np.float32)
    assert mask[65, 64] == 1
    # A margin of 12 % of the longer side, 8.4 pixels.
    ys, xs = np.nonzero(mask)
    assert (xs.min(), xs.max()) == (24, 104)
    assert (ys.min(), ys.max()) == (22, 108)


def test_the_edge_is_soft_and_falls_steadily() -> None:
    mask = face_box_mask(FACE, 128)
    rise = mask[65, :65]
    assert np.all(np.diff(rise) >= 0)
    assert np.diff(rise).max() < 0.1
    assert np.abs(mask - mask[:, ::-1][:, np.r_[127, 0:127]]).max() < 0.15


@pytest.mark.parametrize(
    ("shift", "is_seen"),
    [
        pytest.param((60, 0), True, id="half outside"),
        pytest.param((400, 0), False, id="wholly outside"),
        pytest.param((0, -400), False, id="wholly above"),
    ],
)
def test_a_face_beyond_the_crop_ends_at_its_border(
    shift: tuple[float, float], is_seen: bool
) -> None:
    mask = face_box_mask(FACE + np.float32(shift), 128)
    assert mask[:, [0, -1]].max() == 0 and mask[[0, -1]].max() == 0
    assert bool(mask.any()) is is_seen

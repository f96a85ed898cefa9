"""Pixels in the order and range that a network wants."""

from typing import Any

import numpy as np
import pytest

from app.inference.feeds import picture_feed
from app.inference.spec import InputContract

PIXEL = np.array([[[[255, 128, 0]]]], np.uint8)


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        pytest.param({"color": "rgb"}, [255, 128, 0], id="as it is"),
        pytest.param({"color": "bgr"}, [0, 128, 255], id="colors turned round"),
        pytest.param({"color": "rgb", "std": (255, 255, 255)}, [1, 128 / 255, 0], id="to one"),
        pytest.param(
            {"color": "bgr", "mean": (104, 117, 123)}, [-104, 11, 132], id="mean in order"
        ),
    ],
)
@pytest.mark.parametrize(
    ("layout", "shape"), [("nchw", (1, 3, 1, 1)), ("nhwc", (1, 1, 1, 3))], ids=["nchw", "nhwc"]
)
def test_a_pixel_becomes_what_the_contract_says(
    contract: dict[str, Any], expected: list[float], layout: str, shape: tuple[int, ...]
) -> None:
    feed = picture_feed(
        PIXEL, InputContract.model_validate({"name": "x", "layout": layout, **contract})
    )
    assert (feed.shape, feed.dtype, feed.flags.c_contiguous) == (shape, np.float32, True)
    assert feed.ravel() == pytest.approx(expected, abs=1e-6)


def test_no_picture_makes_an_empty_batch() -> None:
    contract = InputContract(name="x", layout="nchw", color="rgb")
    assert picture_feed(np.zeros((0, 8, 9, 3), np.uint8), contract).shape == (0, 3, 8, 9)


def test_one_picture_without_a_batch_axis_is_refused() -> None:
    contract = InputContract(name="x", layout="nchw", color="rgb")
    with pytest.raises(ValueError, match="pictures"):
        picture_feed(np.zeros((8, 9, 3), np.uint8), contract)

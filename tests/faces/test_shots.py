from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.picture import PIXEL_FORMATS, Picture
from app.faces.shots import CutFinder, tiny_gray
from tests.conftest import MakeFrame


def scene(seed: int) -> NDArray[np.uint8]:
    """Coarse blocks, 96 x 128."""
    blocks = np.random.default_rng(seed).integers(40, 200, (6, 8, 3)).astype(np.uint8)
    return np.ascontiguousarray(blocks.repeat(16, axis=0).repeat(16, axis=1))


def panned(step: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.roll(scene(1), 6 * step, axis=1))


A, B = scene(1), scene(2)
WHITE, BLACK = np.full_like(A, 255), np.zeros_like(A)
BRIGHT = np.clip(A.astype(int) * 1.3 + 20, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("images", "cuts"),
    [
        pytest.param([], [], id="an empty window"),
        pytest.param([A], [0], id="the first frame begins a shot"),
        pytest.param([A, A, A], [0], id="a still shot"),
        pytest.param([A, A, B, B], [0, 2], id="another scene"),
        pytest.param([A, B, A, B], [0, 1, 2, 3], id="a cut at every frame"),
        pytest.param([A, WHITE, WHITE, A], [0], id="a flash"),
        pytest.param([A, BRIGHT, A], [0], id="a change of light"),
        pytest.param([A, A // 2, A // 8, BLACK, A // 8, A], [0], id="a fade to black and back"),
        pytest.param([A, BLACK, BLACK, B], [0, 3], id="black between two scenes"),
        pytest.param([BLACK, BLACK, A, A], [0], id="black at the start"),
        pytest.param([panned(step) for step in range(8)], [0], id="a fast pan"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 16], ids=lambda size: f"windows of {size}")
def test_cuts_are_marked(
    make_frame: MakeFrame, images: Sequence[NDArray[np.uint8]], cuts: list[int], size: int
) -> None:
    frames = [make_frame(index, image) for index, image in enumerate(images)]
    finder = CutFinder()
    marked = [
        frame
        for start in range(0, len(frames), size)
        for frame in finder.mark(tuple(frames[start : start + size]))
    ]
    assert [frame.index for frame in marked if frame.is_cut] == cuts


@pytest.mark.parametrize("name", ["yuv420p", "yuv420p10le", "rgb24", "rgba64le", "gray", "ya16le"])
@pytest.mark.parametrize("size_wh", [(640, 360), (1, 1), (5000, 3)])
def test_thumbnails_of_every_format_say_the_same(name: str, size_wh: tuple[int, int]) -> None:
    pixel_format = PIXEL_FORMATS[name]
    half = (1 << pixel_format.bits) // 2
    planes = tuple(
        np.full(shape, half, pixel_format.dtype) for shape in pixel_format.plane_shapes(size_wh)
    )
    small = tiny_gray(Picture(planes, pixel_format))
    assert small.shape == (32, 32)
    assert np.abs(small - 127.5).max() <= 0.6

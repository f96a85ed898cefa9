"""How long it takes to cut faces out of a frame: on the processor, as jobs do, and on the device of the networks."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.core.errors import AppError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import FloatArray
from app.faces.sampling import sample_square
from app.inference.crops import DeviceCrops
from app.inference.feeds import picture_feed
from app.inference.providers import Provider
from app.inference.spec import InputContract

_SIDE_PX = 128
_FACE_SHARE = 0.3
"""Of the frame's height."""
_CONTRACT = InputContract(name="x", layout="nchw", color="rgb", std=(255, 255, 255))


@dataclass(frozen=True, kw_only=True, slots=True)
class CropTime:
    """Some faces of one frame, cut and laid out for a network.

    Attributes:
        processor_ms: On the processor, one thread.
        device_ms: On the networks' device, the way of the frame to it included.
        why_not: Why the device was not measured.
    """

    width: int
    height: int
    faces: int
    processor_ms: float
    device_ms: float | None = None
    why_not: str = ""


def crop_times(
    provider: Provider, sizes_wh: Sequence[tuple[int, int]], *, faces: int = 4, runs: int = 7
) -> Iterator[CropTime]:
    """Measure frames of 4:2:0; medians of so many runs."""
    for width, height in sizes_wh:
        picture = _frame(width, height)
        matrices = _affines(faces, width, height)
        processor_ms = _median_ms(partial(_cut, picture, matrices), runs)
        device_ms, why_not = None, ""
        try:
            crops = DeviceCrops(_CONTRACT, _SIDE_PX, layout="yuv420p", provider=provider)
            device_ms = _median_ms(partial(crops.cut, picture, matrices), runs)
        except AppError as error:
            why_not = error.message
        yield CropTime(
            width=width,
            height=height,
            faces=faces,
            processor_ms=processor_ms,
            device_ms=device_ms,
            why_not=why_not,
        )


def crop_lines(times: Sequence[CropTime]) -> list[str]:
    """A part of a page in Markdown; nothing where nothing was measured."""
    if not times:
        return []
    rows = [
        f"| {t.width}x{t.height} | {t.faces} | {t.processor_ms:.1f} | "
        f"{'' if t.device_ms is None else f'{t.device_ms:.1f}'} |"
        for t in times
    ]
    return [
        f"## Crops of {_SIDE_PX} pixels",
        "",
        "| frame | faces | ms on the processor | ms on the device, with the frame's way there |",
        "|---|---|---|---|",
        *rows,
        "",
        *(f"{t.width}x{t.height}: not on the device: {t.why_not}." for t in times if t.why_not),
    ]


def _frame(width: int, height: int) -> Picture:
    random = np.random.default_rng(0)
    shapes = PIXEL_FORMATS["yuv420p"].plane_shapes((width, height))
    planes = tuple(random.integers(60, 190, shape, np.uint8) for shape in shapes)
    return Picture(planes, PIXEL_FORMATS["yuv420p"])


def _affines(faces: int, width: int, height: int) -> FloatArray:
    scale = _SIDE_PX / (_FACE_SHARE * height)
    middles = [((index + 0.5) / faces * width, height / 2) for index in range(faces)]
    shifts = [[_SIDE_PX / 2 - scale * x, _SIDE_PX / 2 - scale * y] for x, y in middles]
    linear = np.eye(2) * scale
    return np.stack([np.column_stack([linear, shift]) for shift in shifts]).astype(np.float32)


def _cut(picture: Picture, matrices: FloatArray) -> FloatArray:
    crops = [sample_square(picture, each, _SIDE_PX) for each in matrices]
    return picture_feed(np.stack(crops), _CONTRACT)


def _median_ms(work: Callable[[], object], runs: int) -> float:
    work()
    times_ms = []
    for _ in range(runs):
        before_s = time.perf_counter()
        work()
        times_ms.append(1000 * (time.perf_counter() - before_s))
    return statistics.median(times_ms)

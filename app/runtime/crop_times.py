"""How long it takes to cut faces out of a frame: on the processor, as jobs do, and on the device of the networks."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np

from app.core.errors import AppError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import FloatArray, RgbImage
from app.faces.sampling import sample_square
from app.inference.crops import DeviceCrops
from app.inference.providers import Provider

_SIDE_PX = 128
_FACE_SHARE = 0.3
"""Of the frame's height."""
_TRIES = 5
_ALIKE = 1.0
"""Mean difference of two crops of something smooth, of 255."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CropTime:
    """Some faces of one frame, cut.

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
    """Measure frames of 4:2:0; medians of so many runs, each on a frame that the device has not seen."""
    for width, height in sizes_wh:
        picture = _frame(width, height)
        matrices = _affines(faces, width, height)
        processor_ms = _median_ms(partial(_cut, picture, matrices), runs)
        device_ms, why_not = None, ""
        try:
            crops = DeviceCrops(provider)
            device_ms = _device_ms(crops, picture, matrices, runs)
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


def why_not_on_device(crops: DeviceCrops) -> str:
    """Why faces are better cut on the processor; empty where the device is quicker and gives the same.

    One face of a frame of 1080p is tried: what is quicker for one is quicker for more.
    """
    picture = _frame(1920, 1080)
    matrices = _affines(1, 1920, 1080)
    try:
        given = crops.cut(picture, matrices, _SIDE_PX)
        device_ms = _device_ms(crops, picture, matrices, _TRIES)
    except AppError as error:
        return error.message
    off = float(np.abs(given.astype(float) - _cut(picture, matrices)).mean())
    if off > _ALIKE:
        return f"its crops differ by {off:.1f} of 255"
    processor_ms = _median_ms(partial(_cut, picture, matrices), _TRIES)
    if device_ms >= processor_ms:
        return f"it takes {device_ms:.1f} ms, the processor {processor_ms:.1f} ms"
    return ""


def _frame(width: int, height: int) -> Picture:
    """Something smooth: where there is no grain, all ways of averaging give the same."""
    random = np.random.default_rng(0)
    shapes = PIXEL_FORMATS["yuv420p"].plane_shapes((width, height))
    rough = [random.integers(60, 190, (12, 20), np.uint8) for _ in shapes]
    planes = tuple(
        np.asarray(cv2.resize(plane, shape[::-1], interpolation=cv2.INTER_CUBIC), np.uint8)
        for plane, shape in zip(rough, shapes, strict=True)
    )
    return Picture(planes, PIXEL_FORMATS["yuv420p"])


def _affines(faces: int, width: int, height: int) -> FloatArray:
    scale = _SIDE_PX / (_FACE_SHARE * height)
    middles = [((index + 0.5) / faces * width, height / 2) for index in range(faces)]
    shifts = [[_SIDE_PX / 2 - scale * x, _SIDE_PX / 2 - scale * y] for x, y in middles]
    linear = np.eye(2) * scale
    return np.stack([np.column_stack([linear, shift]) for shift in shifts]).astype(np.float32)


def _cut(picture: Picture, matrices: FloatArray) -> RgbImage:
    return np.stack([sample_square(picture, each, _SIDE_PX) for each in matrices])


def _device_ms(crops: DeviceCrops, picture: Picture, matrices: FloatArray, runs: int) -> float:
    # Each run has a frame of its own: the way to the device counts, too.
    fresh = iter([picture.copy() for _ in range(runs + 1)])
    return _median_ms(lambda: crops.cut(next(fresh), matrices, _SIDE_PX), runs)


def _median_ms(work: Callable[[], object], runs: int) -> float:
    work()
    times_ms = []
    for _ in range(runs):
        before_s = time.perf_counter()
        work()
        times_ms.append(1000 * (time.perf_counter() - before_s))
    return statistics.median(times_ms)

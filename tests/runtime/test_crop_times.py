"""What cutting faces costs is measured on both sides, and a device that cannot is told."""

from dataclasses import replace

import numpy as np
import pytest

from app.core.picture import Picture
from app.core.types import FloatArray, RgbImage
from app.inference.crops import DeviceCrops
from app.inference.providers import CPU
from app.runtime import crop_times as module
from app.runtime.crop_times import CropTime, crop_lines, crop_times, why_not_on_device

GONE = replace(CPU, device="cuda", name="CUDAExecutionProvider")


def test_both_ways_are_timed_for_each_size() -> None:
    times = list(crop_times(CPU, [(320, 180), (640, 360)], faces=2, runs=1))
    assert [(t.width, t.height, t.faces, t.why_not) for t in times] == [
        (320, 180, 2, ""),
        (640, 360, 2, ""),
    ]
    assert all(t.processor_ms > 0 and t.device_ms for t in times)
    page = "\n".join(crop_lines(times))
    assert "| 640x360 | 2 |" in page


def test_a_device_that_does_not_take_the_graph_is_told_and_not_measured() -> None:
    (time,) = crop_times(GONE, [(320, 180)], runs=1)
    assert time.device_ms is None
    assert time.why_not
    assert "not on the device" in "\n".join(crop_lines([time]))


def test_nothing_measured_is_no_table() -> None:
    assert crop_lines([]) == []
    assert crop_lines([CropTime(width=1, height=1, faces=1, processor_ms=1.0)])


def test_a_device_is_used_where_it_is_quicker_and_gives_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_device_ms", lambda *_: 0.0)
    assert why_not_on_device(DeviceCrops(CPU)) == ""
    monkeypatch.setattr(module, "_device_ms", lambda *_: 1e6)
    assert "takes 1000000.0 ms" in why_not_on_device(DeviceCrops(CPU))


def test_a_device_that_fails_or_gives_something_else_is_not_used() -> None:
    class Wrong(DeviceCrops):
        def cut(self, picture: Picture, affines: FloatArray, side_px: int) -> RgbImage:
            return np.zeros((len(affines), side_px, side_px, 3), np.uint8)

    assert "differ" in why_not_on_device(Wrong(CPU))
    assert why_not_on_device(DeviceCrops(GONE))

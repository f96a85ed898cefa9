"""What cutting faces costs is measured on both sides, and a device that cannot is told."""

from dataclasses import replace

from app.inference.providers import CPU
from app.runtime.crop_times import CropTime, crop_lines, crop_times


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
    gone = replace(CPU, device="cuda", name="CUDAExecutionProvider")
    (time,) = crop_times(gone, [(320, 180)], runs=1)
    assert time.device_ms is None
    assert time.why_not
    assert "not on the device" in "\n".join(crop_lines([time]))


def test_nothing_measured_is_no_table() -> None:
    assert crop_lines([]) == []
    assert crop_lines([CropTime(width=1, height=1, faces=1, processor_ms=1.0)])

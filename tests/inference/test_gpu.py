"""What the driver says is passed on; without a driver there is no GPU."""

import ctypes
from pathlib import Path
from typing import Any

import pytest

from app.inference.gpu import first_gpu, free_gpu_bytes, gpu_names
from app.inference.memory import free_bytes


class FakeDriver:
    """An H100 with 70 of 80 GB free."""

    def __init__(self, *, count: int = 1, fails: bool = False) -> None:
        self.count, self.fails = count, fails
        self.held = 0

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGetCount(self, out: Any) -> int:  # noqa: N802
        out._obj.value = self.count
        return 0

    def cuDeviceGet(self, out: Any, index: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGetName(self, out: Any, length: int, device: Any) -> int:  # noqa: N802
        out.value = b"NVIDIA H100"
        return 0

    def cuDeviceGetAttribute(self, out: Any, which: int, device: Any) -> int:  # noqa: N802
        out._obj.value = {75: 9, 76: 0}[which]
        return 0

    def cuDeviceTotalMem_v2(self, out: Any, device: Any) -> int:  # noqa: N802
        out._obj.value = 80 << 30
        return 0

    def cuDriverGetVersion(self, out: Any) -> int:  # noqa: N802
        out._obj.value = 13000
        return 0

    def cuDevicePrimaryCtxRetain(self, out: Any, device: Any) -> int:  # noqa: N802
        self.held += 1
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device: Any) -> int:  # noqa: N802
        self.held -= 1
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:  # noqa: N802
        return 0

    def cuCtxPopCurrent_v2(self, out: Any) -> int:  # noqa: N802
        return 0

    def cuMemGetInfo_v2(self, free: Any, total: Any) -> int:  # noqa: N802
        free._obj.value = 70 << 30
        return 2 if self.fails else 0


def no_driver(name: str) -> ctypes.CDLL:
    raise OSError(name)


def test_a_gpu_is_told_with_its_driver() -> None:
    gpu = first_gpu(lambda _: FakeDriver())
    assert gpu is not None
    assert (gpu.name, gpu.compute, gpu.total_bytes) == ("NVIDIA H100", "9.0", 80 << 30)
    assert gpu.label == "NVIDIA H100 9.0 driver 13000"


@pytest.mark.parametrize(
    "load", [no_driver, lambda _: FakeDriver(count=0)], ids=["no driver", "no GPU"]
)
def test_without_a_gpu_there_is_none(load: Any) -> None:
    assert first_gpu(load) is None
    assert free_gpu_bytes(load) is None


def test_free_memory_is_asked_and_the_context_given_back() -> None:
    driver = FakeDriver()
    assert free_gpu_bytes(lambda _: driver) == 70 << 30
    assert driver.held == 0


def test_a_driver_that_does_not_say_says_nothing() -> None:
    driver = FakeDriver(fails=True)
    assert free_gpu_bytes(lambda _: driver) is None
    assert driver.held == 0


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [
        pytest.param("max", "5", 4096 * 1024, id="no limit: what the machine has"),
        pytest.param("2000", "500", 1500, id="a limit below it"),
        pytest.param("2000", "2500", 0, id="over the limit"),
    ],
)
def test_free_memory_of_the_cpu_is_what_the_container_may_use(
    tmp_path: Path, limit: str, used: str, free: int
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9999 kB\nMemAvailable: 4096 kB\n")
    (tmp_path / "memory.max").write_text(limit + "\n")
    (tmp_path / "memory.current").write_text(used + "\n")
    assert free_bytes("cpu", meminfo=tmp_path / "meminfo", cgroup=tmp_path) == free


def test_a_machine_that_tells_nothing_is_taken_for_a_small_one(tmp_path: Path) -> None:
    assert free_bytes("cpu", meminfo=tmp_path / "none", cgroup=tmp_path / "none") == 4 << 30


@pytest.mark.parametrize(
    ("listed", "count", "names"),
    [
        pytest.param({}, 2, ("0", "1"), id="all of the machine"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "3, GPU-1f"}, 2, ("3", "GPU-1f"), id="a list"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0,1,9"}, 2, ("0", "1"), id="more than there are"),
        pytest.param({"CUDA_VISIBLE_DEVICES": ""}, 0, (), id="none"),
    ],
)
def test_each_gpu_has_a_name_that_shows_a_process_no_other(
    listed: dict[str, str], count: int, names: tuple[str, ...]
) -> None:
    assert gpu_names(listed, lambda _: FakeDriver(count=count)) == names


def test_without_a_driver_no_gpu_has_a_name() -> None:
    assert gpu_names({}, no_driver) == ()

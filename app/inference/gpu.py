"""What the NVIDIA driver says of the GPU that this process may use; asked of the driver itself, through `libcuda`.

The driver's own interface, and not its management library, since it respects `CUDA_VISIBLE_DEVICES`: device 0 here is
the one on which ONNX Runtime opens its sessions.
"""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_LIBRARY = "libcuda.so.1"
_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76

Load = Callable[[str], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """The GPU.

    Attributes:
        compute: Its compute capability, such as `9.0`.
        cuda: The newest CUDA that the driver knows, 1000 * major + 10 * minor.
    """

    name: str
    compute: str
    cuda: int
    total_bytes: int

    @property
    def label(self) -> str:
        """Names the hardware and its driver: what was tuned or built for one label holds for no other."""
        return f"{self.name} {self.compute} driver {self.cuda}"


def first_gpu(load: Load = ctypes.CDLL) -> Gpu | None:
    """The GPU that this process may use, or `None` where there is none, or no driver."""
    driver = _driver(load)
    if driver is None:
        return None
    name = ctypes.create_string_buffer(256)
    version, device = ctypes.c_int(), ctypes.c_int()
    major, minor, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceGetAttribute(ctypes.byref(major), _COMPUTE_MAJOR, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), _COMPUTE_MINOR, device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    driver.cuDriverGetVersion(ctypes.byref(version))
    return Gpu(
        name=name.value.decode(errors="replace"),
        compute=f"{major.value}.{minor.value}",
        cuda=version.value,
        total_bytes=total.value,
    )


def gpu_names(environment: Mapping[str, str], load: Load = ctypes.CDLL) -> tuple[str, ...]:
    """What `CUDA_VISIBLE_DEVICES` is to be for a process that may use but one of our GPUs, for each of them.

    Args:
        environment: Of this process.
        load: For tests.
    """
    driver = _driver(load)
    if driver is None:
        return ()
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    # The driver ends a list where it names what is not there.
    named = [name.strip() for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    numbered = [str(number) for number in range(count.value)]
    return tuple(named[: count.value] if named != [""] else numbered)


def free_gpu_bytes(load: Load = ctypes.CDLL) -> int | None:
    """Memory of the GPU that nobody has, other processes included; `None` where there is no GPU."""
    driver = _driver(load)
    if driver is None:
        return None
    device, context = ctypes.c_int(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), 0)
    # The context that ONNX Runtime uses, too: it is not made twice.
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return None
    try:
        driver.cuCtxPushCurrent_v2(context)
        failed = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)
    return None if failed else free.value


def _driver(load: Load) -> Any:
    try:
        driver = load(_LIBRARY)
    except OSError:
        return None
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return None
    return driver

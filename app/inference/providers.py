"""Which devices really run networks here.

ONNX Runtime names every provider that it was built with, and a session that asks for CUDA on a machine
without one succeeds and runs on the CPU. So each row of the table is tried once, on a network of one
convolution, and only `session.get_providers()` and a right answer count. Sessions are then opened with
the providers that passed and no others, which also keeps a machine without a GPU quiet.
"""

import contextlib
import ctypes
import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import build_and_package_info, onnxruntime_pybind11_state

logger = logging.getLogger(__name__)

DeviceChoice = Literal["auto", "cuda", "cpu"]
DeviceKind = Literal["cuda", "cpu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """One row of the table: a kind of device and how ONNX Runtime is asked for it."""

    device: DeviceKind
    name: str
    options: tuple[tuple[str, str], ...] = ()


CPU = Provider(device="cpu", name="CPUExecutionProvider")

PROVIDERS = (
    Provider(
        device="cuda",
        name="CUDAExecutionProvider",
        # The default, EXHAUSTIVE, times every algorithm anew for each batch size that a video brings.
        options=(("cudnn_conv_algo_search", "HEURISTIC"),),
    ),
    CPU,
)
"""Best first. TensorRT becomes one more row above CUDA, and a `DeviceKind`."""

ORT_ERRORS: tuple[type[Exception], ...] = (
    onnxruntime_pybind11_state.Fail,
    onnxruntime_pybind11_state.InvalidArgument,
    onnxruntime_pybind11_state.InvalidGraph,
    onnxruntime_pybind11_state.InvalidProtobuf,
    onnxruntime_pybind11_state.NoModel,
    onnxruntime_pybind11_state.NotImplemented,
    onnxruntime_pybind11_state.RuntimeException,
    onnxruntime_pybind11_state.EngineError,
    onnxruntime_pybind11_state.EPFail,
    onnxruntime_pybind11_state.DeviceReset,
    RuntimeError,
    ValueError,
)
"""What ONNX Runtime raises; its own classes share no base below `Exception`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceReport:
    """What came of trying one row of the table.

    Attributes:
        detail: Why it does not work and what to do; empty when it works.
    """

    device: DeviceKind
    provider: str
    works: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeReport:
    """The library that runs the networks, and every device it was tried on, best first.

    Attributes:
        cuda_needed: CUDA version that this build asks for; empty for a build without CUDA.
    """

    version: str
    package: str
    cuda_needed: str
    devices: tuple[DeviceReport, ...]


def report() -> RuntimeReport:
    """Try every device; takes milliseconds without a GPU and a few seconds with one."""
    return RuntimeReport(
        version=ort.__version__,
        package=str(getattr(build_and_package_info, "package_name", "onnxruntime")),
        cuda_needed=_cuda_needed(),
        devices=tuple(probe(provider) for provider in PROVIDERS),
    )


def probe(provider: Provider) -> DeviceReport:
    """Run one convolution on a device, without noise when it does not work."""
    why_not = _cuda_obstacle() if provider.device == "cuda" else ""
    if not why_not:
        why_not = _try_convolution(provider)
    return DeviceReport(
        device=provider.device, provider=provider.name, works=not why_not, detail=why_not
    )


def _try_convolution(provider: Provider) -> str:
    """Why the provider fails at the probe network; empty when the answer is right."""
    missing = _preload_libraries() if provider.device == "cuda" else ""
    with _silent_runtime():
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(
                PROBE_MODEL,
                options,
                providers=[(provider.name, dict(provider.options))],
                enable_fallback=0,
            )
            if session.get_providers()[0] != provider.name:
                return f"ONNX Runtime fell back to {session.get_providers()[0]}. {missing}".strip()
            ones = {"x": np.ones((1, 1, 4, 4), np.float32), "w": np.ones((1, 1, 3, 3), np.float32)}
            answer = session.run(None, ones)[0]
        except ORT_ERRORS as error:
            return f"{str(error).strip().splitlines()[-1]} {missing}".strip()
    return "" if np.allclose(answer, 9.0) else f"wrong answer: {answer.ravel()[0]}, wanted 9"


PROBE_MODEL = bytes.fromhex(
    "08083a6f0a0f0a01780a01771201792204436f6e76120570726f62655a1b0a017812160a14080112100a0208010a0208"
    "010a0208040a0208045a1b0a017712160a14080112100a0208010a0208010a0208030a020803621b0a017912160a1408"
    "0112100a0208010a0208010a0208020a02080242040a001011"
)
"""ONNX, opset 17: y (1,1,2,2) = Conv(x (1,1,4,4), w (1,1,3,3)).

A convolution and not an identity, since it needs a kernel for the very GPU, and cuDNN.
"""


@contextlib.contextmanager
def _silent_runtime() -> Iterator[None]:
    """Hold back what ONNX Runtime writes to the terminal by itself; we tell the outcome in our words."""
    ort.set_default_logger_severity(4)
    try:
        yield
    finally:
        ort.set_default_logger_severity(2)


def _preload_libraries() -> str:
    """Map CUDA and cuDNN out of the `nvidia-*` packages; returns what is missing, for people."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ort.preload_dlls()
    if not printed.getvalue():
        return ""
    logger.debug("preloading CUDA libraries: %s", printed.getvalue())
    return (
        f"Libraries of CUDA {_cuda_needed()} or cuDNN 9 are missing; "
        "install them with `pip install 'onnxruntime-gpu[cuda,cudnn]'` or use the GPU image."
    )


def _cuda_obstacle() -> str:
    """Why CUDA cannot work here, asked of the driver itself; empty when nothing speaks against it."""
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        return "this build of ONNX Runtime has no CUDA; install onnxruntime-gpu"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return (
            "no NVIDIA driver (libcuda.so.1) on this machine; "
            "in a container, start it with GPUs (docker run --gpus all)"
        )
    count, version = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return "the NVIDIA driver is here but shows no GPU to this process"
    driver.cuDriverGetVersion(ctypes.byref(version))
    return driver_complaint(version.value)


def driver_complaint(driver_version: int) -> str:
    """What is wrong with a driver whose newest CUDA is `1000 * major + 10 * minor`; empty when nothing is."""
    needed_major = int((_cuda_needed() or "0").split(".")[0])
    if driver_version // 1000 >= needed_major:
        return ""
    found = f"{driver_version // 1000}.{driver_version % 1000 // 10}"
    return (
        f"the driver knows CUDA up to {found}, ONNX Runtime {ort.__version__} needs {_cuda_needed()}; "
        "update the driver (580 series or later for CUDA 13) or use the image for CUDA 12"
    )


def _cuda_needed() -> str:
    return str(getattr(build_and_package_info, "cuda_version", "") or "")

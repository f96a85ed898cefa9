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
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import build_and_package_info, onnxruntime_pybind11_state

from app.inference.gpu import first_gpu, gpu_names

logger = logging.getLogger(__name__)

DeviceKind = Literal["tensorrt", "cuda", "openvino", "directml", "coreml", "cpu"]
DeviceChoice = Literal["auto", "tensorrt", "cuda", "openvino", "directml", "coreml", "cpu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """One row of the table: a kind of device and how ONNX Runtime is asked for it.

    Attributes:
        package: What to install to have it.
        is_automatic: Whether `auto` takes it. TensorRT needs engines that are built beforehand.
        is_gpu: Whether it counts for `--require-gpu`.
        is_serial: Only one call may be under way in a session.
        behind: Device whose row takes over the operators that this one lacks, before the CPU does.
    """

    device: DeviceKind
    name: str
    options: tuple[tuple[str, str], ...] = ()
    package: str = "onnxruntime-gpu"
    is_automatic: bool = True
    is_gpu: bool = True
    is_serial: bool = False
    behind: DeviceKind | None = None

    def with_options(self, **options: str) -> "Provider":
        """The same device, asked for with further options."""
        merged = {**dict(self.options), **options}
        return replace(self, options=tuple(sorted(merged.items())))


CPU = Provider(device="cpu", name="CPUExecutionProvider", is_gpu=False)

PROVIDERS = (
    Provider(
        device="tensorrt", name="TensorrtExecutionProvider", is_automatic=False, behind="cuda"
    ),
    Provider(
        device="cuda",
        name="CUDAExecutionProvider",
        # The default, EXHAUSTIVE, times every algorithm anew for each batch size that a video brings. Memory grows by
        # what is asked for, not by doubling: what one model does not need is there for the next.
        options=(
            ("arena_extend_strategy", "kSameAsRequested"),
            ("cudnn_conv_algo_search", "HEURISTIC"),
        ),
    ),
    Provider(
        device="openvino",
        name="OpenVINOExecutionProvider",
        options=(("device_type", "AUTO"),),
        package="onnxruntime-openvino",
        is_gpu=False,
    ),
    Provider(
        device="directml",
        name="DmlExecutionProvider",
        package="onnxruntime-directml",
        is_serial=True,
    ),
    Provider(
        device="coreml",
        name="CoreMLExecutionProvider",
        options=(("MLComputeUnits", "ALL"), ("ModelFormat", "MLProgram")),
        package="onnxruntime",
    ),
    CPU,
)
"""Best first."""


def chain(provider: Provider) -> list[tuple[str, dict[str, str]]]:
    """The provider, and those that take over the operators it lacks."""
    rows = [provider, *(row for row in PROVIDERS if row.device == provider.behind)]
    if provider.device != "cpu":
        rows.append(CPU)
    return [(row.name, dict(row.options)) for row in rows]


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
        is_automatic: Whether it is used without being asked for.
    """

    device: DeviceKind
    provider: str
    works: bool
    detail: str = ""
    is_automatic: bool = True


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
    built_in = set(ort.get_available_providers())
    return RuntimeReport(
        version=ort.__version__,
        package=str(getattr(build_and_package_info, "package_name", "onnxruntime")),
        cuda_needed=_cuda_needed(),
        # A build for another maker's devices is told only where it is installed: four lines on absent ones help nobody.
        devices=tuple(
            probe(row) for row in PROVIDERS if row.device == "cuda" or row.name in built_in
        ),
    )


def cuda_gpus(device: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """GPUs, by their names for `CUDA_VISIBLE_DEVICES`, that networks can use where the settings name a device."""
    may_use = device in ("auto", *_NVIDIA)
    is_built_in = "CUDAExecutionProvider" in ort.get_available_providers()
    return gpu_names(environment) if may_use and is_built_in and not _cuda_obstacle() else ()


def label(provider: Provider) -> str:
    """Names a device, its driver and the runtime: what was measured or built for one label holds for no other."""
    gpu = first_gpu() if provider.device in _NVIDIA else None
    hardware = gpu.label if gpu is not None else platform.processor() or platform.machine()
    return f"{provider.device} {hardware} onnxruntime {ort.__version__}"


def probe(provider: Provider) -> DeviceReport:
    """Run one convolution on a device, without noise when it does not work."""
    if provider.name not in ort.get_available_providers():
        why_not = f"this build of ONNX Runtime has no {provider.name}; install {provider.package}"
    else:
        why_not = _cuda_obstacle() if provider.device in _NVIDIA else ""
    if not why_not:
        why_not = _try_convolution(provider)
    return DeviceReport(
        device=provider.device,
        provider=provider.name,
        works=not why_not,
        detail=why_not,
        is_automatic=provider.is_automatic,
    )


def _try_convolution(provider: Provider) -> str:
    """Why the provider fails at the probe network; empty when the answer is right."""
    missing = _preload_libraries() if provider.device in _NVIDIA else ""
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


_NVIDIA = frozenset({"tensorrt", "cuda"})

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

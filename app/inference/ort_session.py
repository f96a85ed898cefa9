"""A network of ONNX Runtime on one device."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from app.core.errors import AppError, DeviceError, ModelError, OutOfDeviceMemoryError
from app.inference.bound import BoundRunner
from app.inference.providers import ORT_ERRORS, DeviceKind, Provider, chain
from app.inference.spec import Feeds, Outputs

_OUT_OF_MEMORY_SIGNS = (
    "failed to allocate memory",
    "out of memory",
    "bad allocation",
    "bad_alloc",
    "alloc_failed",
    "available memory of",
)
_DEVICE_SIGNS = ("cuda", "cudnn", "cublas", "cufft", "device")


@dataclass(frozen=True, kw_only=True, slots=True)
class InputPort:
    """An input as the network declares it.

    Attributes:
        shape: Lengths of the axes; `None` is free.
        dtype: NumPy's name of the numbers.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str

    @property
    def is_batched(self) -> bool:
        """Whether its first axis counts pictures; a single number, such as a strength, has none."""
        return len(self.shape) > 1

    def random(self, random: np.random.Generator, side_px: int) -> NDArray[np.generic]:
        """One row of random numbers; `side_px` is for free axes."""
        first = (1,) if self.is_batched else ()
        sides = self.shape[1:] if self.is_batched else self.shape
        shape = (*first, *(side_px if side is None else side for side in sides))
        if np.issubdtype(np.dtype(self.dtype), np.floating):
            return random.random(shape).astype(self.dtype)
        return random.integers(0, 2, shape).astype(self.dtype)


_USUAL_ROW_BYTES = 6_000_000
"""Larger pictures are looked at now and then only; the runtime would keep the memory that they took for good."""


Gate = Callable[[], AbstractContextManager[object]]
"""Lets one caller of a device in at a time, for the length of a `with`."""


class OrtSession:
    """One network on one device; several threads may call `run` at once."""

    def __init__(
        self,
        name: str,
        model: bytes,
        *,
        provider: Provider,
        threads: int = 1,
        gate: Gate = nullcontext,
    ) -> None:
        """Open a network.

        Args:
            name: For messages.
            model: The ONNX file's bytes, verified by the caller. External data is refused by the runtime.
            provider: A row of the table that passed the probe.
            threads: Of one operator on the CPU, at least 1.
            gate: Before a device that takes one call at a time; the same for all its networks.

        Raises:
            ModelError: The bytes are no network that this runtime can run.
            DeviceError: The device does not take it.
            OutOfDeviceMemoryError: The device has no room for it.
        """
        self._name = name
        self.device: DeviceKind = provider.device
        self._gate = gate if provider.is_serial else nullcontext
        try:
            with self._gate():
                self._session = ort.InferenceSession(
                    model,
                    _options(threads, provider),
                    providers=chain(provider),
                    # A device that fails must be heard of, not replaced by the CPU in silence.
                    enable_fallback=0,
                )
        except ORT_ERRORS as error:
            raise _translate(error, name, self.device) from error
        got = self._session.get_providers()[0]
        if got != provider.name:
            raise DeviceError(
                f"{name}: opened on {got}, wanted {provider.name}; "
                "run `python -m app doctor` to see which devices work"
            )
        self._outputs = tuple(node.name for node in self._session.get_outputs())
        self._bound = _bound(self._session, provider)
        self.inputs = tuple(_port(node) for node in self._session.get_inputs())

    @property
    def fixed_batch(self) -> int | None:
        """The only batch that the network takes, or `None` where any is fine."""
        sizes = [port.shape[0] for port in self.inputs if port.is_batched]
        return next((size for size in sizes if size is not None), None)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in the network's order."""
        return tuple(port.name for port in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in the network's order."""
        return self._outputs

    def _run(self, feeds: Feeds) -> list[NDArray[np.generic]]:
        if self._bound is not None:
            return self._bound.run(feeds)
        is_rare = self.device == "cpu" and _row_bytes(feeds) > _USUAL_ROW_BYTES
        return list(self._session.run(None, dict(feeds), _shrinking() if is_rare else None))

    def run(self, feeds: Feeds) -> Outputs:
        """Run one batch.

        Args:
            feeds: Input name to array; the first axis is the batch.

        Returns:
            Output name to array, in the network's order.

        Raises:
            ModelError: Names, types or shapes are not those of the network, or it failed.
            DeviceError: The device failed; the process should be started anew.
            OutOfDeviceMemoryError: A smaller batch may fit.
        """
        return self._answered(lambda: self._run(feeds))

    def upload(self, array: NDArray[np.generic]) -> ort.OrtValue:
        """Bring an array to the session's device, where several runs may use it.

        Where the session runs on the processor the value is the array itself.

        Raises:
            OutOfDeviceMemoryError: The device has no room for it.
            DeviceError: The device failed.
        """
        try:
            return ort.OrtValue.ortvalue_from_numpy(
                np.ascontiguousarray(array), _memory(self.device), 0
            )
        except ORT_ERRORS as error:
            raise _translate(error, self._name, self.device) from error

    def run_on(self, values: Mapping[str, ort.OrtValue], feeds: Feeds) -> Outputs:
        """Run on what lies on the device already; see `run`.

        Args:
            values: By input name, made by `upload`.
            feeds: The other inputs, which go there now.
        """

        def work() -> list[NDArray[np.generic]]:
            binding = self._session.io_binding()
            for name, value in values.items():
                binding.bind_ortvalue_input(name, value)
            for name, array in feeds.items():
                binding.bind_cpu_input(name, np.ascontiguousarray(array))
            for name in self._outputs:
                binding.bind_output(name, "cpu")
            self._session.run_with_iobinding(binding)
            return list(binding.copy_outputs_to_cpu())

        return self._answered(work)

    def _answered(self, work: Callable[[], list[NDArray[np.generic]]]) -> Outputs:
        try:
            with self._gate():
                results = work()
        except ORT_ERRORS as error:
            raise _translate(error, self._name, self.device) from error
        return dict(zip(self._outputs, results, strict=True))


def _memory(device: DeviceKind) -> str:
    """ONNX Runtime's name of the memory of a device that lets us hold some of it; else the processor's."""
    return "cuda" if device in ("cuda", "tensorrt") else "cpu"


def _row_bytes(feeds: Feeds) -> int:
    return sum(array.nbytes // max(1, len(array)) for array in feeds.values())


def _shrinking() -> ort.RunOptions:
    """Give the memory of a run back after it."""
    options = ort.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


def _bound(session: ort.InferenceSession, provider: Provider) -> BoundRunner | None:
    """Buffers on the device, where the device has memory of its own that the runtime lets us hold."""
    memory = _memory(provider.device)
    if memory == "cpu":
        return None
    uses_graphs = dict(provider.options).get("enable_cuda_graph") == "1"
    return BoundRunner(session, memory, uses_graphs=uses_graphs)


_DTYPES = MappingProxyType({"float": "float32", "double": "float64"})


def _port(node: ort.NodeArg) -> InputPort:
    shape = tuple(side if isinstance(side, int) else None for side in node.shape)
    kind = str(node.type).removeprefix("tensor(").removesuffix(")")
    return InputPort(name=node.name, shape=shape, dtype=_DTYPES.get(kind, kind))


def _options(threads: int, provider: Provider) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    if provider.is_serial:
        # DirectML's sessions take one call at a time, and plan their memory anew for each.
        options.enable_mem_pattern = False
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # Idle threads would spin on the cores that decode and encode at the same time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


def _translate(error: Exception, name: str, device: DeviceKind) -> AppError:
    """Our error for one of the runtime's."""
    text = str(error).strip() or type(error).__name__
    lowered = text.lower()
    if any(sign in lowered for sign in _OUT_OF_MEMORY_SIGNS):
        return OutOfDeviceMemoryError(
            f"{name}: no memory left on {device}; use a smaller batch or picture ({text})"
        )
    if device != "cpu" and any(sign in lowered for sign in _DEVICE_SIGNS):
        return DeviceError(f"{name}: {device} failed: {text}")
    return ModelError(f"{name}: {text}")

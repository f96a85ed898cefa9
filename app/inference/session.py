"""Sessions of ONNX Runtime: opened from verified bytes, on the devices that passed the probe."""

from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import onnxruntime as ort

from app.core.errors import (
    AppError,
    DeviceError,
    DeviceUnavailableError,
    MissingModelError,
    ModelError,
    OutOfDeviceMemoryError,
)
from app.inference.cores import usable_cores
from app.inference.integrity import check_bytes
from app.inference.manifest import Manifest
from app.inference.providers import (
    ORT_ERRORS,
    PROVIDERS,
    DeviceChoice,
    DeviceKind,
    Provider,
    probe,
)
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Task

_OUT_OF_MEMORY_SIGNS = (
    "failed to allocate memory",
    "out of memory",
    "bad allocation",
    "bad_alloc",
    "alloc_failed",
    "available memory of",
)
_DEVICE_SIGNS = ("cuda", "cudnn", "cublas", "cufft", "device")


class OrtSession:
    """One network on one device; several threads may call `run` at once."""

    def __init__(self, name: str, model: bytes, *, provider: Provider, threads: int = 1) -> None:
        """Open a network.

        Args:
            name: For messages.
            model: The ONNX file's bytes, verified by the caller. External data is refused by the runtime.
            provider: A row of the table that passed the probe.
            threads: Of one operator on the CPU, at least 1.

        Raises:
            ModelError: The bytes are no network that this runtime can run.
            DeviceError: The device does not take it.
            OutOfDeviceMemoryError: The device has no room for it.
        """
        self._name = name
        self.device: DeviceKind = provider.device
        try:
            self._session = ort.InferenceSession(
                model,
                _options(threads),
                providers=_chain(provider),
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

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in the network's order."""
        return tuple(node.name for node in self._session.get_inputs())

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in the network's order."""
        return self._outputs

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
        try:
            results = self._session.run(None, dict(feeds))
        except ORT_ERRORS as error:
            raise _translate(error, self._name, self.device) from error
        return dict(zip(self._outputs, results, strict=True))


class OrtModelZoo:
    """All models of the manifest, and their sessions on one device."""

    def __init__(
        self,
        manifest: Manifest,
        models_dir: Path,
        *,
        device: DeviceChoice = "auto",
        threads: int = 0,
    ) -> None:
        """Remember what to open; nothing is loaded yet.

        Args:
            manifest: The known models.
            models_dir: Where the installed files are.
            device: `auto` takes the best that works; `cuda` accepts nothing else.
            threads: Of one network on the CPU; 0 is one a usable core.
        """
        self._manifest = manifest
        self._models_dir = models_dir
        self._choice: DeviceChoice = device
        self._threads = threads or usable_cores()
        self._sessions: dict[ModelId, OrtSession] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @cached_property
    def provider(self) -> Provider:
        """The device that the sessions run on, probed on first use.

        Raises:
            DeviceUnavailableError: The device asked for does not really work.
        """
        return choose(self._choice)

    def spec(self, model_id: ModelId) -> ModelSpec:
        """The manifest's entry.

        Raises:
            UnknownModelError: No entry has this id.
        """
        return self._manifest.get(model_id)

    def session(self, model_id: ModelId) -> OrtSession:
        """The model's session, opened on first use and kept.

        Two threads that ask for the same unopened model at once may both open it; one of the two is kept.

        Raises:
            UnknownModelError: No entry has this id.
            MissingModelError: It is not installed.
            ModelIntegrityError: The file is not the one that the manifest pins.
            DeviceError: The device does not work or does not take it.
        """
        if (known := self._sessions.get(model_id)) is not None:
            return known
        spec = self.spec(model_id)
        session = OrtSession(
            spec.id,
            read_installed(spec, self._models_dir),
            provider=self.provider,
            threads=self._threads,
        )
        return self._sessions.setdefault(model_id, session)

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        """The entries of a task whose file is there, in the manifest's order; the file is checked when it is opened."""
        return tuple(
            spec
            for spec in self._manifest.models
            if spec.task == task and (self._models_dir / spec.file).is_file()
        )

    def close(self) -> None:
        """Let go of all sessions and their memory; the zoo can be used again."""
        self._sessions.clear()


def read_installed(spec: ModelSpec, models_dir: Path) -> bytes:
    """The bytes of an installed model, compared with the manifest.

    Raises:
        MissingModelError: It is not installed.
        ModelIntegrityError: The file is not the one that the manifest pins.
    """
    try:
        content = (models_dir / spec.file).read_bytes()
    except FileNotFoundError as error:
        wanted = spec.bundle if spec.bundle == "embedded" else spec.id
        raise MissingModelError(
            f"{spec.id} is not installed; run `python -m app models pull {wanted}`"
        ) from error
    check_bytes(
        spec.file,
        content,
        sha256=spec.sha256,
        size=spec.bytes,
        advice=f"run `python -m app models pull {spec.id}` to install it again",
    )
    return content


def choose(device: DeviceChoice) -> Provider:
    """The best provider that works among those that the choice allows.

    Raises:
        DeviceUnavailableError: None of them works; says why.
    """
    rows = [row for row in PROVIDERS if device in ("auto", row.device)]
    reasons = []
    for row in rows:
        outcome = probe(row)
        if outcome.works:
            return row
        reasons.append(f"{row.device}: {outcome.detail}")
    raise DeviceUnavailableError(f"device {device!r} does not work here: {'; '.join(reasons)}")


def _options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads would spin on the cores that decode and encode at the same time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


def _chain(provider: Provider) -> list[tuple[str, dict[str, str]]]:
    """The provider, and the CPU for operators that it lacks."""
    cpu = [] if provider.device == "cpu" else [("CPUExecutionProvider", dict[str, str]())]
    return [(provider.name, dict(provider.options)), *cpu]


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

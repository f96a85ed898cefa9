"""Sessions of ONNX Runtime: opened from verified bytes, on the devices that passed the probe."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from app.core.errors import DeviceUnavailableError
from app.core.types import FloatArray
from app.inference.cores import network_threads, usable_cores
from app.inference.emap import last_matrix
from app.inference.manifest import Manifest
from app.inference.memory import free_bytes
from app.inference.one_by_one import RunMany
from app.inference.opening import OpenChoices, Opener, read_installed
from app.inference.ort_session import Gate
from app.inference.precision import Precision
from app.inference.providers import PROVIDERS, DeviceChoice, Provider, label, probe
from app.inference.receipts import Receipts
from app.inference.residency import AtWork, Residency, ResidentSession, Room
from app.inference.spec import ModelId, ModelSpec, Session, Task
from app.inference.tensorrt import EngineCache, tensorrt_version


@dataclass(frozen=True, kw_only=True, slots=True)
class ZooOptions:
    """What most callers leave as it is.

    Attributes:
        precision: `auto` is half precision on a GPU, for networks that pass their self-test.
        budget_bytes: Memory of the device that the networks may take; 0 is what is free.
        cache_dir: Where what was measured and built on this device is kept; `None` keeps nothing.
        run_many: How the rows of a network that takes one at a time are run.
        cuda_graphs: Record runs on CUDA, network by network where that gains.
        gate: Lets one caller in at a time, before a device that takes no more.
        at_work: Told of each run of a network, by whoever counts how busy the device is.
    """

    precision: Precision = "auto"
    budget_bytes: int = 0
    cache_dir: Path | None = None
    run_many: RunMany = map
    cuda_graphs: bool = False
    gate: Gate = nullcontext
    at_work: AtWork = nullcontext


class OrtModelZoo:
    """All models of the manifest, and their sessions on one device."""

    def __init__(
        self,
        manifest: Manifest,
        models_dir: Path,
        *,
        device: DeviceChoice = "auto",
        requires_gpu: bool = False,
        threads: int = 0,
        options: ZooOptions | None = None,
    ) -> None:
        """Remember what to open; nothing is loaded yet.

        Args:
            manifest: The known models.
            models_dir: Where the installed files are.
            device: `auto` takes the best that works; `cuda` accepts nothing else.
            requires_gpu: Take the CPU for no device at all.
            threads: Of one network on the CPU; 0 is half the usable cores.
            options: Precision, memory, and what is remembered.
        """
        self._manifest = manifest
        self._models_dir = models_dir
        self._choice: DeviceChoice = device
        self._requires_gpu = requires_gpu
        self._threads = threads or network_threads(usable_cores())
        self._zoo_options = options or ZooOptions()
        self._sessions: dict[ModelId, Session] = {}
        self._residency = Residency(
            lambda model_id: self._opener.open(self.spec(model_id)),
            lambda model_id: self._opener.cost_bytes(self.spec(model_id)),
            Room(
                free_bytes=lambda: free_bytes(self.provider.device),
                budget_bytes=self._zoo_options.budget_bytes,
            ),
            at_work=self._zoo_options.at_work,
        )

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
        return choose(self._choice, requires_gpu=self._requires_gpu)

    @cached_property
    def _opener(self) -> Opener:
        options, tag = self._zoo_options, label(self.provider)
        cache = options.cache_dir
        engines = None
        if self.provider.device == "tensorrt" and cache is not None:
            half = options.precision != "full"
            engines = EngineCache(
                cache / "tensorrt", label=tag, version=tensorrt_version(), half=half
            )
        choices = OpenChoices(
            threads=self._threads,
            precision=options.precision,
            run_many=options.run_many,
            cache_dir=cache,
            engines=engines,
            label=tag,
            cuda_graphs=options.cuda_graphs,
            gate=options.gate,
        )
        return Opener(self._models_dir, self.provider, choices)

    def spec(self, model_id: ModelId) -> ModelSpec:
        """The manifest's entry.

        Raises:
            UnknownModelError: No entry has this id.
        """
        return self._manifest.get(model_id)

    def session(self, model_id: ModelId) -> Session:
        """The model's session, opened on first use and kept.

        Two threads that ask for the same unopened model at once may both open it; one of the two is kept.

        Raises:
            UnknownModelError: No entry has this id.
            MissingModelError: It is not installed.
            ModelIntegrityError: The file is not the one that the manifest pins.
            DeviceError: The device does not work or does not take it.
        """
        self.spec(model_id)
        self._residency.session(model_id)
        return self._sessions.setdefault(model_id, ResidentSession(model_id, self._residency))

    def last_matrix(self, model_id: ModelId) -> FloatArray:
        """The matrix that a swap network carries; reads its whole file, so ask once and keep it.

        Raises:
            MissingModelError: The model is not installed.
            ModelError: It has none.
        """
        return last_matrix(model_id, read_installed(self.spec(model_id), self._models_dir))

    def build_engine(self, model_id: ModelId) -> None:
        """Build TensorRT's engine of a model; takes minutes.

        Raises:
            ModelError: The model cannot have one.
            DeviceError: The device is not TensorRT, or failed.
        """
        self._opener.build_engine(self.spec(model_id))

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        """The entries of a task whose file is there, in the manifest's order; the file is checked when it is opened.

        Read anew each time, so that a running process learns of what another one installs. A file whose hash nobody
        has told yet is still being installed.
        """
        receipts = Receipts(self._models_dir)
        return tuple(
            spec
            for spec in self._manifest.models
            if spec.task == task
            and (self._models_dir / spec.file).is_file()
            and receipts.pin(spec) is not None
        )

    def close(self) -> None:
        """Let go of all sessions and their memory; the zoo can be used again."""
        self._sessions.clear()
        self._residency.let_go()


def choose(device: DeviceChoice, *, requires_gpu: bool = False) -> Provider:
    """The best provider that works among those that the choice allows.

    Args:
        device: `auto`, or one kind and no other.
        requires_gpu: Do not fall back to the CPU.

    Raises:
        DeviceUnavailableError: None of them works; says why.
    """
    rows = [
        row for row in PROVIDERS if row.device == device or (device == "auto" and row.is_automatic)
    ]
    if requires_gpu:
        rows = [row for row in rows if row.is_gpu]
    if not rows:
        raise DeviceUnavailableError(f"--require-gpu: device {device!r} is no GPU; choose another")
    reasons = []
    for row in rows:
        outcome = probe(row)
        if outcome.works:
            return row
        reasons.append(f"{row.device}: {outcome.detail}")
    raise DeviceUnavailableError(f"device {device!r} does not work here: {'; '.join(reasons)}")

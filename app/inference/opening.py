"""Opens installed networks on a device: verified bytes, the right precision, an engine where there is one."""

import hashlib
import logging
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import AppError, MissingModelError, ModelError, ModelIntegrityError
from app.inference.half_memory import HalfMemory
from app.inference.integrity import check_bytes
from app.inference.inventory import how_to_get
from app.inference.one_by_one import OneByOne, RunMany
from app.inference.ort_session import Gate, OrtSession
from app.inference.precision import Precision, chosen, gains, sample_feeds
from app.inference.providers import CPU, PROVIDERS, Provider
from app.inference.receipts import Receipts
from app.inference.spec import ModelSpec, Session
from app.inference.tensorrt import EngineCache, profile

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenChoices:
    """How networks are opened.

    Attributes:
        threads: Of one network on the CPU.
        precision: `auto` is half precision on a GPU, for networks that pass the self-test.
        run_many: How the rows of a network that takes one at a time are run.
        cache_dir: Remembers the self-tests; `None` tests anew in each process.
        engines: TensorRT's engines; needed only on that device.
        label: Names the device for what is remembered.
        cuda_graphs: Record runs on CUDA, network by network where that gains.
        gate: Before a device that takes one call at a time.
    """

    threads: int = 1
    precision: Precision = "full"
    run_many: RunMany = map
    cache_dir: Path | None = None
    engines: EngineCache | None = None
    label: str = ""
    cuda_graphs: bool = False
    gate: Gate = nullcontext


class Opener:
    """Opens networks of a models folder on one device.

    Args:
        models_dir: Where the installed files are.
        provider: The device.
        choices: How.
    """

    def __init__(self, models_dir: Path, provider: Provider, choices: OpenChoices) -> None:
        self._models_dir = models_dir
        self._provider = provider
        self._choices = choices

    def open(self, spec: ModelSpec) -> Session:
        """Open a network.

        Raises:
            MissingModelError: It is not installed.
            ModelIntegrityError: The file is not the pinned one.
            ModelError: The runtime does not take it.
            DeviceError: The device does not take it.
            OutOfDeviceMemoryError: The device has no room for it.
        """
        content = read_installed(spec, self._models_dir)
        session = self._opened(spec, content)
        if session.fixed_batch is None:
            return session
        return OneByOne(session, self._choices.run_many)

    def cost_bytes(self, spec: ModelSpec) -> int:
        """What a network takes of the device's memory, roughly: its weights, and as much again to work with."""
        try:
            return 2 * (self._models_dir / spec.file).stat().st_size
        except OSError:
            return 0

    def build_engine(self, spec: ModelSpec) -> None:
        """Build TensorRT's engine of a network; see `EngineCache.build`."""
        engines = self._choices.engines
        if engines is None:
            raise ModelError(f"{spec.id}: only TensorRT has engines; use --device tensorrt")
        content = read_installed(spec, self._models_dir)
        engines.build(self._provider, spec, content, lambda data, row: self._on(spec, data, row))

    def _on(self, spec: ModelSpec, content: bytes, provider: Provider) -> OrtSession:
        return OrtSession(
            spec.id,
            content,
            provider=provider,
            threads=self._choices.threads,
            gate=self._choices.gate,
        )

    def _opened(self, spec: ModelSpec, content: bytes) -> OrtSession:
        provider = self._provider
        engines = self._choices.engines
        if provider.device == "tensorrt" and engines is not None:
            if engines.is_built(spec, content):
                shapes = profile(spec, self._on(spec, content, CPU))
                return self._on(spec, content, engines.row(provider, spec, content, shapes))
            provider = next(row for row in PROVIDERS if row.device == provider.behind)
        wants_half = self._choices.precision == "half" or (
            self._choices.precision == "auto" and provider.is_gpu
        )
        if not wants_half:
            return self._fastest(spec, content, provider)
        return self._in_half(spec, content, provider)

    def _fastest(self, spec: ModelSpec, content: bytes, provider: Provider) -> OrtSession:
        """With CUDA graphs where the operator wants them, they give the same numbers, and they gain."""
        plain = self._on(spec, content, provider)
        if provider.device != "cuda" or not self._choices.cuda_graphs:
            return plain
        try:
            graphed = self._on(spec, content, provider.with_options(enable_cuda_graph="1"))
            is_better = gains(plain, graphed, sample_feeds(spec, plain))
        except AppError as error:
            logger.info("%s runs without CUDA graphs: %s", spec.id, error.code)
            return plain
        return graphed if is_better else plain

    def _in_half(self, spec: ModelSpec, content: bytes, provider: Provider) -> OrtSession:
        """In half precision where the self-test passes; it runs once for each network and device."""
        memory = HalfMemory(self._choices.cache_dir)
        key = f"{self._choices.label} {spec.id} {hashlib.sha256(content).hexdigest()[:16]}"
        known = memory.recall(key)
        if known is not None:
            return self._fastest(spec, known or content, provider)
        choice = chosen(spec, content, lambda data: self._on(spec, data, provider))
        if choice.verdict.why_not:
            logger.info("%s stays in single precision: %s", spec.id, choice.verdict.why_not)
        memory.keep(key, choice.half)
        return choice.session


def read_installed(spec: ModelSpec, models_dir: Path) -> bytes:
    """The bytes of an installed model, compared with the manifest.

    Raises:
        MissingModelError: It is not installed.
        ModelIntegrityError: The file is not the one that the manifest pins.
    """
    try:
        content = (models_dir / spec.file).read_bytes()
    except FileNotFoundError as error:
        command = (
            "python -m app models pull embedded" if spec.bundle == "embedded" else how_to_get(spec)
        )
        raise MissingModelError(f"{spec.id} is not installed; run `{command}`") from error
    if (pin := Receipts(models_dir).pin(spec)) is None:
        raise ModelIntegrityError(
            f"{spec.file}: was not installed by FaceDock; run `{how_to_get(spec)}`"
        )
    check_bytes(
        spec.file,
        content,
        sha256=pin[0],
        size=pin[1],
        advice=f"run `{how_to_get(spec)}` to install it again",
    )
    return content

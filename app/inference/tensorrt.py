"""Engines of TensorRT: built beforehand, kept on the data volume, used only on what they were built for.

Building one takes minutes, so it never happens in a request: `python -m app models engines` does it in child processes.
Until a network's engine is there, it runs on CUDA. Only a network whose batch is the one free axis gets an engine: one
whose pictures are of any size would need an engine for each size.
"""

import ctypes
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from app.core.errors import ModelError
from app.inference.fetch.store import write_atomically
from app.inference.ort_session import OrtSession
from app.inference.providers import CPU, Provider
from app.inference.spec import ModelSpec

MAX_BATCH = 32
_USUAL_BATCH = 8
_LIBRARY = "libnvinfer.so.10"
_MARK = "built.json"
_WORKSPACE_BYTES = 4 << 30

OpenOn = Callable[[bytes, Provider], OrtSession]


def tensorrt_version(load: Callable[[str], Any] = ctypes.CDLL) -> str:
    """Version of TensorRT's library, or `none`."""
    try:
        return str(load(_LIBRARY).getInferLibVersion())
    except (OSError, AttributeError):
        return "none"


class EngineCache:
    """The folder of built engines.

    Args:
        folder: On the data volume.
        label: The GPU, its driver and ONNX Runtime, see `providers.label`.
        version: Of TensorRT.
        half: Whether engines may compute in half precision.
    """

    def __init__(self, folder: Path, *, label: str, version: str, half: bool) -> None:
        self._folder = folder
        self._facts = {"label": label, "tensorrt": version, "half": half}
        self._half = half

    def place(self, spec: ModelSpec, content: bytes) -> Path:
        """Where the engine of a network lies; another GPU, driver, version or file is another place."""
        facts = {**self._facts, "model": hashlib.sha256(content).hexdigest(), "batch": MAX_BATCH}
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{spec.id}-{key[:16]}"

    def is_built(self, spec: ModelSpec, content: bytes) -> bool:
        """Whether the engine is there, whole."""
        return (self.place(spec, content) / _MARK).is_file()

    def row(self, provider: Provider, spec: ModelSpec, content: bytes, shapes: str) -> Provider:
        """TensorRT's row for one network.

        Args:
            provider: The table's row.
            spec: The manifest's entry.
            content: The network's file.
            shapes: Inputs for one row of a batch, as `profile` has them.
        """
        place = str(self.place(spec, content))
        return provider.with_options(
            trt_engine_cache_enable="1",
            trt_engine_cache_path=place,
            trt_timing_cache_enable="1",
            trt_timing_cache_path=str(self._folder),
            trt_fp16_enable="1" if self._half else "0",
            trt_context_memory_sharing_enable="1",
            trt_max_workspace_size=str(_WORKSPACE_BYTES),
            trt_profile_min_shapes=shapes.replace("{n}", "1"),
            trt_profile_opt_shapes=shapes.replace("{n}", str(_USUAL_BATCH)),
            trt_profile_max_shapes=shapes.replace("{n}", str(MAX_BATCH)),
        )

    def build(self, provider: Provider, spec: ModelSpec, content: bytes, open_on: OpenOn) -> None:
        """Build a network's engine, minutes long, and try it; does nothing where it is there.

        Args:
            provider: The table's row.
            spec: The manifest's entry.
            content: The network's file.
            open_on: Opens bytes on a device.

        Raises:
            ModelError: The network's pictures are of any size, or TensorRT refuses it.
            DeviceError: The device failed.
        """
        if self.is_built(spec, content):
            return
        place = self.place(spec, content)
        place.mkdir(parents=True, exist_ok=True)
        # The CPU's session tells the inputs; opening it on TensorRT needs to know them.
        shapes = profile(spec, open_on(content, CPU))
        session = open_on(content, self.row(provider, spec, content, shapes))
        random = np.random.default_rng(0)
        for size in (1, MAX_BATCH):
            session.run(
                {
                    port.name: np.repeat(port.random(random, 0), size, axis=0)
                    for port in session.inputs
                }
            )
        write_atomically(place / _MARK, json.dumps(self._facts, sort_keys=True).encode())


def profile(spec: ModelSpec, session: OrtSession) -> str:
    """A network's inputs as TensorRT wants to hear of them, `{n}` for the batch: `source:{n}x512,target:{n}x3x128x128`.

    Raises:
        ModelError: An axis besides the batch is free.
    """
    parts = []
    for port in session.inputs:
        if not port.is_batched or None in port.shape[1:]:
            raise ModelError(f"{spec.id}: takes pictures of any size, so it stays on CUDA")
        parts.append(f"{port.name}:" + "x".join(["{n}", *map(str, port.shape[1:])]))
    return ",".join(parts)

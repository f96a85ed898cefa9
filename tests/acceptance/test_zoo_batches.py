"""Every small real network, and the stubs of the public zoo, take any batch after the rewrite."""

from pathlib import Path

import pytest

from app.inference.convert.batch import free_batch, has_fixed_batch
from tests.acceptance.conftest import SHARED

REAL = sorted((SHARED / "models").glob("*.onnx"))


@pytest.mark.skipif(not REAL, reason="the shared models are not here")
@pytest.mark.parametrize("path", REAL, ids=[path.stem for path in REAL])
def test_a_real_network_takes_any_batch(path: Path) -> None:
    freed = free_batch(path.read_bytes())
    assert (freed.is_free, freed.why_not) == (True, "")
    assert not has_fixed_batch(freed.content)


def test_every_stub_takes_any_batch(stubs: Path) -> None:
    made = {path.stem: free_batch(path.read_bytes()) for path in sorted(stubs.glob("*.onnx"))}
    assert len(made) > 10
    assert {name: freed.why_not for name, freed in made.items() if not freed.is_free} == {}

"""The doctor tells what it sees, and what to do."""

from pathlib import Path

from app.inference.convert.build import Built
from app.inference.install import Installer
from app.inference.inventory import Inventory
from app.inference.manifest import Manifest
from app.inference.spec import ModelId, ModelSpec
from app.runtime.doctor import examine

SPEC = ModelSpec.model_validate(
    {
        "id": "slow",
        "title": "Slow",
        "task": "face_swap",
        "file": "slow.onnx",
        "sources": [{"kind": "brought", "name": "slow.onnx"}],
        "batch": "rewrite",
        "license": {"spdx": "MIT", "commercial": "yes", "origin": "this test"},
        "input": {"name": "x", "layout": "nchw", "color": "rgb"},
    }
)


def test_a_network_that_runs_one_by_one_is_told_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "slow.onnx").write_bytes(b"network")
    manifest, models = Manifest(models=(SPEC,)), tmp_path / "models"
    built = Built(content=b"network", why_single="weights differ")
    installer = Installer(manifest, models, build=lambda *_: built)
    installer.adopt(tmp_path, [ModelId("slow")], unpinned=True)
    findings = {f.subject: f for f in examine(Inventory(manifest, models), tmp_path).findings}
    found = findings["model slow"]
    assert (found.is_fine, found.is_needed) == (False, False)
    assert "one picture at a time (weights differ)" in found.text


def test_an_optional_model_that_is_not_there_is_not_spoken_of(tmp_path: Path) -> None:
    diagnosis = examine(Inventory(Manifest(models=(SPEC,)), tmp_path), tmp_path)
    assert all(finding.subject != "model slow" for finding in diagnosis.findings)

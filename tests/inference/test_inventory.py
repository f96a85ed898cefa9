"""What is installed is known by receipts, and by hashes where there are none."""

import os
from pathlib import Path

import pytest

from app.inference.inventory import Inventory
from app.inference.manifest import Manifest
from app.inference.spec import ModelId
from tests.inference.conftest import MakeSpec

TINY = ModelId("tiny")
CONTENT = b"0123456789"


@pytest.fixture
def inventory(tmp_path: Path, make_spec: MakeSpec) -> Inventory:
    return Inventory(Manifest(models=(make_spec(CONTENT),)), tmp_path)


def test_without_a_file_a_model_is_missing(inventory: Inventory) -> None:
    status = inventory.status(TINY)
    assert (status.state, status.bytes, status.is_installed) == ("missing", 0, False)
    assert "models pull tiny" in status.detail


@pytest.mark.parametrize(
    ("content", "state"),
    [
        pytest.param(CONTENT, "installed", id="the pinned bytes"),
        pytest.param(CONTENT[:-1], "damaged", id="cut short"),
        pytest.param(b"", "damaged", id="empty"),
        pytest.param(CONTENT[::-1], "damaged", id="other bytes of the same length"),
    ],
)
def test_a_file_is_compared_with_the_manifest(
    inventory: Inventory, tmp_path: Path, content: bytes, state: str
) -> None:
    (tmp_path / "tiny.onnx").write_bytes(content)
    assert inventory.status(TINY).state == state
    assert inventory.examine(TINY).state == state
    assert bool(inventory.status(TINY).detail) == (state != "installed")


def test_a_change_after_the_receipt_is_seen(inventory: Inventory, tmp_path: Path) -> None:
    file = tmp_path / "tiny.onnx"
    file.write_bytes(CONTENT)
    assert inventory.status(TINY).is_installed
    file.write_bytes(CONTENT[::-1])
    os.utime(file, ns=(1, 1))
    assert inventory.status(TINY).state == "damaged"


def test_only_a_full_look_sees_a_change_that_keeps_the_time(
    inventory: Inventory, tmp_path: Path
) -> None:
    file = tmp_path / "tiny.onnx"
    file.write_bytes(CONTENT)
    assert inventory.status(TINY).is_installed
    changed_ns = file.stat().st_mtime_ns
    file.write_bytes(CONTENT[::-1])
    os.utime(file, ns=(changed_ns, changed_ns))
    assert inventory.status(TINY).is_installed
    assert inventory.examine(TINY).state == "damaged"


def test_a_receipt_of_an_older_release_is_not_believed(
    inventory: Inventory, tmp_path: Path, make_spec: MakeSpec
) -> None:
    (tmp_path / "tiny.onnx").write_bytes(CONTENT)
    assert inventory.status(TINY).is_installed
    newer = Inventory(Manifest(models=(make_spec(CONTENT[::-1]),)), tmp_path)
    assert newer.status(TINY).state == "damaged"


def test_a_damaged_receipt_only_costs_a_hash(inventory: Inventory, tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(CONTENT)
    assert inventory.status(TINY).is_installed
    (tmp_path / ".receipts" / "tiny.onnx.json").write_text("{")
    assert inventory.status(TINY).is_installed


def test_a_status_tells_the_license(inventory: Inventory) -> None:
    facts = inventory.status(TINY).to_json()
    assert (facts["license"], facts["commercial_use"], facts["state"]) == ("MIT", "yes", "missing")

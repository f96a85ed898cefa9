"""Sessions run verified bytes, and fail in our words."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from app.core.errors import (
    DeviceError,
    MissingModelError,
    ModelError,
    ModelIntegrityError,
    OutOfDeviceMemoryError,
    UnknownModelError,
)
from app.inference.inventory import Inventory
from app.inference.manifest import Manifest
from app.inference.ort_session import OrtSession
from app.inference.providers import CPU, PROVIDERS, Provider
from app.inference.session import OrtModelZoo, ZooOptions
from app.inference.spec import Feeds, ModelId, Outputs
from tests.inference.conftest import MakeSpec

TINY = ModelId("tiny")


@pytest.fixture
def zoo(tmp_path: Path, doubling_onnx: bytes, make_spec: MakeSpec) -> OrtModelZoo:
    (tmp_path / "tiny.onnx").write_bytes(doubling_onnx)
    return OrtModelZoo(Manifest(models=(make_spec(doubling_onnx),)), tmp_path, device="cpu")


def test_a_batch_comes_back_by_output_name(zoo: OrtModelZoo) -> None:
    batch = np.ones((5, 3, 4, 4), np.float32)
    outputs = zoo.session(TINY).run({"x": batch})
    assert list(outputs) == ["y"]
    assert np.array_equal(outputs["y"], batch * 2)


def test_a_session_tells_its_names_and_device(doubling_onnx: bytes) -> None:
    session = OrtSession("tiny", doubling_onnx, provider=CPU)
    assert (session.input_names, session.output_names, session.device) == (("x",), ("y",), "cpu")


def test_a_session_is_opened_once_until_closed(zoo: OrtModelZoo) -> None:
    with zoo:
        first = zoo.session(TINY)
        assert zoo.session(TINY) is first
    assert zoo.session(TINY) is not first


def test_an_unknown_model_is_refused(zoo: OrtModelZoo) -> None:
    with pytest.raises(UnknownModelError, match="known are: tiny"):
        zoo.session(ModelId("other"))


def test_a_model_that_another_process_installs_is_there_for_the_next_job(
    tmp_path: Path, doubling_onnx: bytes, make_spec: MakeSpec
) -> None:
    spec = make_spec(doubling_onnx)
    zoo = OrtModelZoo(Manifest(models=(spec,)), tmp_path, device="cpu")
    assert zoo.installed(spec.task) == ()
    with pytest.raises(MissingModelError):
        zoo.session(TINY)
    (tmp_path / spec.file).write_bytes(doubling_onnx)
    assert zoo.installed(spec.task) == (spec,)
    assert list(zoo.session(TINY).run({"x": np.ones((1, 3, 4, 4), np.float32)})) == ["y"]


def test_a_file_without_a_known_hash_is_still_being_installed(
    tmp_path: Path, doubling_onnx: bytes, make_spec: MakeSpec
) -> None:
    spec = make_spec(doubling_onnx, sha256="", bytes=0, batch="rewrite")
    manifest = Manifest(models=(spec,))
    zoo = OrtModelZoo(manifest, tmp_path, device="cpu")
    (tmp_path / spec.file).write_bytes(doubling_onnx)
    assert zoo.installed(spec.task) == ()
    sha256 = hashlib.sha256(doubling_onnx).hexdigest()
    Inventory(manifest, tmp_path).keep_receipt(spec, sha256)
    assert zoo.installed(spec.task) == (spec,)


def test_a_missing_file_says_how_to_get_it(zoo: OrtModelZoo, tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").unlink()
    with pytest.raises(MissingModelError, match="models pull tiny"):
        zoo.session(TINY)


@pytest.mark.parametrize("position", [0, -1], ids=["first byte", "last byte"])
def test_a_changed_byte_is_refused(zoo: OrtModelZoo, tmp_path: Path, position: int) -> None:
    content = bytearray((tmp_path / "tiny.onnx").read_bytes())
    content[position] ^= 1
    (tmp_path / "tiny.onnx").write_bytes(content)
    with pytest.raises(ModelIntegrityError, match="sha256"):
        zoo.session(TINY)


@pytest.mark.parametrize(
    "feeds",
    [
        pytest.param({}, id="no input"),
        pytest.param({"x": np.ones((1, 3, 4, 4), np.float64)}, id="another type"),
        pytest.param({"x": np.ones((1, 3, 4, 5), np.float32)}, id="another shape"),
        pytest.param({"z": np.ones((1, 3, 4, 4), np.float32)}, id="another name"),
    ],
)
def test_wrong_feeds_are_model_errors(zoo: OrtModelZoo, feeds: Feeds) -> None:
    with pytest.raises(ModelError, match="tiny: "):
        zoo.session(TINY).run(feeds)


@pytest.mark.parametrize("content", [b"", b"not a network"], ids=["empty", "junk"])
def test_bytes_that_are_no_network_are_a_model_error(content: bytes) -> None:
    with pytest.raises(ModelError, match="tiny: "):
        OrtSession("tiny", content, provider=CPU)


def test_a_session_that_opens_elsewhere_is_a_device_error(doubling_onnx: bytes) -> None:
    not_here = Provider(device="cpu", name="TensorrtExecutionProvider")
    with pytest.raises((DeviceError, ModelError), match="tiny: "):
        OrtSession("tiny", doubling_onnx, provider=not_here)


def test_too_large_a_batch_is_out_of_memory() -> None:
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    filled = helper.make_tensor_value_info("filled", TensorProto.FLOAT, ["a", "b"])
    node = helper.make_node("ConstantOfShape", ["shape"], ["filled"])
    graph = helper.make_graph([node], "filling", [shape], [filled])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = OrtSession("filling", model.SerializeToString(), provider=CPU)
    with pytest.raises(OutOfDeviceMemoryError, match="smaller batch"):
        session.run({"shape": np.array([1 << 30, 1 << 18])})


def test_the_hash_is_of_the_bytes_that_are_opened(zoo: OrtModelZoo, doubling_onnx: bytes) -> None:
    assert zoo.spec(TINY).sha256 == hashlib.sha256(doubling_onnx).hexdigest()


def fixed(batch: int | str) -> bytes:
    """`y = x + x` of one picture at a time."""
    shape = [batch, 3, 4, 4]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString(deterministic=True))


def test_a_network_of_one_picture_runs_its_batch_row_by_row(
    tmp_path: Path, make_spec: MakeSpec
) -> None:
    content, calls = fixed(1), []

    def run_many(run: Callable[[Feeds], Outputs], rows: Sequence[Feeds]) -> list[Outputs]:
        calls.append(len(rows))
        return [run(row) for row in rows]

    (tmp_path / "tiny.onnx").write_bytes(content)
    manifest = Manifest(models=(make_spec(content),))
    zoo = OrtModelZoo(manifest, tmp_path, device="cpu", options=ZooOptions(run_many=run_many))
    batch = np.arange(3 * 48, dtype=np.float32).reshape(3, 3, 4, 4)
    assert np.array_equal(zoo.session(TINY).run({"x": batch})["y"], batch * 2)
    assert calls == [3]


@pytest.mark.parametrize(
    ("batch", "only"), [pytest.param(1, 1, id="one"), pytest.param("N", None, id="any")]
)
def test_a_session_tells_the_batch_that_it_takes(batch: int | str, only: int | None) -> None:
    assert OrtSession("tiny", fixed(batch), provider=CPU).fixed_batch == only


def test_a_file_without_any_pin_is_not_opened(tmp_path: Path, make_spec: MakeSpec) -> None:
    content = fixed("N")
    (tmp_path / "tiny.onnx").write_bytes(content)
    spec = make_spec(content, batch="rewrite", sha256="", bytes=0)
    with pytest.raises(ModelIntegrityError, match="models pull tiny"):
        OrtModelZoo(Manifest(models=(spec,)), tmp_path, device="cpu").session(TINY)


class CountingGate:
    """Notes how often somebody passes."""

    def __init__(self) -> None:
        self.passed = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.passed += 1
        yield


@pytest.mark.parametrize(
    ("is_serial", "passed"),
    [
        pytest.param(True, 1 + 3, id="one caller at a time"),
        pytest.param(False, 0, id="any number of callers"),
    ],
)
def test_a_device_that_takes_one_call_at_a_time_has_a_gate(
    tmp_path: Path, doubling_onnx: bytes, make_spec: MakeSpec, is_serial: bool, passed: int
) -> None:
    """Opening a network is a call of the device, too."""
    (tmp_path / "tiny.onnx").write_bytes(doubling_onnx)
    gate = CountingGate()
    manifest = Manifest(models=(make_spec(doubling_onnx),))
    zoo = OrtModelZoo(manifest, tmp_path, device="cpu", options=ZooOptions(gate=gate))
    vars(zoo)["provider"] = replace(CPU, is_serial=is_serial)
    for _ in range(3):
        zoo.session(TINY).run({"x": np.ones((1, 3, 4, 4), np.float32)})
    assert gate.passed == passed


def test_directml_is_the_device_that_takes_one_call_at_a_time() -> None:
    assert [row.device for row in PROVIDERS if row.is_serial] == ["directml"]

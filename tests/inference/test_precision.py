"""Half precision is used where the numbers stay what they are, and nowhere else."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.inference.half_memory import HalfMemory
from app.inference.manifest import Manifest
from app.inference.ort_session import OrtSession
from app.inference.precision import chosen, gains, halved, self_test
from app.inference.providers import CPU
from app.inference.session import OrtModelZoo, ZooOptions
from app.inference.spec import Feeds, ModelId, Outputs
from tests.inference.conftest import MakeSpec
from tests.inference.faulty import FaultySession, rows


def network(factor: float) -> bytes:
    """`y = (x * factor) * (1 / factor)`: 16 bits do not hold a large factor."""
    shape = ["N", 3, 8, 8]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y"))
    nodes = [helper.make_node("Mul", ["x", "f"], ["m"]), helper.make_node("Mul", ["m", "g"], ["y"])]
    values = {"f": factor, "g": 1 / factor}
    constants = [numpy_helper.from_array(np.float32([v]), name) for name, v in values.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString(deterministic=True))


def on_cpu(content: bytes) -> OrtSession:
    return OrtSession("net", content, provider=CPU)


@pytest.mark.parametrize(
    ("factor", "is_half"),
    [
        pytest.param(2.0, True, id="small values"),
        pytest.param(1e6, False, id="values beyond 16 bits"),
    ],
)
def test_the_self_test_decides(factor: float, is_half: bool, make_spec: MakeSpec) -> None:
    content = network(factor)
    choice = chosen(make_spec(content), content, on_cpu)
    assert choice.verdict.is_fine == is_half, choice.verdict
    assert bool(choice.half) == is_half
    picture = np.full((1, 3, 8, 8), 200, np.float32)
    assert np.allclose(choice.session.run({"x": picture})["y"], picture)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param("nan", "not finite", id="not a number"),
        pytest.param("zeros", "differs", id="zeros"),
    ],
)
def test_wrong_numbers_are_found(fault: str, why: str) -> None:
    verdict = self_test(FaultySession(), FaultySession(fault=fault), rows(1, 2))
    assert (verdict.is_fine, why in verdict.why_not) == (False, True)


def test_what_has_no_half_stays_whole(make_spec: MakeSpec) -> None:
    content = network(2.0)
    calls = []

    def open_session(data: bytes) -> OrtSession:
        calls.append(data)
        return on_cpu(data if len(calls) == 1 else b"broken")

    choice = chosen(make_spec(content), content, open_session)
    assert (choice.verdict.is_fine, choice.half) == (False, b"")


def test_a_halved_file_is_smaller_and_keeps_its_inputs() -> None:
    before, after = on_cpu(network(2.0)), on_cpu(halved("net", network(2.0)))
    assert before.inputs == after.inputs


@pytest.mark.parametrize("half", [b"half a network", b""], ids=["fit", "unfit"])
def test_a_verdict_is_remembered(tmp_path: Path, half: bytes) -> None:
    HalfMemory(tmp_path).keep("gpu net", half)
    assert HalfMemory(tmp_path).recall("gpu net") == half
    assert HalfMemory(tmp_path).recall("other gpu net") is None


@pytest.mark.parametrize("junk", [b"", b"[]", b"{", b'{"gpu net": 3}'], ids=repr)
def test_a_broken_memory_is_forgotten(tmp_path: Path, junk: bytes) -> None:
    HalfMemory(tmp_path).keep("gpu net", b"half")
    (tmp_path / "half" / "index.json").write_bytes(junk)
    assert HalfMemory(tmp_path).recall("gpu net") is None


def test_a_changed_halved_file_is_not_used(tmp_path: Path) -> None:
    HalfMemory(tmp_path).keep("gpu net", b"half")
    (path,) = (tmp_path / "half").glob("*.onnx")
    path.write_bytes(b"hack")
    assert HalfMemory(tmp_path).recall("gpu net") is None


def test_without_a_folder_nothing_is_remembered() -> None:
    HalfMemory(None).keep("gpu net", b"half")
    assert HalfMemory(None).recall("gpu net") is None


def test_a_zoo_opens_half_precision_and_remembers_it(tmp_path: Path, make_spec: MakeSpec) -> None:
    content = network(2.0)
    (tmp_path / "tiny.onnx").write_bytes(content)
    manifest, cache = Manifest(models=(make_spec(content),)), tmp_path / "cache"
    options = ZooOptions(precision="half", cache_dir=cache)
    picture = np.full((2, 3, 8, 8), 100, np.float32)
    for _ in range(2):
        with OrtModelZoo(manifest, tmp_path, device="cpu", options=options) as zoo:
            assert np.allclose(zoo.session(ModelId("tiny")).run({"x": picture})["y"], picture)
    assert len(list((cache / "half").glob("*.onnx"))) == 1


class Timed:
    """A session of known cost on a clock of its own."""

    def __init__(self, now: list[float], cost_s: float, factor: float = 2.0) -> None:
        self._now, self._cost_s, self._factor = now, cost_s, factor

    def run(self, feeds: Feeds) -> Outputs:
        self._now[0] += self._cost_s
        return {"y": np.asarray(feeds["x"], np.float32) * np.float32(self._factor)}


@pytest.mark.parametrize(
    ("cost_s", "factor", "is_better"),
    [
        pytest.param(0.5, 2.0, True, id="twice as fast"),
        pytest.param(0.98, 2.0, False, id="hardly faster"),
        pytest.param(1.2, 2.0, False, id="slower"),
        pytest.param(0.1, 2.2, False, id="fast and wrong"),
    ],
)
def test_another_way_to_run_has_to_be_right_and_faster(
    cost_s: float, factor: float, is_better: bool
) -> None:
    now = [0.0]
    plain, other = Timed(now, 1.0), Timed(now, cost_s, factor)
    assert gains(plain, other, rows(1, 2), clock=lambda: now[0]) == is_better

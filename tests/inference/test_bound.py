"""Bound buffers give what a plain run gives, for every size and for several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from app.inference.bound import BoundRunner


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    """`y = x + x`, `z = mean of each row`."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "k"])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n"])
    nodes = [
        helper.make_node("Add", ["x", "x"], ["y"]),
        helper.make_node("ReduceMean", ["x"], ["z"], axes=[1], keepdims=0),
    ]
    graph = helper.make_graph(nodes, "net", [x], [y, z])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def batch(rows: int, columns: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, columns)).astype(np.float32)


def test_every_run_of_a_size_gives_its_own_result(session: ort.InferenceSession) -> None:
    runner = BoundRunner(session, "cpu")
    kept = []
    for seed in range(5):
        x = batch(4, seed=seed)
        y, z = runner.run({"x": x})
        assert np.allclose(y, x + x)
        assert np.allclose(z, x.mean(1))
        kept.append((x, y))
    # What was given out before is not written over by later runs.
    assert all(np.allclose(y, x + x) for x, y in kept)
    assert runner.sizes_kept == 1


def test_sizes_that_were_not_used_for_long_are_let_go(session: ort.InferenceSession) -> None:
    runner = BoundRunner(session, "cpu")
    for rows in range(1, 20):
        x = batch(rows)
        assert np.allclose(runner.run({"x": x})[0], x + x)
    assert runner.sizes_kept == 8


def test_slices_and_transposed_arrays_are_taken(session: ort.InferenceSession) -> None:
    runner = BoundRunner(session, "cpu")
    x = batch(6, 6)[::2].T
    for _ in range(2):
        assert np.allclose(runner.run({"x": x})[0], x + x)


def test_threads_do_not_share_buffers(session: ort.InferenceSession) -> None:
    runner = BoundRunner(session, "cpu")

    def work(seed: int) -> bool:
        for step in range(50):
            x = batch(4, 200, seed * 100 + step)
            if not np.array_equal(runner.run({"x": x})[0], x + x):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_a_run_that_fails_leaves_the_next_one_right(session: ort.InferenceSession) -> None:
    runner = BoundRunner(session, "cpu")
    with pytest.raises(Exception, match="rank"):
        runner.run({"x": np.zeros((2, 2, 2), np.float32)})
    x = batch(2)
    assert np.allclose(runner.run({"x": x})[0], x + x)

"""Folding changes how weights are stored, and nothing that is computed."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from app.core.errors import ConversionError
from app.inference.convert.fold import convert

Array = NDArray[np.generic]
RunOnnx = Callable[..., dict[str, Array]]

RNG = np.random.default_rng(5)
WEIGHTS = RNG.integers(-100, 100, (4, 12), np.int8)

SCALES = {
    "one for the tensor": ({}, RNG.uniform(0.01, 0.1, ()), RNG.integers(-5, 5, ())),
    "one a row": ({"axis": 0}, RNG.uniform(0.01, 0.1, 4), RNG.integers(-5, 5, 4)),
    "one a block": (
        {"axis": 1, "block_size": 5},
        RNG.uniform(0.01, 0.1, (4, 3)),
        RNG.integers(-5, 5, (4, 3)),
    ),
}


def quantized(case: str, *, tail: str = "Reshape", weight_is_input: bool = False) -> bytes:
    """A convolution of 3 to 4 channels, 1 x 1, with 8-bit weights, batch 1 and 2 x 2 pixels."""
    attributes, scale, zero = SCALES[case]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["flat"], **attributes),
        helper.make_node("Reshape", ["flat", "weight_shape"], ["weight"]),
        helper.make_node("Conv", ["x", "weight"], ["conv"], kernel_shape=[1, 1]),
    ]
    constants = {
        "q": WEIGHTS,
        "scale": scale.astype(np.float32),
        "zero": zero.astype(np.int8),
        "weight_shape": np.array([16, 3, 1, 1]),
    }
    if tail == "Reshape":
        nodes.append(helper.make_node("Reshape", ["conv", "out_shape"], ["y"]))
        constants["out_shape"] = np.array([1, -1, 16])
        out_shape = [1, 4, 16]
    else:
        nodes.append(helper.make_node("Flatten", ["conv"], ["y"]))
        out_shape = [1, 64]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 2, 2])]
    if weight_is_input:
        inputs.append(helper.make_tensor_value_info("weight", TensorProto.FLOAT, [16, 3, 1, 1]))
    graph = helper.make_graph(
        nodes,
        "net",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out_shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(model.SerializeToString())


def shape_of(item: onnx.ValueInfoProto) -> list[int | str]:
    return [side.dim_param or side.dim_value for side in item.type.tensor_type.shape.dim]


@pytest.mark.parametrize("case", SCALES)
def test_a_folded_network_computes_what_the_quantized_one_does(
    run_onnx: RunOnnx, case: str
) -> None:
    source = quantized(case)
    x = RNG.random((1, 3, 2, 2), np.float32)
    wanted = ReferenceEvaluator(onnx.load_from_string(source)).run(None, {"x": x})[0]
    assert run_onnx(convert({"net.onnx": source}), x=x)["y"] == pytest.approx(wanted, abs=1e-5)


def test_batch_and_picture_become_free(run_onnx: RunOnnx) -> None:
    folded = convert({"net.onnx": quantized("one a block")})
    x = RNG.random((3, 3, 5, 7), np.float32)
    together = run_onnx(folded, x=x)["y"]
    assert together.shape == (3, 35, 16)
    alone = [run_onnx(folded, x=x[i : i + 1])["y"][0] for i in range(3)]
    assert np.allclose(together, alone)


def test_a_layer_of_fixed_size_keeps_the_pictures_size() -> None:
    graph = onnx.load_from_string(
        convert({"net.onnx": quantized("one a row", tail="Flatten")})
    ).graph
    assert [shape_of(item) for item in (*graph.input, *graph.output)] == [["N", 3, 2, 2], ["N", 64]]


def test_weights_are_no_longer_inputs_nor_quantized() -> None:
    source = quantized("one a block", weight_is_input=True)
    graph = onnx.load_from_string(convert({"net.onnx": source})).graph
    assert [item.name for item in graph.input] == ["x"]
    assert [node.op_type for node in graph.node] == ["Conv", "Reshape"]
    assert sorted(item.name for item in graph.initializer) == ["out_shape", "weight"]


def test_the_same_source_gives_the_same_bytes() -> None:
    source = {"net.onnx": quantized("one a block")}
    assert convert(source) == convert(source)


@pytest.mark.parametrize(
    ("sources", "complaint"),
    [
        pytest.param({}, "got 0 .onnx files", id="nothing"),
        pytest.param({"a.onnx": b"", "b.onnx": b""}, "got 2 .onnx files", id="two"),
        pytest.param({"a.onnx": b"no protobuf"}, "not an ONNX file", id="junk"),
        pytest.param({"a.onnx": b""}, "holds no network", id="empty file"),
    ],
)
def test_wrong_sources_are_refused(sources: dict[str, bytes], complaint: str) -> None:
    with pytest.raises(ConversionError, match=complaint):
        convert(sources)


def test_scales_that_do_not_fit_are_refused() -> None:
    model = onnx.load_from_string(quantized("one a row"))
    for item in model.graph.initializer:
        if item.name == "scale":
            item.CopyFrom(numpy_helper.from_array(np.ones(3, np.float32), "scale"))
    with pytest.raises(ConversionError, match="do not fit"):
        convert({"net.onnx": model.SerializeToString()})

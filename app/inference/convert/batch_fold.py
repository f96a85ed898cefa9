"""Works out the shapes that a network computes while it runs, where they are the same for every picture.

Older exports ask a value for its shape, pick sides of it and put them together to the target of a Reshape. With a batch
of one and fixed sides all of that is known, and shape inference then gets further.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from app.inference.convert.batch_graph import int_attribute, ints_attribute

Array = NDArray[np.generic]

_LARGEST = 64


def with_known_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shape of every value that can be told, and with computed shapes made constant."""
    while True:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        known = _small_constants(model.graph)
        static = _static_shapes(model.graph)
        given_out = {item.name for item in model.graph.output}
        folded: dict[str, Array] = {}
        kept = []
        for node in model.graph.node:
            value = _value_of(node, {**known, **folded}, static)
            if value is None or node.output[0] in given_out:
                kept.append(node)
            else:
                folded[node.output[0]] = value
        if not folded:
            return model
        _replace_inplace(model.graph, kept, folded)


def _value_of(
    node: onnx.NodeProto, known: Mapping[str, Array], static: Mapping[str, Array]
) -> Array | None:
    if node.op_type == "Shape" and not node.attribute:
        return static.get(node.input[0])
    inputs = [known.get(name) for name in node.input]
    present = [value for value in inputs if value is not None]
    if node.op_type not in _FOLDS or len(present) < len(inputs) or not present:
        return None
    if any(value.ndim > 1 for value in present) or len(node.output) > 1:
        return None
    return _evaluated(node, present)


def _evaluated(node: onnx.NodeProto, inputs: Sequence[Array]) -> Array | None:
    value = np.asarray(_FOLDS[node.op_type](node, inputs))
    return value if value.size <= _LARGEST else None


def _axes(node: onnx.NodeProto, inputs: Sequence[Array]) -> tuple[int, ...] | None:
    given = ints_attribute(node, "axes")
    if given is None and len(inputs) > 1:
        given = inputs[1].ravel().astype(int).tolist()
    return None if given is None else tuple(given)


def _cast(node: onnx.NodeProto, inputs: Sequence[Array]) -> Array:
    return inputs[0].astype(helper.tensor_dtype_to_np_dtype(int_attribute(node, "to", 1)))


def _divided(node: onnx.NodeProto, inputs: Sequence[Array]) -> Array:
    # ONNX cuts whole numbers off; the sides of pictures are never negative.
    divide = np.floor_divide if np.issubdtype(inputs[0].dtype, np.integer) else np.divide
    return np.asarray(divide(inputs[0], inputs[1]))


def _sliced(node: onnx.NodeProto, inputs: Sequence[Array]) -> Array:
    """Of a vector; anything else is no shape."""
    if len(inputs) > 1:
        start, end = (int(each.ravel()[0]) for each in inputs[1:3])
        step = int(inputs[4].ravel()[0]) if len(inputs) > 4 else 1
        return inputs[0][start:end:step]
    starts, ends = ints_attribute(node, "starts") or [0], ints_attribute(node, "ends") or [0]
    return inputs[0][starts[0] : ends[0]]


_FOLDS: Mapping[str, Callable[[onnx.NodeProto, Sequence[Array]], object]] = MappingProxyType(
    {
        "Add": lambda _, x: np.add(x[0], x[1]),
        "Cast": _cast,
        "Ceil": lambda _, x: np.ceil(x[0]),
        "Concat": lambda node, x: np.concatenate(x, int_attribute(node, "axis", 0)),
        "Div": _divided,
        "Floor": lambda _, x: np.floor(x[0]),
        "Gather": lambda node, x: np.take(x[0], x[1].astype(int), int_attribute(node, "axis", 0)),
        "Identity": lambda _, x: x[0],
        "Mul": lambda _, x: np.multiply(x[0], x[1]),
        "Slice": _sliced,
        "Squeeze": lambda node, x: np.squeeze(x[0], _axes(node, x)),
        "Sub": lambda _, x: np.subtract(x[0], x[1]),
        "Unsqueeze": lambda node, x: np.expand_dims(x[0], _axes(node, x) or (0,)),
    }
)


def _small_constants(graph: onnx.GraphProto) -> dict[str, Array]:
    tensors = [(item.name, item) for item in graph.initializer]
    for node in graph.node:
        if node.op_type == "Constant":
            tensors += [(node.output[0], item.t) for item in node.attribute if item.name == "value"]
    return {
        name: numpy_helper.to_array(item)
        for name, item in tensors
        if int(np.prod(item.dims)) <= _LARGEST
    }


def _static_shapes(graph: onnx.GraphProto) -> dict[str, Array]:
    shapes: dict[str, Array] = {}
    for item in (*graph.value_info, *graph.input):
        tensor = item.type.tensor_type
        sides = tensor.shape.dim
        if tensor.HasField("shape") and all(side.HasField("dim_value") for side in sides):
            shapes[item.name] = np.array([side.dim_value for side in sides], np.int64)
    return shapes


def _replace_inplace(
    graph: onnx.GraphProto, kept: list[onnx.NodeProto], folded: Mapping[str, Array]
) -> None:
    tensors = [numpy_helper.from_array(value, name) for name, value in folded.items()]
    copies = []
    for node in kept:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
    del graph.node[:]
    graph.node.extend(copies)
    # In front: what a file keeps at the end of its constants stays there.
    for tensor in reversed(tensors):
        graph.initializer.insert(0, tensor)

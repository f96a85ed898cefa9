"""Turns block-quantized weights back into plain float32 ones, and frees the batch dimension.

The face detector YuNet and the face recognizer SFace are published in a form whose weights are 8-bit with
one scale a block (OpenCV Zoo, `*_int8bq.onnx`). ONNX Runtime refuses the one file, since it declares blocks
on a weight that has a single scale, and reads the other's weights as inputs. Both are computed once here:
nothing of the arithmetic changes, the file grows fourfold.

Source: ONNX operator DequantizeLinear, opset 21: y = (x - zero_point) * scale, the scale repeated along its
axis over blocks of `block_size`.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import numpy_helper

from app.core.errors import ConversionError

Array = NDArray[np.generic]

_FIXED_SIZE_OPERATORS = frozenset({"Gemm", "Flatten", "MatMul"})


def convert(sources: Mapping[str, bytes]) -> bytes:
    """Fold the one `.onnx` file among the sources.

    Args:
        sources: File name to content.

    Returns:
        An ONNX file with float32 weights, batch dimension `N`, and free height and width where no layer
        needs a fixed size.

    Raises:
        ConversionError: There is not exactly one ONNX file, or it is of another make.
    """
    files = [content for name, content in sources.items() if name.endswith(".onnx")]
    if len(files) != 1:
        raise ConversionError(f"fold: got {len(files)} .onnx files, wanted one")
    try:
        model = onnx.load_from_string(files[0])
    except DecodeError as error:
        raise ConversionError(f"fold: not an ONNX file: {error}") from error
    if not model.graph.node:
        raise ConversionError("fold: the file holds no network")
    _fold_constants_inplace(model.graph)
    _drop_unused_inplace(model.graph)
    _free_dimensions_inplace(model.graph)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _fold_constants_inplace(graph: onnx.GraphProto) -> None:
    """Replace every DequantizeLinear and Reshape over constants by its result."""
    constants = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    folded: dict[str, Array] = {}
    kept: list[onnx.NodeProto] = []
    for node in graph.node:
        if _is_foldable(node, constants):
            value = _evaluate(node, constants)
            constants[node.output[0]] = folded[node.output[0]] = value
        else:
            kept.append(node)
    _replace(graph.node, kept)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in folded.items())


def _is_foldable(node: onnx.NodeProto, constants: Mapping[str, Array]) -> bool:
    if node.op_type not in ("DequantizeLinear", "Reshape"):
        return False
    return all(name in constants for name in node.input if name)


def _evaluate(node: onnx.NodeProto, constants: Mapping[str, Array]) -> Array:
    inputs = [constants[name] for name in node.input if name]
    if node.op_type == "Reshape":
        return inputs[0].reshape([int(side) for side in inputs[1]])
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    axis, block = int(attributes.get("axis", 1)), int(attributes.get("block_size", 0))
    quantized = inputs[0].astype(np.float32)
    scale = _spread(inputs[1], quantized.shape, axis, block)
    if len(inputs) < 3:
        return quantized * scale
    return (quantized - _spread(inputs[2], quantized.shape, axis, block)) * scale


def _spread(values: Array, shape: tuple[int, ...], axis: int, block: int) -> NDArray[np.float32]:
    """Repeat per-tensor, per-axis or per-block values until they fit a tensor of this shape."""
    numbers = np.asarray(values, np.float32)
    if numbers.size == 1:
        return numbers.reshape(())
    if numbers.ndim == len(shape) and block:
        return np.repeat(numbers, block, axis).take(np.arange(shape[axis]), axis)
    if numbers.shape == (shape[axis],):
        return numbers.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    raise ConversionError(
        f"fold: scales of shape {numbers.shape} do not fit weights of shape {shape} along axis {axis}"
    )


def _drop_unused_inplace(graph: onnx.GraphProto) -> None:
    """Keep the constants that a node reads, and the inputs that are no constants and have a reader."""
    read = {name for node in graph.node for name in node.input}
    constants = [item for item in graph.initializer if item.name in read]
    constant_names = {item.name for item in constants}
    inputs = [item for item in graph.input if item.name in read - constant_names]
    _replace(graph.initializer, constants)
    _replace(graph.input, inputs)
    # Shapes of the inner values are stale from here on; the runtime infers them.
    _replace(graph.value_info, [])


def _free_dimensions_inplace(graph: onnx.GraphProto) -> None:
    """Let the batch be of any size, and the picture too where every layer slides over it."""
    slides = all(node.op_type not in _FIXED_SIZE_OPERATORS for node in graph.node)
    for item in graph.input:
        sides = item.type.tensor_type.shape.dim
        for index, name in enumerate(("N", None, "H", "W")):
            if name and (index == 0 or slides):
                sides[index].dim_param = name
    for item in graph.output:
        sides = item.type.tensor_type.shape.dim
        sides[0].dim_param = "N"
        if slides:
            sides[1].dim_param = f"cells_{item.name}"
    _free_reshapes_inplace(graph)


def _free_reshapes_inplace(graph: onnx.GraphProto) -> None:
    """In targets of Reshape turn the batch of 1 into 0, which means "as it comes in"."""
    targets = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for item in graph.initializer:
        shape = numpy_helper.to_array(item)
        if item.name in targets and shape[0] == 1:
            free = np.concatenate([[0], shape[1:]]).astype(np.int64)
            item.CopyFrom(numpy_helper.from_array(free, item.name))


def _replace(field: object, items: Iterable[object]) -> None:
    """Put these messages in the place of all of a repeated field's."""
    kept = list(items)
    del field[:]  # type: ignore[attr-defined]
    field.extend(kept)  # type: ignore[attr-defined]

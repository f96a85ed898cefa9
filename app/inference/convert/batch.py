"""Rewrites networks with a batch of one baked in to a free batch, and proves it.

Public files of swap and recognition networks declare a batch of 1, and write it into the targets of Reshape, Expand
and Resize too. Each value is followed through the graph (`batch_graph`), each operator says how it treats the batch
(`batch_rules`), and whatever no rule can treat is refused. What comes out is believed only when a batch of n gives
what n batches of one give on the original (`batch_proof`); otherwise the file stays as it is and its pictures run one
by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from google.protobuf.message import DecodeError

from app.core.errors import ConversionError
from app.inference.convert.batch_fold import with_known_shapes
from app.inference.convert.batch_graph import BatchGraph, Shape, Value
from app.inference.convert.batch_products import PRODUCT_RULES
from app.inference.convert.batch_proof import prove_batch
from app.inference.convert.batch_rules import RULES, refuse
from app.inference.convert.graph import serialize

BATCH = "N"


@dataclass(frozen=True, kw_only=True, slots=True)
class Freed:
    """What became of a network.

    Attributes:
        content: The file to use.
        is_free: Whether it takes any batch, proven.
        why_not: What stands against it, for people; empty when it is free.
    """

    content: bytes
    is_free: bool
    why_not: str = ""


def free_batch(content: bytes) -> Freed:
    """Make a network take any batch, and prove it; a network that does already is only proven.

    Args:
        content: An ONNX file without external data.

    Returns:
        The rewritten file, or the same one where that is not possible.
    """
    try:
        freed = rewrite(content) if has_fixed_batch(content) else content
        prove_batch(content, freed)
    except ConversionError as error:
        return Freed(content=content, is_free=False, why_not=error.message)
    return Freed(content=freed, is_free=True)


def has_fixed_batch(content: bytes) -> bool:
    """Whether an input of the network declares how many pictures it takes.

    Raises:
        ConversionError: It is no ONNX file.
    """
    graph = _loaded(content).graph
    names = {item.name for item in graph.initializer}
    shapes = [item.type.tensor_type.shape.dim for item in graph.input if item.name not in names]
    return any(len(sides) > 1 and sides[0].HasField("dim_value") for sides in shapes)


def rewrite(content: bytes) -> bytes:
    """The same network with the batch `N` as the first axis of every picture input and of every output.

    An output that had no axis for the batch, as those of some detectors, gets one in front. An input of one number,
    such as a strength, is the same for all. Constants that no node reads keep their place at the end: some files carry
    a matrix there that belongs to the input.

    Raises:
        ConversionError: It is no ONNX file, or an operator mixes the pictures or cannot be told what to do.
    """
    model = _loaded(content)
    names = {item.name for item in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in names]
    batched = [item.name for item in inputs if _set_one_inplace(item)]
    if not batched:
        raise ConversionError("batch: no input has an axis for a batch of one")
    model = with_known_shapes(model)
    graph = BatchGraph(model, batched[0])
    values = _walk(graph, model.graph, batched)
    for item in model.graph.input:
        if item.name in batched:
            item.type.tensor_type.shape.dim[0].dim_param = BATCH
    outputs = [_finished(graph, values[item.name], item) for item in model.graph.output]
    return _assembled(model, graph, outputs)


def _loaded(content: bytes) -> onnx.ModelProto:
    try:
        model = onnx.load_from_string(content)
    except DecodeError as error:
        raise ConversionError(f"batch: not an ONNX file: {error}") from error
    if not model.graph.node:
        raise ConversionError("batch: the file holds no network")
    return model


def _set_one_inplace(item: onnx.ValueInfoProto) -> bool:
    """Let an input be a batch of one, if it is one or is free; tells whether it is."""
    sides = item.type.tensor_type.shape.dim
    if len(sides) < 2 or (sides[0].HasField("dim_value") and sides[0].dim_value != 1):
        return False
    sides[0].dim_value = 1
    return True


def _walk(graph: BatchGraph, original: onnx.GraphProto, batched: Sequence[str]) -> dict[str, Value]:
    values = {"": Value("", ())}
    for item in original.initializer:
        values[item.name] = Value(item.name, tuple(item.dims))
    for entry in original.input:
        if entry.name not in values:
            shape = graph.shape_of(entry.name)
            values[entry.name] = Value(entry.name, shape, 0 if entry.name in batched else None)
    for node in original.node:
        inputs = [values[name] for name in node.input]
        if all(value.batch is None for value in inputs):
            graph.copy(node, list(node.input))
            made = [Value(name, graph.shape_of(name)) for name in node.output if name]
        else:
            made = _applied(graph, node, inputs)
        values.update(zip((name for name in node.output if name), made, strict=True))
    return values


def _applied(graph: BatchGraph, node: onnx.NodeProto, inputs: Sequence[Value]) -> list[Value]:
    rule = RULES.get(node.op_type) or PRODUCT_RULES.get(node.op_type)
    if rule is None or node.domain not in ("", "ai.onnx"):
        raise refuse(node, "has no rule for a batch")
    return rule(graph, node, inputs)


def _finished(
    graph: BatchGraph, value: Value, original: onnx.ValueInfoProto
) -> onnx.ValueInfoProto:
    """Bring the batch of an output to its front, under the output's own name; returns its declaration."""
    shape: Shape = value.shape
    has_one = bool(shape) and shape[0] == 1
    if value.batch != 0:
        if all(value.name not in node.output for node in graph.nodes):
            raise ConversionError(f"batch: output {original.name} is an input or a constant")
        inner = Value(graph.rename(value.name), shape, value.batch)
        front = graph.in_front(inner) if has_one else graph.lifted(inner)
        name = front.name if front is not None else graph.lifted(inner).name
        graph.nodes.append(onnx.helper.make_node("Identity", [name], [original.name]))
    sides = shape[1:] if has_one or value.batch == 0 else shape
    kind = original.type.tensor_type.elem_type
    free = [
        BATCH,
        *(
            side if side is not None else f"{original.name}_{axis}"
            for axis, side in enumerate(sides, 1)
        ),
    ]
    return onnx.helper.make_tensor_value_info(original.name, kind, free)


def _assembled(
    model: onnx.ModelProto, graph: BatchGraph, outputs: Sequence[onnx.ValueInfoProto]
) -> bytes:
    del model.graph.node[:], model.graph.output[:], model.graph.value_info[:]
    model.graph.node.extend(graph.nodes)
    model.graph.output.extend(outputs)
    kept = list(model.graph.initializer)
    del model.graph.initializer[:]
    model.graph.initializer.extend([*graph.constants, *kept])
    return serialize(model)

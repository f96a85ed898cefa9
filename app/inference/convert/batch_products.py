"""Rules for products of matrices, and for operators that pick, repeat and pad; see `batch_rules`."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import onnx

from app.inference.convert.batch_graph import (
    LIFTED,
    BatchGraph,
    Value,
    int_attribute,
    ints_attribute,
)
from app.inference.convert.batch_rules import Rule, refuse


def matmul(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """A product of matrices, or of stacks of them."""
    left, right = values
    if min(left.rank, right.rank) < 2:
        raise refuse(node, "multiplies a single vector")
    rank = max(left.rank, right.rank)
    is_row = left.batch not in (None, LIFTED) and left.batch != left.rank - 1
    if is_row and right.batch is None and right.rank == 2:
        graph.copy(node, [left.name, right.name])
        return graph.outputs(node, left.batch)
    spots = {_stack_axis(value, rank) for value in values if value.batch is not None}
    if len(spots) == 1:
        (spot,) = spots
        others = [v for v in values if v.batch is None]
        if spot is not None and all(_stack_length(v, spot, rank) == 1 for v in others):
            graph.copy(node, [left.name, right.name])
            return graph.outputs(node, spot)
    names = [v.name if v.batch is None else graph.aligned(v, rank) for v in values]
    graph.copy(node, names)
    return graph.outputs(node, LIFTED)


def _stack_axis(value: Value, rank: int) -> int | None:
    """The batch's axis among those that only stack matrices."""
    if value.batch is None or value.batch == LIFTED or value.batch >= value.rank - 2:
        return None
    return value.batch + rank - value.rank


def _stack_length(value: Value, spot: int, rank: int) -> int | None:
    index = spot - (rank - value.rank)
    return 1 if index < 0 else value.shape[index]


def gemm(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """A fully connected layer, one row a picture."""
    front = graph.in_front(values[0]) if values[0].batch is not None else None
    is_layer = not int_attribute(node, "transA", 0)
    if front is None or not is_layer or any(value.batch is not None for value in values[1:]):
        raise refuse(node, "is no layer with one row a picture")
    graph.copy(node, [front.name, *(value.name for value in values[1:])])
    return graph.outputs(node, 0)


def expand(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Repeat; a target of 1 where the batch is means that it stays."""
    data, made = values[0], graph.shape_of(node.output[0])
    if values[1].batch is not None:
        raise refuse(node, "has a target that depends on the picture")
    shift = len(made) - data.rank
    plain = data.batch is not None and data.batch != LIFTED
    if plain and made[(data.batch or 0) + shift] == 1:
        graph.copy(node, [data.name, values[1].name])
        return graph.outputs(node, (data.batch or 0) + shift)
    target = graph.emit("Concat", [graph.ints([1]), values[1].name], axis=0)
    graph.copy(node, [graph.aligned(data, len(made)), target])
    return graph.outputs(node, LIFTED)


def tile(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Repeat along axes."""
    data, repeats = values[0], graph.known(values[1].name)
    plain = data.batch is not None and data.batch != LIFTED
    if plain and repeats is not None and repeats[data.batch or 0] == 1:
        graph.copy(node, [data.name, values[1].name])
        return graph.outputs(node, data.batch)
    longer = graph.emit("Concat", [graph.ints([1]), values[1].name], axis=0)
    graph.copy(node, [graph.lifted(data).name, longer])
    return graph.outputs(node, LIFTED)


def pad(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Add rows and columns."""
    data = values[0]
    has_attribute = ints_attribute(node, "pads") is not None
    pads = ints_attribute(node, "pads") if has_attribute else graph.known(values[1].name)
    if pads is None or (len(values) > 3 and values[3].name):
        raise refuse(node, "has widths that only running it tells")
    spot = data.batch or 0
    plain = data.batch != LIFTED and pads[spot] == pads[spot + data.rank] == 0
    rest = [value.name for value in values[2:]]
    if not plain:
        pads = [0, *pads[: data.rank], 0, *pads[data.rank :]]
    name = data.name if plain else graph.lifted(data).name
    if has_attribute:
        graph.copy(node, [name, *rest], pads=pads)
    else:
        graph.copy(node, [name, graph.ints(pads), *rest])
    return graph.outputs(node, spot if plain else LIFTED)


def cut(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Slice: cut along axes other than the batch's."""
    data = values[0]
    old = ints_attribute(node, "starts")
    if old is not None:
        axes = ints_attribute(node, "axes") or list(range(len(old)))
    elif len(values) > 3 and values[3].name:
        axes = graph.known(values[3].name) or []
    else:
        axes = list(range(graph.shape_of(values[1].name)[0] or 0))
    axes = [data.axis(axis) for axis in axes]
    if not axes or any(value.batch is not None for value in values[1:]):
        raise refuse(node, "has axes or ends that only running it tells")
    plain = data.batch != LIFTED and data.batch not in axes
    name = data.name if plain else graph.lifted(data).name
    axes = axes if plain else [axis + 1 for axis in axes]
    if old is not None:
        graph.copy(node, [name], axes=axes)
    else:
        steps = [values[4].name] if len(values) > 4 else []
        graph.copy(node, [name, values[1].name, values[2].name, graph.ints(axes), *steps])
    return graph.outputs(node, data.batch if plain else LIFTED)


def gather(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Pick along an axis by numbers that are the same for all pictures."""
    data, indices = values
    if indices.batch is not None:
        raise refuse(node, "picks by numbers that depend on the picture")
    axis = data.axis(int_attribute(node, "axis", 0))
    if data.batch in (LIFTED, axis):
        graph.copy(node, [graph.lifted(data).name, indices.name], axis=axis + 1)
        return graph.outputs(node, LIFTED)
    graph.copy(node, [data.name, indices.name], axis=axis)
    spot = data.batch or 0
    return graph.outputs(node, spot if spot < axis else spot + indices.rank - 1)


PRODUCT_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Expand": expand,
        "Gather": gather,
        "Gemm": gemm,
        "MatMul": matmul,
        "Pad": pad,
        "Slice": cut,
        "Tile": tile,
    }
)
"""By operator."""

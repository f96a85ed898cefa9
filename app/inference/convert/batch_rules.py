"""How each operator of ONNX treats a batch that it was not written for.

A rule is given a node of which some input is batched. It adds nodes that compute the same for every row of the batch,
and tells in which form the outputs are. Source: the operators' definitions in the ONNX specification, opsets 7 to 21.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import onnx

from app.core.errors import ConversionError
from app.inference.convert.batch_graph import (
    LIFTED,
    BatchGraph,
    Shape,
    Value,
    attributes_of,
    int_attribute,
    ints_attribute,
)

Rule = Callable[[BatchGraph, onnx.NodeProto, Sequence[Value]], list[Value]]

_SOFTMAX_HAS_ONE_AXIS = 13


def refuse(node: onnx.NodeProto, why: str) -> ConversionError:
    """The error for a node that cannot be batched."""
    return ConversionError(f"batch: {node.op_type} {why}")


def elementwise(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Operators that compute each element by itself and broadcast."""
    rank = max(value.rank for value in values)
    spots = {_spot(value, rank) for value in values if value.batch is not None}
    if len(spots) == 1:
        (spot,) = spots
        if spot != LIFTED and all(
            _length(value, spot, rank) == 1 for value in values if value.batch is None
        ):
            graph.copy(node, [value.name for value in values])
            return graph.outputs(node, spot)
    names = [value.name if value.batch is None else graph.aligned(value, rank) for value in values]
    graph.copy(node, names)
    return graph.outputs(node, LIFTED)


def _spot(value: Value, rank: int) -> int:
    """Where the batch is once the value is broadcast to so many axes."""
    if value.batch is None or value.batch == LIFTED:
        return LIFTED
    return value.batch + rank - value.rank


def _length(value: Value, spot: int, rank: int) -> int | None:
    index = spot - (rank - value.rank)
    return 1 if index < 0 else value.shape[index]


def row_wise(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Operators whose first axis is a batch by definition: convolutions, pools, norms."""
    fronts = [graph.in_front(v) if v.batch is not None else v for v in values]
    if any(v.batch is not None for v in values[1:]) and node.op_type != "GridSample":
        raise refuse(node, "has weights that depend on the picture")
    if fronts[0] is not None and None not in fronts:
        graph.copy(node, [value.name for value in fronts if value is not None])
        return graph.outputs(node, 0)
    return _folded(graph, node, values)


def _folded(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Let the rows of all pictures be one batch, and part them again."""
    made = graph.shape_of(node.output[0])
    inner = [*values[0].shape[1:], *made]
    if None in inner or len(node.output) > 1 or len([v for v in values if v.batch is not None]) > 1:
        raise refuse(node, "has rows of another meaning than the batch's")
    sides = [int(side or 0) for side in inner]
    cut = values[0].rank - 1
    lifted = graph.lifted(values[0]).name
    rows = graph.emit("Reshape", [lifted, graph.ints([-1, *sides[:cut]])])
    graph.copy(node, [rows, *(value.name for value in values[1:])])
    together = graph.nodes[-1].output[0] = graph.fresh(f"{node.output[0]}.rows")
    inputs = [together, graph.ints([-1, *sides[cut:]])]
    graph.nodes.append(onnx.helper.make_node("Reshape", inputs, [node.output[0]]))
    return graph.outputs(node, LIFTED)


def resize(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Resize by factors as it is; sizes that name a batch of one get the true one."""
    front = graph.in_front(values[0])
    if front is None:
        return _folded(graph, node, values)
    names = [front.name, *(value.name for value in values[1:])]
    has_sizes = len(values) > 3 and values[3].name
    if has_sizes and ints_attribute(node, "axes") is None:
        rest = graph.ints(range(1, front.rank))
        tail = graph.emit("Gather", [names[3], rest], axis=0)
        names[3] = graph.emit("Concat", [graph.batch_size(), tail], axis=0)
    graph.copy(node, names)
    return graph.outputs(node, 0)


def reshape(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Keep the batch's own axis where the target has a place for it, else put one in front."""
    data, target = values[0], values[1].name
    if int_attribute(node, "allowzero", 0):
        raise refuse(node, "allows empty axes")
    wanted, given = graph.shape_of(node.output[0]), graph.known(target)
    spot = _landing(data, wanted)
    new = None if spot is None or data.batch is None else _target(data.batch, spot, wanted, given)
    if spot is None or new is None:
        parts = [graph.ints([0]), target]
        longer = graph.emit("Concat", parts, axis=0) if given is None else graph.ints([0, *given])
        graph.copy(node, [graph.lifted(data).name, longer])
        return graph.outputs(node, LIFTED)
    graph.copy(node, [data.name, graph.ints(new)])
    return graph.outputs(node, spot)


def _landing(data: Value, wanted: Shape) -> int | None:
    """The axis of the result that holds the batch, if the result has one of length 1 at the right place."""
    if data.batch is None or data.batch == LIFTED:
        return None
    before = data.shape[: data.batch]
    if None in before:
        return None
    count, fits = prod(int(side or 0) for side in before), []
    running = 1
    for axis, side in enumerate(wanted):
        if running == count and side == 1:
            fits.append(axis)
        if side is None:
            break
        running *= side
    return data.batch if data.batch in fits else next(iter(fits), None)


def _target(batch: int, spot: int, wanted: Shape, given: Sequence[int] | None) -> list[int] | None:
    """A target with the batch at its place, or `None` where not enough is known."""
    free = 0 if batch == spot else -1
    if None not in wanted:
        return [free if axis == spot else int(side or 0) for axis, side in enumerate(wanted)]
    if given is None or (free == -1 and -1 in given):
        return None
    return [free if axis == spot else side for axis, side in enumerate(given)]


def flatten(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Two axes of any number."""
    data = values[0]
    axis = data.axis(int_attribute(node, "axis", 1))
    if data.batch == 0 and axis >= 1 and all(side == 1 for side in data.shape[1:axis]):
        graph.copy(node, [data.name])
        return graph.outputs(node, 0)
    rows, columns = graph.shape_of(node.output[0])
    if rows is None and columns is None:
        raise refuse(node, "makes rows of unknown number")
    sides = [-1 if rows is None else rows, -1 if columns is None else columns]
    inputs = [graph.lifted(data).name, graph.ints([0, *sides])]
    graph.nodes.append(onnx.helper.make_node("Reshape", inputs, [node.output[0]]))
    return graph.outputs(node, LIFTED)


def transpose(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Move the batch along."""
    data = values[0]
    order = ints_attribute(node, "perm") or list(reversed(range(data.rank)))
    if data.batch == LIFTED:
        graph.copy(node, [data.name], perm=[0, *(axis + 1 for axis in order)])
        return graph.outputs(node, LIFTED)
    graph.copy(node, [data.name], perm=order)
    return graph.outputs(node, order.index(data.batch or 0))


def squeeze(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Take axes away; where the batch's is among them, it goes to the front."""
    data = values[0]
    axes = _axes(graph, node, values)
    if axes is None:
        if None in data.shape:
            raise refuse(node, "takes away axes of unknown length")
        axes = [axis for axis, side in enumerate(data.shape) if side == 1]
    if data.batch == LIFTED or data.batch in axes:
        graph.copy_with_axes(node, graph.lifted(data).name, [axis + 1 for axis in axes])
        return graph.outputs(node, LIFTED)
    graph.copy_with_axes(node, data.name, axes)
    spot = data.batch or 0
    return graph.outputs(node, spot - sum(axis < spot for axis in axes))


def unsqueeze(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Add axes."""
    data, rank = values[0], len(graph.shape_of(node.output[0]))
    given = ints_attribute(node, "axes")
    if given is None and len(values) > 1:
        given = graph.known(values[1].name)
    if given is None:
        raise refuse(node, "has axes that only running it tells")
    axes = sorted(axis + rank if axis < 0 else axis for axis in given)
    if data.batch == LIFTED:
        graph.copy_with_axes(node, data.name, [axis + 1 for axis in axes])
        return graph.outputs(node, LIFTED)
    graph.copy_with_axes(node, data.name, axes)
    old = [axis for axis in range(rank) if axis not in axes]
    return graph.outputs(node, old[data.batch or 0])


def reduction(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Sum, mean and the like over axes, never over the batch's."""
    data = values[0]
    if int_attribute(node, "noop_with_empty_axes", 0):
        raise refuse(node, "may reduce nothing")
    axes = _axes(graph, node, values)
    axes = list(range(data.rank)) if axes is None else axes
    if data.batch == LIFTED or data.batch in axes:
        lifted = graph.lifted(data).name
        graph.copy_with_axes(node, lifted, [axis + 1 for axis in axes])
        return graph.outputs(node, LIFTED)
    graph.copy_with_axes(node, data.name, axes)
    spot = data.batch or 0
    kept = int_attribute(node, "keepdims", 1)
    return graph.outputs(node, spot if kept else spot - sum(axis < spot for axis in axes))


def _axes(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[int] | None:
    """The axes of a node, counted from the front; `None` where it names none."""
    given = ints_attribute(node, "axes")
    if given is None and len(values) > 1 and values[1].name:
        given = graph.known(values[1].name)
        if given is None:
            raise refuse(node, "has axes that only running it tells")
    return None if given is None else sorted(values[0].axis(axis) for axis in given)


def along_axis(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Operators along one axis, such as Split, TopK and the newer Softmax."""
    data, default = values[0], _DEFAULT_AXES.get(node.op_type, -1)
    axis = data.axis(int_attribute(node, "axis", default))
    is_flat = node.op_type in _FLATTENING and graph.opset < _SOFTMAX_HAS_ONE_AXIS
    if is_flat and "axis" not in attributes_of(node):
        axis = data.axis(1)
    covers = is_flat or node.op_type == "LayerNormalization"
    spot = data.batch or 0
    if any(value.batch is not None for value in values[1:]):
        raise refuse(node, "has more than one input that depends on the picture")
    rest = [value.name for value in values[1:]]
    if data.batch == LIFTED or spot == axis or (covers and spot > axis):
        graph.copy(node, [graph.lifted(data).name, *rest], axis=axis + 1)
        return graph.outputs(node, LIFTED)
    graph.copy(node, [data.name, *rest], axis=axis)
    return graph.outputs(node, spot if node.op_type not in _DROPPING or _keeps(node) else
                         spot - (axis < spot))  # fmt: skip


def _keeps(node: onnx.NodeProto) -> bool:
    return bool(int_attribute(node, "keepdims", 1))


def concat(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """Join values along an axis; those that are the same for all pictures are repeated."""
    axis = values[0].axis(int_attribute(node, "axis", 0))
    spots = {value.batch for value in values if value.batch is not None}
    (spot,) = spots if len(spots) == 1 else (LIFTED,)
    fits = all(value.batch is not None or value.shape[spot] == 1 for value in values)
    if spot in (LIFTED, axis) or not fits:
        graph.copy(node, [graph.lifted(value).name for value in values], axis=axis + 1)
        return graph.outputs(node, LIFTED)
    spread = [graph.spread(v, spot) if v.batch is None else v for v in values]
    graph.copy(node, [value.name for value in spread], axis=axis)
    return graph.outputs(node, spot)


def shape(graph: BatchGraph, node: onnx.NodeProto, values: Sequence[Value]) -> list[Value]:
    """The shape as it was: whoever computes with it knows of no batch, and its target gets one by its own rule."""
    data, output = values[0], node.output[0]
    first = data.axis(int_attribute(node, "start", 0))
    last = data.axis(int_attribute(node, "end", data.rank))
    whole = graph.emit("Shape", [data.name])
    skipped = 1 if data.batch == LIFTED else 0
    parts = [
        graph.ints([1])
        if axis == data.batch
        else graph.ints([side])
        if side is not None
        else graph.emit("Gather", [whole, graph.ints([axis + skipped])], axis=0)
        for axis, side in list(enumerate(data.shape))[first:last]
    ]
    graph.nodes.append(onnx.helper.make_node("Concat", parts, [output], axis=0))
    return graph.outputs(node, None)


_ELEMENTWISE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift Cast CastLike Ceil Celu Clip Cos Cosh Div Dropout Elu Equal "
    "Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual "
    "Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
    "Softplus Softsign Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor"
)
_ROW_WISE = (
    "AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalLpPool GlobalMaxPool "
    "GridSample GroupNormalization InstanceNormalization LRN LpPool MaxPool SpaceToDepth Upsample"
)
_REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare"
)
_ALONG_AXIS = (
    "ArgMax ArgMin Hardmax LayerNormalization LogSoftmax LpNormalization Softmax Split TopK"
)
_DEFAULT_AXES: Mapping[str, int] = MappingProxyType({"ArgMax": 0, "ArgMin": 0, "Split": 0})
_FLATTENING = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
_DROPPING = frozenset({"ArgMax", "ArgMin"})

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(_ELEMENTWISE.split(), elementwise),
        **dict.fromkeys(_ROW_WISE.split(), row_wise),
        **dict.fromkeys(_REDUCTIONS.split(), reduction),
        **dict.fromkeys(_ALONG_AXIS.split(), along_axis),
        "Concat": concat,
        "Flatten": flatten,
        "Reshape": reshape,
        "Resize": resize,
        "Shape": shape,
        "Squeeze": squeeze,
        "Transpose": transpose,
        "Unsqueeze": unsqueeze,
    }
)
"""By operator; `batch_products` has the rest."""

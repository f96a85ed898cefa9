"""What rewriting a network to a free batch needs to know of it, and how it writes the new one.

Every value of the original graph has a shape as it is for a batch of one. In the new graph it is in one of three forms:

- not batched: it does not depend on the input, and is as it was;
- plain: one of its axes, of length 1 before, is the batch now;
- lifted: a new axis for the batch stands in front of all that it had.

Both batched forms can be turned into each other, so that each operator may ask for the form that suits it. The idea is
that of a vectorizing map over programs; plain is there since convolutions have an axis for the batch anyway.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from app.core.errors import ConversionError

LIFTED = -1
"""The `batch` of a value with a new axis in front."""

Shape = tuple[int | None, ...]
Array = NDArray[np.generic]
Attribute = int | float | str | Sequence[int] | Sequence[float]

_AXES_BECAME_INPUT = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
_REDUCTIONS_AXES_BECAME_INPUT = 18


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the original graph, and how the new graph has it.

    Attributes:
        name: In the new graph; empty for an optional input that is left out.
        shape: In the original graph, for a batch of one; `None` for a length that only running it tells.
        batch: `None` when not batched, the axis when plain, or `LIFTED`.
    """

    name: str
    shape: Shape
    batch: int | None = None

    @property
    def rank(self) -> int:
        """Axes in the original graph."""
        return len(self.shape)

    def axis(self, axis: int) -> int:
        """An axis counted from the front."""
        return axis + self.rank if axis < 0 else axis


class BatchGraph:
    """The original graph's facts and the new graph's nodes.

    Args:
        model: The original, with inferred shapes.
        batched_input: An input whose first axis is the batch.
    """

    def __init__(self, model: onnx.ModelProto, batched_input: str) -> None:
        self.opset = max(
            (o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0
        )
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._shapes = _declared_shapes(model.graph)
        self._known = _small_constants(model.graph)
        self._taken = _names_of(model.graph)
        self._lifted: dict[str, str] = {}
        self._batch_size: str | None = None
        self._batched_input = batched_input

    def shape_of(self, name: str) -> Shape:
        """The shape of a value of the original graph.

        Raises:
            ConversionError: Not even its number of axes is known.
        """
        if name not in self._shapes:
            raise ConversionError(f"batch: the shape of {name!r} is not known")
        return self._shapes[name]

    def known(self, name: str) -> list[int] | None:
        """The numbers of a constant of at most 64 whole numbers, or `None`."""
        return self._known.get(name)

    # ---- writing -------------------------------------------------------------------------------------------------

    def ints(self, values: Iterable[int]) -> str:
        """A constant vector of int64; returns its name."""
        name = self.fresh("batch_ints")
        self.constants.append(numpy_helper.from_array(np.array(list(values), np.int64), name))
        return name

    def emit(self, op_type: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Add a node of our own with one output; returns the output's name."""
        output = self.fresh(f"batch_{op_type.lower()}")
        node = helper.make_node(op_type, list(inputs), [output], output)
        node.attribute.extend(helper.make_attribute(*item) for item in sorted(attributes.items()))
        self.nodes.append(node)
        return output

    def copy(self, node: onnx.NodeProto, inputs: Sequence[str], **attributes: Attribute) -> None:
        """Add a node of the original with other inputs, and some other attributes."""
        new = onnx.NodeProto()
        new.CopyFrom(node)
        del new.input[:]
        new.input.extend(inputs)
        for name, value in attributes.items():
            kept = [item for item in new.attribute if item.name != name]
            del new.attribute[:]
            new.attribute.extend([*kept, helper.make_attribute(name, value)])
        self.nodes.append(new)

    def copy_with_axes(
        self, node: onnx.NodeProto, data: str, axes: Sequence[int], **attributes: Attribute
    ) -> None:
        """Add a node of the original whose axes are an attribute or its second input, as its version has it."""
        if self._has_axes_input(node.op_type):
            self.copy(node, [data, self.ints(axes)], **attributes)
        else:
            self.copy(node, [data], axes=list(axes), **attributes)

    def _has_axes_input(self, op_type: str) -> bool:
        return self.opset >= _AXES_BECAME_INPUT.get(op_type, _REDUCTIONS_AXES_BECAME_INPUT)

    def squeezed(self, name: str, axes: Sequence[int]) -> str:
        """Without these axes of length 1."""
        return self._with_axes("Squeeze", name, axes)

    def unsqueezed(self, name: str, axes: Sequence[int]) -> str:
        """With axes of length 1 at these places of the result."""
        return self._with_axes("Unsqueeze", name, axes) if axes else name

    def _with_axes(self, op_type: str, name: str, axes: Sequence[int]) -> str:
        if self._has_axes_input(op_type):
            return self.emit(op_type, [name, self.ints(axes)])
        return self.emit(op_type, [name], axes=list(axes))

    def batch_size(self) -> str:
        """Name of a vector that holds the size of the batch."""
        if self._batch_size is None:
            shape = self.emit("Shape", [self._batched_input])
            self._batch_size = self.emit("Gather", [shape, self.ints([0])], axis=0)
        return self._batch_size

    # ---- forms ---------------------------------------------------------------------------------------------------

    def lifted(self, value: Value) -> Value:
        """The same value with the batch in front of all it has; one that is not batched is repeated."""
        if value.batch == LIFTED:
            return value
        if value.name not in self._lifted:
            self._lifted[value.name] = self._lift(value)
        return replace(value, name=self._lifted[value.name], batch=LIFTED)

    def _lift(self, value: Value) -> str:
        name, rank = value.name, value.rank
        if value.batch is None:
            shape = [self.batch_size(), self.ints([1] * rank)] if rank else [self.batch_size()]
            target = self.emit("Concat", shape, axis=0) if rank else shape[0]
            return self.emit("Expand", [self.unsqueezed(name, [0]), target])
        if value.batch:
            others = [axis for axis in range(rank) if axis != value.batch]
            name = self.emit("Transpose", [name], perm=[value.batch, *others])
        return self.unsqueezed(name, [value.batch + 1])

    def in_front(self, value: Value) -> Value | None:
        """The same value with its own first axis as the batch, or `None` where that axis is longer than 1."""
        if value.batch == 0:
            return value
        if not value.rank or value.shape[0] != 1:
            return None
        return replace(value, name=self.squeezed(self.lifted(value).name, [1]), batch=0)

    def spread(self, value: Value, axis: int) -> Value:
        """A value that is not batched, repeated along an axis of length 1."""
        ones = [self.ints([1] * n) for n in (axis, value.rank - axis - 1)]
        parts = [ones[0], self.batch_size(), ones[1]]
        target = self.emit("Concat", parts, axis=0)
        return replace(value, name=self.emit("Expand", [value.name, target]), batch=axis)

    def aligned(self, value: Value, rank: int) -> str:
        """A lifted value that broadcasts as the original does with values of this many axes."""
        lifted = self.lifted(value)
        return self.unsqueezed(lifted.name, list(range(1, 1 + rank - value.rank)))

    def outputs(self, node: onnx.NodeProto, batch: int | None) -> list[Value]:
        """The values that a copied node makes, all in one form."""
        return [Value(name, self.shape_of(name), batch) for name in node.output if name]

    def rename(self, old: str) -> str:
        """Give a value of the new graph another name, wherever it is used; returns it."""
        new = self.fresh(f"{old}.inner")
        for node in self.nodes:
            for names in (node.input, node.output):
                for index, name in enumerate(names):
                    if name == old:
                        names[index] = new
        return new

    def fresh(self, hint: str) -> str:
        """A name that nothing has."""
        name, count = hint, 0
        while name in self._taken:
            count += 1
            name = f"{hint}.{count}"
        self._taken.add(name)
        return name


def attributes_of(node: onnx.NodeProto) -> Mapping[str, object]:
    """A node's attributes by name."""
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def int_attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """A whole number among a node's attributes."""
    value = attributes_of(node).get(name, default)
    return value if isinstance(value, int) else default


def ints_attribute(node: onnx.NodeProto, name: str) -> list[int] | None:
    """A list of whole numbers among a node's attributes, or `None`."""
    value = attributes_of(node).get(name)
    return [int(each) for each in value] if isinstance(value, Iterable) else None


def _declared_shapes(graph: onnx.GraphProto) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {item.name: tuple(item.dims) for item in graph.initializer}
    for item in (*graph.value_info, *graph.input, *graph.output):
        tensor = item.type.tensor_type
        if tensor.HasField("shape"):
            shapes[item.name] = tuple(
                side.dim_value if side.HasField("dim_value") else None for side in tensor.shape.dim
            )
    return shapes


def _small_constants(graph: onnx.GraphProto) -> dict[str, list[int]]:
    tensors = [(item.name, item) for item in graph.initializer]
    tensors += [
        (node.output[0], item.t)
        for node in graph.node
        if node.op_type == "Constant"
        for item in node.attribute
        if item.name == "value"
    ]
    whole = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
    return {
        name: np.atleast_1d(numpy_helper.to_array(tensor)).ravel().tolist()
        for name, tensor in tensors
        if tensor.data_type in whole and int(np.prod(tensor.dims)) <= 64
    }


def _names_of(graph: onnx.GraphProto) -> set[str]:
    names = {item.name for item in (*graph.input, *graph.output, *graph.initializer)}
    for node in graph.node:
        names.update((node.name, *node.input, *node.output))
    return names

"""ONNX graphs written node by node, and the one way in which they become bytes.

The manifest pins the hash of every converted file, so the same graph always gives the same bytes:
names are counted, constants are stored raw, attributes are sorted, and nothing says when or where.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from app.core.errors import ConversionError

OPSET = 17
"""Newest operator set before the reductions moved their axes into inputs; all providers know it."""

IR_VERSION = 8
"""File format that belongs to operator set 17."""

Attribute = int | float | str | Sequence[int] | Sequence[float]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a graph.

    Attributes:
        name: Name of the value.
        shape: Lengths of the axes; a word names a free one.
        kind: ONNX's number of its type; float32 without it.
    """

    name: str
    shape: tuple[int | str, ...]
    kind: int = TensorProto.FLOAT

    def to_proto(self) -> onnx.ValueInfoProto:
        """The declaration as ONNX writes it."""
        return helper.make_tensor_value_info(self.name, self.kind, list(self.shape))


class GraphBuilder:
    """Collects nodes and constants in the order in which they are added.

    Args:
        reserved: Names that nothing inside the graph may get: those of its inputs and outputs.
    """

    def __init__(self, *reserved: str) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._uses = Counter(reserved)

    def constant(self, array: NDArray[np.generic], hint: str = "constant") -> str:
        """Store an array, as it is.

        Args:
            array: Any shape; its type is kept.
            hint: Beginning of the name.

        Returns:
            The value's name.
        """
        name = self._unique(hint)
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def floats(self, values: object, hint: str = "floats") -> str:
        """Store numbers, a nested list or an array as float32; returns the value's name."""
        return self.constant(np.array(values, np.float32), hint)

    def ints(self, values: object, hint: str = "ints") -> str:
        """Store a shape, indices or axes as int64; returns the value's name."""
        return self.constant(np.array(values, np.int64), hint)

    def add(
        self, op_type: str, inputs: Sequence[str], *, hint: str = "", **attributes: Attribute
    ) -> str:
        """Append a node with one output.

        Args:
            op_type: Name of the ONNX operator.
            inputs: Names of values; an empty name leaves an optional input out.
            hint: Beginning of the output's name; the operator's name without it.
            attributes: As the operator defines them.

        Returns:
            Name of the output.
        """
        output = self._unique(hint or op_type.lower())
        self._append(helper.make_node(op_type, list(inputs), [output], output), attributes)
        return output

    def add_output(
        self, name: str, *, op_type: str, inputs: Sequence[str], **attributes: Attribute
    ) -> None:
        """Append a node whose output is an output of the graph, under a reserved name."""
        self._append(helper.make_node(op_type, list(inputs), [name], name), attributes)

    def build(self, name: str, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> bytes:
        """Assemble, check and serialize the model.

        Raises:
            ConversionError: The ONNX checker refuses the graph.
        """
        graph = helper.make_graph(
            self._nodes,
            name,
            [port.to_proto() for port in inputs],
            [port.to_proto() for port in outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return serialize(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION))

    def _append(self, node: onnx.NodeProto, attributes: Mapping[str, Attribute]) -> None:
        for key, value in sorted(attributes.items()):
            node.attribute.append(helper.make_attribute(key, value))
        self._nodes.append(node)

    def _unique(self, hint: str) -> str:
        name = hint
        while self._uses[name]:
            self._uses[hint] += 1
            name = f"{hint}.{self._uses[hint]}"
        self._uses[name] += 1
        return name


def serialize(model: onnx.ModelProto) -> bytes:
    """Check a model and write it, the same bytes each time.

    Raises:
        ConversionError: The ONNX checker refuses the model.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ConversionError(
            f"{model.graph.name}: the converted graph is no valid ONNX: {error}"
        ) from error
    return bytes(model.SerializeToString(deterministic=True))

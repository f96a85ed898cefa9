"""What grows while a tflite network is rewritten: the ONNX graph, and which of its values each tensor is.

Pictures are `(1, H, W, C)` in the file and `(N, C, H, W)` in the ONNX graph; tensors of any other rank keep their
axes, with the first one free.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.graph import GraphBuilder
from app.inference.convert.tflite_file import Network, Operator

PICTURE_RANK = 4

Lower = Callable[["Lowering", Operator], str]
"""Appends an operator's nodes and returns the value of its output."""


class Lowering:
    """The graph under construction, and the tensors that are known so far."""

    def __init__(self, network: Network, graph: GraphBuilder, values: Mapping[int, str]) -> None:
        self.graph = graph
        self._network = network
        self._values = dict(values)
        self._constants = {
            index: tensor.constant
            for index, tensor in enumerate(network.tensors)
            if tensor.constant is not None
        }

    def name(self, index: int) -> str:
        """The tensor's name in the file."""
        return self._network.tensors[index].name

    def shape(self, index: int) -> tuple[int, ...]:
        """The tensor's shape in the file."""
        return self._network.tensors[index].shape

    def set_value(self, index: int, value: str) -> None:
        """Say which ONNX value a tensor is."""
        self._values[index] = value

    def set_constant(self, index: int, numbers: NDArray[np.generic]) -> None:
        """Say what a tensor always holds, in the file's axes."""
        self._constants[index] = numbers

    def value(self, operator: Operator, position: int) -> str:
        """The ONNX value of an operator's input.

        A constant is stored for elementwise use against a tensor of the rank of the operator's output.

        Raises:
            ConversionError: The tensor is not written yet.
        """
        index = operator.inputs[position]
        if index in self._constants:
            rank = len(self.shape(operator.outputs[0]))
            numbers = _channels_first(self._constants[index].astype(np.float32), rank)
            return self.graph.constant(numbers, self.name(index))
        return self.written(index)

    def written(self, index: int) -> str:
        """The ONNX value of a tensor that an operator wrote.

        Raises:
            ConversionError: None did.
        """
        if index not in self._values:
            raise ConversionError(f"tflite tensor {self.name(index)!r}: read before it is written")
        return self._values[index]

    def constant(self, operator: Operator, position: int) -> NDArray[np.generic]:
        """The numbers of an operator's input that has to be constant, in the file's axes.

        Raises:
            ConversionError: It is not.
        """
        index = operator.inputs[position]
        if index not in self._constants:
            raise ConversionError(f"{operator}: {self.name(index)!r} has to be a constant")
        return self._constants[index]

    def picture_shape(self, operator: Operator) -> tuple[int, int, int]:
        """Height, width and channels of an operator's first input.

        Raises:
            ConversionError: It is no picture.
        """
        shape = self.shape(operator.inputs[0])
        if len(shape) != PICTURE_RANK:
            raise ConversionError(f"{operator}: input has shape {shape}, wanted (1, H, W, C)")
        return shape[1], shape[2], shape[3]


def _channels_first(numbers: NDArray[np.float32], rank: int) -> NDArray[np.float32]:
    if rank != PICTURE_RANK:
        return numbers
    missing = (1,) * (PICTURE_RANK - numbers.ndim)
    return numbers.reshape(missing + numbers.shape).transpose(0, 3, 1, 2)

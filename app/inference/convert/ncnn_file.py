"""Reads ncnn's two files: the layers in text (`.param`), their weights in binary (`.bin`).

Source: the file format as ncnn's documentation states it ("param and model file structure"); BSD-3-Clause.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ConversionError

_MAGIC = "7767517"
_ARRAY_KEY = -23300
"""Key of array 0; the key of array k is this minus k."""

_FP16_TAG = 0x01306B47
_FP32_TAG = 0
_ALIGNMENT_BYTES = 4

Parameter = int | float | tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """One line of a `.param` file.

    Attributes:
        kind: ncnn's name of the operator.
        name: The layer's own name.
        inputs: Names of the blobs it reads.
        outputs: Names of the blobs it writes.
        parameters: By number, as the operator defines them; missing ones have the operator's default.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Mapping[int, Parameter]

    def integer(self, key: int, default: int) -> int:
        """A whole number.

        Raises:
            ConversionError: The parameter is an array or a fraction.
        """
        value = self.parameters.get(key, default)
        if not isinstance(value, int):
            raise ConversionError(f"{self}: parameter {key} is {value}, wanted a whole number")
        return value

    def number(self, key: int, default: float) -> float:
        """A number.

        Raises:
            ConversionError: The parameter is an array.
        """
        value = self.parameters.get(key, default)
        if isinstance(value, tuple):
            raise ConversionError(f"{self}: parameter {key} is {value}, wanted one number")
        return float(value)

    def array(self, key: int) -> tuple[float, ...]:
        """An array; empty where the layer has none.

        Raises:
            ConversionError: The parameter is a single number.
        """
        value = self.parameters.get(key, ())
        if not isinstance(value, tuple):
            raise ConversionError(f"{self}: parameter {key} is {value}, wanted an array")
        return value

    def refuse_others(self, *known: int) -> None:
        """Refuse parameters whose meaning the caller does not carry over.

        Raises:
            ConversionError: Naming the layer and the parameter.
        """
        for key in self.parameters:
            if key not in known:
                raise ConversionError(f"{self}: parameter {key} is not supported")

    def __str__(self) -> str:
        return f"ncnn layer {self.kind} {self.name!r}"


def parse_param(text: str) -> tuple[Layer, ...]:
    """Read the text of a `.param` file.

    Returns:
        The layers in the order in which they run.

    Raises:
        ConversionError: It is no such text, or a line of it is damaged.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or lines[0] != [_MAGIC]:
        raise ConversionError(f"ncnn param file: its first line is not {_MAGIC}; fetch it again")
    try:
        layers = tuple(_parse_layer(words) for words in lines[2:])
        wanted = int(lines[1][0])
    except (IndexError, ValueError) as error:
        raise ConversionError(f"ncnn param file: a line is damaged: {error}") from error
    if len(layers) != wanted:
        raise ConversionError(f"ncnn param file: got {len(layers)} layers, wanted {wanted}")
    return layers


def _parse_layer(words: list[str]) -> Layer:
    kind, name, n_inputs, n_outputs = words[0], words[1], int(words[2]), int(words[3])
    blobs, pairs = words[4 : 4 + n_inputs + n_outputs], words[4 + n_inputs + n_outputs :]
    if len(blobs) != n_inputs + n_outputs:
        raise ValueError(f"layer {name!r} names {len(blobs)} blobs")
    return Layer(
        kind=kind,
        name=name,
        inputs=tuple(blobs[:n_inputs]),
        outputs=tuple(blobs[n_inputs:]),
        parameters=dict(_parse_parameter(pair) for pair in pairs),
    )


def _parse_parameter(pair: str) -> tuple[int, Parameter]:
    key_text, value_text = pair.split("=", 1)
    key = int(key_text)
    if key > _ARRAY_KEY:
        return key, _parse_number(value_text)
    count, *values = value_text.split(",")
    if len(values) != int(count):
        raise ValueError(f"array {pair!r} has {len(values)} values")
    return _ARRAY_KEY - key, tuple(float(value) for value in values)


def _parse_number(text: str) -> int | float:
    is_whole = text.lstrip("-").isdigit()
    return int(text) if is_whole else float(text)


class WeightReader:
    """Takes the weights out of a `.bin` file, in the order of the layers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def tagged(self, count: int) -> NDArray[np.float32]:
        """Weights that carry a tag of their storage type, as ncnn stores kernels.

        Args:
            count: How many numbers.

        Returns:
            `(count,)` float32; half precision is widened.

        Raises:
            ConversionError: The storage type is another one, or the file ends too early.
        """
        tag = int(self._take(np.dtype("<u4"), 1)[0])
        if tag == _FP32_TAG:
            return self.plain(count)
        if tag != _FP16_TAG:
            raise ConversionError(
                f"ncnn weights: storage type 0x{tag:08x} is not supported, wanted fp32 or fp16"
            )
        halves = self._take(np.dtype("<f2"), count)
        self._offset += -self._offset % _ALIGNMENT_BYTES
        return halves.astype(np.float32)

    def plain(self, count: int) -> NDArray[np.float32]:
        """Weights without a tag, as ncnn stores biases and slopes: `(count,)` float32.

        Raises:
            ConversionError: The file ends too early.
        """
        return self._take(np.dtype("<f4"), count).astype(np.float32)

    def finish(self) -> None:
        """Say that all layers are read.

        Raises:
            ConversionError: The file goes on, so it belongs to other layers.
        """
        if self._offset != len(self._data):
            raise ConversionError(
                f"ncnn weights: the layers use {self._offset} of {len(self._data)} bytes;"
                " the two files do not belong together"
            )

    def _take(self, dtype: np.dtype[np.generic], count: int) -> NDArray[np.generic]:
        end = self._offset + count * dtype.itemsize
        if count < 0 or end > len(self._data):
            raise ConversionError(
                f"ncnn weights: got {len(self._data)} bytes, wanted at least {end}; fetch them again"
            )
        taken = np.frombuffer(self._data, dtype, count, self._offset)
        self._offset = end
        return taken

"""Reads a `.tflite` file into plain records: tensors, operators and their options.

Source: the TensorFlow Lite schema, as the `tflite` package gives it; Apache-2.0.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from app.core.errors import ConversionError

_IDENTIFIER = b"TFL3"
_IDENTIFIER_AT = slice(4, 8)

Option = int | float | Sequence[int]

_KINDS: Mapping[int, str] = MappingProxyType(
    {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}
)
_DTYPES: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {
        tflite.TensorType.FLOAT32: np.dtype("<f4"),
        tflite.TensorType.FLOAT16: np.dtype("<f2"),
        tflite.TensorType.INT32: np.dtype("<i4"),
        tflite.TensorType.INT64: np.dtype("<i8"),
    }
)
_CONVOLUTION = (
    "Padding",
    "StrideH",
    "StrideW",
    "DilationHFactor",
    "DilationWFactor",
    "FusedActivationFunction",
)
_POOL = (
    "Padding",
    "StrideH",
    "StrideW",
    "FilterHeight",
    "FilterWidth",
    "FusedActivationFunction",
)
_MASKS = ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask")

_OPTIONS: Mapping[str, tuple[Any, tuple[str, ...]]] = MappingProxyType(
    {
        "CONV_2D": (tflite.Conv2DOptions, _CONVOLUTION),
        "DEPTHWISE_CONV_2D": (tflite.DepthwiseConv2DOptions, _CONVOLUTION),
        "ADD": (tflite.AddOptions, ("FusedActivationFunction",)),
        "MUL": (tflite.MulOptions, ("FusedActivationFunction",)),
        "MAX_POOL_2D": (tflite.Pool2DOptions, _POOL),
        "STRIDED_SLICE": (tflite.StridedSliceOptions, _MASKS),
    }
)
"""Which options of which operator we read, under the schema's own names."""


_DAMAGE = (struct.error, LookupError, ValueError, TypeError, AttributeError)
"""What the schema's readers run into when offsets point nowhere."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tensor:
    """One value of the graph.

    Attributes:
        name: As the file has it.
        shape: As the file has it: pictures as `(1, H, W, C)`.
        constant: The numbers, where the file holds them.
    """

    name: str
    shape: tuple[int, ...]
    constant: NDArray[np.generic] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """One step of the graph.

    Attributes:
        kind: The schema's name of it, or the name that a custom operator carries.
        version: Custom operators change their meaning with it.
        inputs: Positions of tensors.
        outputs: Positions of tensors.
        options: By name; the schema's for standard operators, the file's own for custom ones.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Option]
    version: int = 1

    def integer(self, key: str) -> int:
        """A whole number.

        Raises:
            ConversionError: It is missing or something else.
        """
        value = self.options.get(key)
        if not isinstance(value, int):
            raise ConversionError(f"{self}: option {key} is {value}, wanted a whole number")
        return value

    def number(self, key: str) -> float:
        """A number.

        Raises:
            ConversionError: It is missing or something else.
        """
        value = self.options.get(key)
        if not isinstance(value, int | float):
            raise ConversionError(f"{self}: option {key} is {value}, wanted a number")
        return float(value)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers.

        Raises:
            ConversionError: It is missing or something else.
        """
        value = self.options.get(key)
        if not isinstance(value, Sequence):
            raise ConversionError(f"{self}: option {key} is {value}, wanted a list")
        return tuple(int(item) for item in value)

    def __str__(self) -> str:
        return f"tflite operator {self.kind}"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Network:
    """A whole file.

    Attributes:
        tensors: Operators speak of them by position.
        operators: In the order in which they run.
        inputs: Positions of tensors.
        outputs: Positions of tensors.
    """

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_network(data: bytes) -> Network:
    """Read the one graph of a `.tflite` file.

    Raises:
        ConversionError: It is no such file, it is damaged, or it holds several graphs.
    """
    if data[_IDENTIFIER_AT] != _IDENTIFIER:
        raise ConversionError(
            f"tflite file: bytes 4 to 8 are {data[_IDENTIFIER_AT]!r}, wanted {_IDENTIFIER!r};"
            " fetch it again"
        )
    try:
        return _read(tflite.Model.GetRootAs(data, 0))
    except _DAMAGE as error:
        raise ConversionError(f"tflite file: damaged ({error}); fetch it again") from error


def _read(model: Any) -> Network:
    if model.SubgraphsLength() != 1:
        raise ConversionError(f"tflite file: got {model.SubgraphsLength()} graphs, wanted one")
    graph = model.Subgraphs(0)
    return Network(
        tensors=tuple(_tensor(model, graph.Tensors(i)) for i in range(graph.TensorsLength())),
        operators=tuple(
            _operator(model, graph.Operators(i)) for i in range(graph.OperatorsLength())
        ),
        inputs=_indices(graph.InputsAsNumpy()),
        outputs=_indices(graph.OutputsAsNumpy()),
    )


def _tensor(model: Any, tensor: Any) -> Tensor:
    name = tensor.Name().decode()
    shape = () if tensor.ShapeIsNone() else _indices(tensor.ShapeAsNumpy())
    buffer = model.Buffers(tensor.Buffer())
    if buffer.DataIsNone() or buffer.DataLength() == 0:
        return Tensor(name=name, shape=shape)
    if tensor.Type() not in _DTYPES:
        raise ConversionError(
            f"tflite tensor {name!r}: constants of type {tensor.Type()} are not supported;"
            " wanted float32, float16, int32 or int64"
        )
    numbers = np.frombuffer(buffer.DataAsNumpy().tobytes(), _DTYPES[tensor.Type()])
    return Tensor(name=name, shape=shape, constant=numbers.reshape(shape))


def _operator(model: Any, operator: Any) -> Operator:
    code = model.OperatorCodes(operator.OpcodeIndex())
    # Codes below 127 stand in the older field too, which files from before it have alone.
    builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    is_custom = builtin == tflite.BuiltinOperator.CUSTOM
    kind = code.CustomCode().decode() if is_custom else _KINDS.get(builtin, f"number {builtin}")
    return Operator(
        kind=kind,
        version=code.Version(),
        inputs=_indices(operator.InputsAsNumpy()),
        outputs=_indices(operator.OutputsAsNumpy()),
        options=_custom_options(operator) if is_custom else _options(kind, operator),
    )


def _options(kind: str, operator: Any) -> Mapping[str, Option]:
    if kind not in _OPTIONS or operator.BuiltinOptions() is None:
        return {}
    build, fields = _OPTIONS[kind]
    union, table = operator.BuiltinOptions(), build()
    table.Init(union.Bytes, union.Pos)
    return {field: int(getattr(table, field)()) for field in fields}


def _custom_options(operator: Any) -> Mapping[str, Option]:
    if operator.CustomOptionsIsNone() or operator.CustomOptionsLength() == 0:
        return {}
    options = flexbuffers.Loads(operator.CustomOptionsAsNumpy().tobytes())
    return dict(options) if isinstance(options, dict) else {}


def _indices(array: NDArray[np.generic]) -> tuple[int, ...]:
    return tuple(int(item) for item in array)

"""The standard tflite operators that picture networks of MediaPipe use, as ONNX nodes.

Source: the meaning of each operator, its padding and its fused activations as TensorFlow Lite documents them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import tflite
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.tflite_file import Operator
from app.inference.convert.tflite_lowering import PICTURE_RANK, Lower, Lowering

_RELU6_TOP = 6.0


def dequantize(lowering: Lowering, operator: Operator) -> None:
    """Widen a half-precision constant; nothing is left to do at run time.

    Raises:
        ConversionError: The input is no constant, or it is quantized to integers.
    """
    numbers = lowering.constant(operator, 0)
    if numbers.dtype != np.float16:
        raise ConversionError(f"{operator}: constants of {numbers.dtype} are not supported")
    lowering.set_constant(operator.outputs[0], numbers.astype(np.float32))


def _convolution(lowering: Lowering, operator: Operator) -> str:
    kernel = lowering.constant(operator, 1).astype(np.float32)
    return _convolve(lowering, operator, kernel=kernel.transpose(0, 3, 1, 2), groups=1)


def _depthwise_convolution(lowering: Lowering, operator: Operator) -> str:
    kernel = lowering.constant(operator, 1).astype(np.float32)
    channels = lowering.picture_shape(operator)[2]
    return _convolve(lowering, operator, kernel=kernel.transpose(3, 0, 1, 2), groups=channels)


def _convolve(
    lowering: Lowering, operator: Operator, *, kernel: NDArray[np.float32], groups: int
) -> str:
    dilations = [operator.integer("DilationHFactor"), operator.integer("DilationWFactor")]
    name = lowering.name(operator.outputs[0])
    bias = lowering.constant(operator, 2).astype(np.float32)
    convolved = lowering.graph.add(
        "Conv",
        [
            lowering.value(operator, 0),
            lowering.graph.constant(kernel, f"{name}.weight"),
            lowering.graph.constant(bias, f"{name}.bias"),
        ],
        hint=name,
        kernel_shape=kernel.shape[2:],
        dilations=dilations,
        strides=_strides(operator),
        pads=_pads(
            lowering, operator, window=(kernel.shape[2], kernel.shape[3]), dilations=dilations
        ),
        group=groups,
    )
    return _activate(lowering, operator, value=convolved)


def _max_pool(lowering: Lowering, operator: Operator) -> str:
    window = (operator.integer("FilterHeight"), operator.integer("FilterWidth"))
    pooled = lowering.graph.add(
        "MaxPool",
        [lowering.value(operator, 0)],
        hint=lowering.name(operator.outputs[0]),
        kernel_shape=window,
        strides=_strides(operator),
        pads=_pads(lowering, operator, window=window, dilations=[1, 1]),
    )
    return _activate(lowering, operator, value=pooled)


def _strides(operator: Operator) -> list[int]:
    return [operator.integer("StrideH"), operator.integer("StrideW")]


def _pads(
    lowering: Lowering, operator: Operator, *, window: tuple[int, int], dilations: list[int]
) -> list[int]:
    """Top, left, bottom, right; `SAME` puts the odd pixel at the end."""
    if operator.integer("Padding") == tflite.Padding.VALID:
        return [0, 0, 0, 0]
    before, after = [], []
    sides = lowering.picture_shape(operator)[:2]
    for side, taps, stride, step in zip(sides, window, _strides(operator), dilations, strict=True):
        last_start = (-(-side // stride) - 1) * stride
        missing = max(last_start + (taps - 1) * step + 1 - side, 0)
        before.append(missing // 2)
        after.append(missing - missing // 2)
    return before + after


def _activate(lowering: Lowering, operator: Operator, *, value: str) -> str:
    activation = operator.integer("FusedActivationFunction")
    if activation == tflite.ActivationFunctionType.NONE:
        return value
    if activation == tflite.ActivationFunctionType.RELU:
        return lowering.graph.add("Relu", [value])
    if activation == tflite.ActivationFunctionType.RELU6:
        limits = [lowering.graph.floats(0.0), lowering.graph.floats(_RELU6_TOP)]
        return lowering.graph.add("Clip", [value, *limits])
    raise ConversionError(f"{operator}: fused activation {activation} is not supported")


def _elementwise(onnx_operator: str) -> Lower:
    def lower(lowering: Lowering, operator: Operator) -> str:
        values = [lowering.value(operator, 0), lowering.value(operator, 1)]
        combined = lowering.graph.add(
            onnx_operator, values, hint=lowering.name(operator.outputs[0])
        )
        return _activate(lowering, operator, value=combined)

    return lower


def _prelu(lowering: Lowering, operator: Operator) -> str:
    values = [lowering.value(operator, 0), lowering.value(operator, 1)]
    return lowering.graph.add("PRelu", values, hint=lowering.name(operator.outputs[0]))


def _pad(lowering: Lowering, operator: Operator) -> str:
    lowering.picture_shape(operator)
    amounts = lowering.constant(operator, 1)[[0, 3, 1, 2]]
    pads = lowering.graph.ints(np.concatenate([amounts[:, 0], amounts[:, 1]]), "pads")
    values = [lowering.value(operator, 0), pads]
    return lowering.graph.add("Pad", values, hint=lowering.name(operator.outputs[0]))


def _reshape(lowering: Lowering, operator: Operator) -> str:
    before, after = lowering.shape(operator.inputs[0]), lowering.shape(operator.outputs[0])
    value = lowering.value(operator, 0)
    if len(before) == PICTURE_RANK:
        value = lowering.graph.add("Transpose", [value], perm=[0, 2, 3, 1])
    shape = lowering.graph.ints([-1, *after[1:]], "shape")
    value = lowering.graph.add("Reshape", [value, shape], hint=lowering.name(operator.outputs[0]))
    if len(after) == PICTURE_RANK:
        value = lowering.graph.add("Transpose", [value], perm=[0, 3, 1, 2])
    return value


def _whole_slice(lowering: Lowering, operator: Operator) -> str:
    """A slice that takes everything, which exporters leave behind to name an output."""
    begin, end, strides = (lowering.constant(operator, position) for position in (1, 2, 3))
    takes_all = not begin.any() and tuple(end) == lowering.shape(operator.inputs[0])
    if not takes_all or (strides != 1).any() or any(operator.options.values()):
        raise ConversionError(f"{operator}: slices that leave something out are not supported")
    return lowering.value(operator, 0)


STANDARD: Mapping[str, Lower] = MappingProxyType(
    {
        "CONV_2D": _convolution,
        "DEPTHWISE_CONV_2D": _depthwise_convolution,
        "MAX_POOL_2D": _max_pool,
        "PRELU": _prelu,
        "ADD": _elementwise("Add"),
        "MUL": _elementwise("Mul"),
        "PAD": _pad,
        "RESHAPE": _reshape,
        "STRIDED_SLICE": _whole_slice,
    }
)
"""By the schema's name of the operator."""

"""ncnn picture networks (Real-ESRGAN) to ONNX.

Contract of the result: input `input` `(N, 3, H, W)`, output `output` `(N, 3, s H, s W)`, both RGB from 0 to 1,
with N, H and W free; `s` is the network's own factor. Half-precision weights are widened to float32.

Source of the operators' meaning: ncnn's documentation of its operators, and its reference layers; BSD-3-Clause.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from app.core.errors import ConversionError
from app.inference.convert.graph import GraphBuilder, Port
from app.inference.convert.ncnn_file import Layer, WeightReader, parse_param

_CHANNEL_AXIS = 1


def convert(sources: Mapping[str, bytes]) -> bytes:
    """Rewrite an ncnn network.

    Args:
        sources: One `.param` and one `.bin` file, by name.

    Returns:
        The ONNX file.

    Raises:
        ConversionError: A file is missing or damaged, or the network has an operator that we do not know.
    """
    text = _only(sources, ".param").decode("utf-8", errors="replace")
    lowering = _Lowering(WeightReader(_only(sources, ".bin")))
    for layer in parse_param(text):
        lowering.add(layer)
    return lowering.finish()


def _only(sources: Mapping[str, bytes], suffix: str) -> bytes:
    found = [data for name, data in sources.items() if name.endswith(suffix)]
    if len(found) != 1:
        raise ConversionError(f"ncnn sources: got {len(found)} {suffix} files, wanted one")
    return found[0]


class _Lowering:
    """What grows while the layers are walked: the graph, and which value each blob is."""

    def __init__(self, weights: WeightReader) -> None:
        self.graph = GraphBuilder("input", "output")
        self.weights = weights
        self._values: dict[str, str] = {}
        self._unread: dict[str, str] = {}

    def add(self, layer: Layer) -> None:
        """Write one layer as ONNX nodes."""
        if layer.kind not in _OPERATORS:
            raise ConversionError(f"{layer}: the operator {layer.kind} is not supported")
        try:
            output = _OPERATORS[layer.kind](self, layer)
        except (ValueError, IndexError) as error:
            raise ConversionError(f"{layer}: its figures do not fit together: {error}") from error
        for blob in layer.outputs:
            self._values[blob] = self._unread[blob] = output

    def inputs(self, layer: Layer) -> list[str]:
        """The values that a layer reads.

        Raises:
            ConversionError: No layer before it writes one of them.
        """
        return [self._read(layer, blob) for blob in layer.inputs]

    def finish(self) -> bytes:
        """Name the one blob that nobody reads `output`, and write the model."""
        self.weights.finish()
        if len(self._unread) != 1:
            raise ConversionError(f"ncnn network: got {len(self._unread)} outputs, wanted one")
        (result,) = self._unread.values()
        self.graph.add_output("output", op_type="Identity", inputs=[result])
        return self.graph.build(
            "ncnn",
            inputs=[Port("input", ("N", 3, "H", "W"))],
            outputs=[Port("output", ("N", 3, "H_out", "W_out"))],
        )

    def _read(self, layer: Layer, blob: str) -> str:
        if blob not in self._values:
            raise ConversionError(f"{layer}: blob {blob!r} is read before it is written")
        self._unread.pop(blob, None)
        return self._values[blob]


def _input(lowering: _Lowering, layer: Layer) -> str:
    return "input"


def _split(lowering: _Lowering, layer: Layer) -> str:
    return lowering.inputs(layer)[0]


def _convolution(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 16)
    width, dilation, stride = layer.integer(1, 0), layer.integer(2, 1), layer.integer(3, 1)
    kernel = [layer.integer(11, width), width]
    out_channels, size = layer.integer(0, 0), layer.integer(6, 0)
    weights = lowering.weights.tagged(size).reshape(out_channels, -1, *kernel)
    constants = [lowering.graph.constant(weights, f"{layer.name}.weight")]
    if layer.integer(5, 0):
        bias = lowering.weights.plain(out_channels)
        constants.append(lowering.graph.constant(bias, f"{layer.name}.bias"))
    convolved = lowering.graph.add(
        "Conv",
        [*lowering.inputs(layer), *constants],
        hint=layer.name,
        kernel_shape=kernel,
        dilations=[layer.integer(12, dilation), dilation],
        strides=[layer.integer(13, stride), stride],
        pads=_pads(layer),
    )
    return _activate(lowering, layer, value=convolved)


def _pads(layer: Layer) -> list[int]:
    """Top, left, bottom, right; ncnn's negative values stand for automatic padding."""
    left = layer.integer(4, 0)
    top, right = layer.integer(14, left), layer.integer(15, left)
    pads = [top, left, layer.integer(16, top), right]
    if min(pads) < 0:
        raise ConversionError(f"{layer}: automatic padding {min(pads)} is not supported")
    return pads


def _activate(lowering: _Lowering, layer: Layer, *, value: str) -> str:
    kind, numbers = layer.integer(9, 0), layer.array(10)
    match kind, len(numbers):
        case 0, _:
            return value
        case 1, _:
            return lowering.graph.add("Relu", [value])
        case 2, 1:
            return lowering.graph.add("LeakyRelu", [value], alpha=numbers[0])
        case 3, 2:
            limits = [lowering.graph.floats(number) for number in numbers]
            return lowering.graph.add("Clip", [value, *limits])
        case 4, _:
            return lowering.graph.add("Sigmoid", [value])
    raise ConversionError(f"{layer}: activation {kind} with {numbers} is not supported")


def _prelu(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0)
    slopes = lowering.weights.plain(layer.integer(0, 0)).reshape(-1, 1, 1)
    constant = lowering.graph.constant(slopes, f"{layer.name}.slope")
    return lowering.graph.add("PRelu", [*lowering.inputs(layer), constant], hint=layer.name)


def _relu(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0)
    slope = layer.number(0, 0.0)
    if slope:
        return lowering.graph.add("LeakyRelu", lowering.inputs(layer), hint=layer.name, alpha=slope)
    return lowering.graph.add("Relu", lowering.inputs(layer), hint=layer.name)


def _concat(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0)
    # ncnn's blobs have no batch axis; axes below zero count from the end in both.
    axis = layer.integer(0, 0)
    return lowering.graph.add(
        "Concat",
        lowering.inputs(layer),
        hint=layer.name,
        axis=axis if axis < 0 else axis + _CHANNEL_AXIS,
    )


def _eltwise(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0, 1)
    operator, inputs = layer.integer(0, 0), lowering.inputs(layer)
    if operator not in _ELTWISE:
        raise ConversionError(f"{layer}: operation {operator} is not supported")
    factors = layer.array(1) if _ELTWISE[operator] == "Add" else ()
    terms = _scaled(lowering, inputs, factors=factors or (1.0,) * len(inputs))
    total = terms[0]
    for term in terms[1:]:
        total = lowering.graph.add(_ELTWISE[operator], [total, term], hint=layer.name)
    return total


def _scaled(lowering: _Lowering, values: list[str], *, factors: tuple[float, ...]) -> list[str]:
    return [
        value
        if factor == 1.0
        else lowering.graph.add("Mul", [value, lowering.graph.floats(factor, "factor")])
        for value, factor in zip(values, factors, strict=True)
    ]


def _binary(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0, 1, 2)
    operator, operands = layer.integer(0, 0), lowering.inputs(layer)
    if operator not in _BINARY:
        raise ConversionError(f"{layer}: operation {operator} is not supported")
    if layer.integer(1, 0):
        operands.append(lowering.graph.floats(layer.number(2, 0.0), "scalar"))
    is_reversed = operator in _REVERSED
    return lowering.graph.add(
        _BINARY[operator], operands[::-1] if is_reversed else operands, hint=layer.name
    )


def _interp(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0, 1, 2)
    mode = layer.integer(0, 0)
    if mode not in _INTERP:
        raise ConversionError(f"{layer}: interpolation {mode} is not supported")
    scales = lowering.graph.floats([1.0, 1.0, layer.number(1, 1.0), layer.number(2, 1.0)], "scales")
    return lowering.graph.add(
        "Resize", [*lowering.inputs(layer), "", scales], hint=layer.name, **_INTERP[mode]
    )


def _pixel_shuffle(lowering: _Lowering, layer: Layer) -> str:
    layer.refuse_others(0, 1)
    mode = "DCR" if layer.integer(1, 0) else "CRD"
    return lowering.graph.add(
        "DepthToSpace",
        lowering.inputs(layer),
        hint=layer.name,
        blocksize=layer.integer(0, 1),
        mode=mode,
    )


_ELTWISE = MappingProxyType({0: "Mul", 1: "Add", 2: "Max"})

_BINARY = MappingProxyType(
    {
        0: "Add",
        1: "Sub",
        2: "Mul",
        3: "Div",
        4: "Max",
        5: "Min",
        6: "Pow",
        7: "Sub",
        8: "Div",
    }
)
_REVERSED = frozenset({7, 8})
"""ncnn's RSUB and RDIV: the second operand is the first of the ONNX operator."""

_INTERP: Mapping[int, Mapping[str, str | float]] = MappingProxyType(
    {
        1: {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        },
        2: {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        3: {
            "mode": "cubic",
            "coordinate_transformation_mode": "half_pixel",
            "cubic_coeff_a": -0.75,
        },
    }
)
"""How ncnn samples: half-pixel centers, border pixels repeated, no filter against aliasing."""

_Operator = Callable[[_Lowering, Layer], str]

_OPERATORS: Mapping[str, _Operator] = MappingProxyType(
    {
        "Input": _input,
        "Split": _split,
        "Convolution": _convolution,
        "PReLU": _prelu,
        "ReLU": _relu,
        "Concat": _concat,
        "Eltwise": _eltwise,
        "BinaryOp": _binary,
        "Interp": _interp,
        "PixelShuffle": _pixel_shuffle,
    }
)

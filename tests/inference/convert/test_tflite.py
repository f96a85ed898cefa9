"""Every standard tflite operator alone, in hand-made networks, against numpy in the file's own axes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
import tflite as schema
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.tflite import convert, lower
from app.inference.convert.tflite_file import Network, Operator, Tensor

Array = NDArray[np.float32]
RunOnnx = Callable[..., dict[str, Array]]

RNG = np.random.default_rng(11)
PICTURES = RNG.standard_normal((2, 7, 6, 3)).astype(np.float32)
"""Two pictures, `(N, H, W, C)`."""

SAME, VALID = schema.Padding.SAME, schema.Padding.VALID
PLAIN = schema.ActivationFunctionType.NONE
RELU, RELU6 = schema.ActivationFunctionType.RELU, schema.ActivationFunctionType.RELU6


def single(
    kind: str,
    constants: Sequence[NDArray[np.generic]] = (),
    *,
    shape: tuple[int, ...],
    options: Mapping[str, int] | None = None,
) -> Network:
    """A network of one operator: the picture, then the constants, give a tensor `result` of this shape."""
    tensors = [
        Tensor(name="picture", shape=(1, 7, 6, 3)),
        Tensor(name="result", shape=shape),
        *(Tensor(name=f"c{i}", shape=c.shape, constant=c) for i, c in enumerate(constants)),
    ]
    operator = Operator(
        kind=kind,
        inputs=(0, *range(2, 2 + len(constants))),
        outputs=(1,),
        options=options or {},
    )
    return Network(tensors=tuple(tensors), operators=(operator,), inputs=(0,), outputs=(1,))


def ran(run_onnx: RunOnnx, network: Network) -> Array:
    """The result for `PICTURES`, in the file's axes."""
    content = lower(network)
    result = run_onnx(content, input=PICTURES.transpose(0, 3, 1, 2))["result"]
    return result.transpose(0, 2, 3, 1) if result.ndim == 4 else result


def windows(
    picture: Array, size: int, *, stride: int, padding: int, step: int = 1, fill: float = 0.0
) -> Array:
    """Every window that a kernel of `size` sees: `(rows, columns, size, size, C)`."""
    reach = (size - 1) * step + 1
    if padding == SAME:
        pads = [
            max((-(-side // stride) - 1) * stride + reach - side, 0) for side in picture.shape[:2]
        ]
        before_after = [(pad // 2, pad - pad // 2) for pad in pads]
        picture = np.pad(picture, (*before_after, (0, 0)), constant_values=fill)
    rows = range(0, picture.shape[0] - reach + 1, stride)
    columns = range(0, picture.shape[1] - reach + 1, stride)
    return np.stack(
        [
            np.stack([picture[y : y + reach : step, x : x + reach : step] for x in columns])
            for y in rows
        ]
    )


WINDOWED = [
    pytest.param(3, 1, SAME, id="same"),
    pytest.param(3, 2, SAME, id="same, stride 2"),
    pytest.param(2, 2, SAME, id="same, even kernel, stride 2"),
    pytest.param(3, 1, VALID, id="valid"),
    pytest.param(2, 2, VALID, id="valid, stride 2"),
]


def convolution(
    stride: int, padding: int, *, step: int = 1, activation: int = PLAIN
) -> dict[str, int]:
    return {
        "Padding": padding,
        "StrideH": stride,
        "StrideW": stride,
        "DilationHFactor": step,
        "DilationWFactor": step,
        "FusedActivationFunction": activation,
    }


@pytest.mark.parametrize(("size", "stride", "padding"), WINDOWED)
def test_a_convolution_weighs_every_channel(
    size: int, stride: int, padding: int, run_onnx: RunOnnx
) -> None:
    kernel = RNG.standard_normal((4, size, size, 3)).astype(np.float32)
    bias = RNG.standard_normal(4).astype(np.float32)
    expected = np.stack(
        [
            np.einsum("rcijk,oijk->rco", windows(p, size, stride=stride, padding=padding), kernel)
            for p in PICTURES
        ]
    )
    network = single(
        "CONV_2D",
        [kernel, bias],
        shape=(1, *expected.shape[1:]),
        options=convolution(stride, padding),
    )
    np.testing.assert_allclose(ran(run_onnx, network), expected + bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("size", "stride", "padding"), WINDOWED)
def test_a_depthwise_convolution_weighs_its_own_channel(
    size: int, stride: int, padding: int, run_onnx: RunOnnx
) -> None:
    kernel = RNG.standard_normal((1, size, size, 6)).astype(np.float32)
    bias = RNG.standard_normal(6).astype(np.float32)
    two_each = kernel[0].reshape(size, size, 3, 2)
    expected = np.stack(
        [
            np.einsum(
                "rcijk,ijkm->rckm", windows(p, size, stride=stride, padding=padding), two_each
            )
            for p in PICTURES
        ]
    )
    expected = expected.reshape(*expected.shape[:3], 6)
    network = single(
        "DEPTHWISE_CONV_2D",
        [kernel, bias],
        shape=(1, *expected.shape[1:]),
        options=convolution(stride, padding),
    )
    np.testing.assert_allclose(ran(run_onnx, network), expected + bias, rtol=1e-4, atol=1e-5)


def test_a_dilated_convolution_reaches_farther(run_onnx: RunOnnx) -> None:
    kernel = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    seen = [windows(p, 3, stride=1, padding=SAME, step=2) for p in PICTURES]
    expected = np.stack([np.einsum("rcijk,oijk->rco", window, kernel) for window in seen])
    network = single(
        "CONV_2D",
        [kernel, np.zeros(4, np.float32)],
        shape=(1, 7, 6, 4),
        options=convolution(1, SAME, step=2),
    )
    np.testing.assert_allclose(ran(run_onnx, network), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("size", "stride", "padding"), WINDOWED)
def test_a_pool_takes_the_largest(size: int, stride: int, padding: int, run_onnx: RunOnnx) -> None:
    expected = np.stack(
        [
            windows(p, size, stride=stride, padding=padding, fill=-np.inf).max((2, 3))
            for p in PICTURES
        ]
    )
    options = convolution(stride, padding) | {"FilterHeight": size, "FilterWidth": size}
    network = single("MAX_POOL_2D", shape=(1, *expected.shape[1:]), options=options)
    np.testing.assert_array_equal(ran(run_onnx, network), expected)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        pytest.param(PLAIN, lambda x: x, id="none"),
        pytest.param(RELU, lambda x: np.maximum(x, 0), id="relu"),
        pytest.param(RELU6, lambda x: np.clip(x, 0, 6), id="relu6"),
    ],
)
def test_a_fused_activation_comes_after(
    activation: int, expected: Callable[[Array], Array], run_onnx: RunOnnx
) -> None:
    addend = np.array([-5, 0, 5], np.float32)
    network = single(
        "ADD",
        [addend],
        shape=(1, 7, 6, 3),
        options={"FusedActivationFunction": activation},
    )
    np.testing.assert_allclose(ran(run_onnx, network), expected(PICTURES + addend), rtol=1e-6)


@pytest.mark.parametrize(
    "constant",
    [
        pytest.param(np.array([2], np.float32), id="one number"),
        pytest.param(np.array([1, 2, 3], np.float32), id="a number a channel"),
        pytest.param(RNG.random((6, 3), np.float32), id="a number a column and channel"),
        pytest.param(RNG.random((1, 7, 6, 3), np.float32), id="a picture"),
    ],
)
@pytest.mark.parametrize(("kind", "combine"), [("ADD", np.add), ("MUL", np.multiply)])
def test_a_constant_is_spread_as_the_file_means_it(
    kind: str, combine: Callable[..., Array], constant: Array, run_onnx: RunOnnx
) -> None:
    network = single(
        kind,
        [constant],
        shape=(1, 7, 6, 3),
        options={"FusedActivationFunction": PLAIN},
    )
    np.testing.assert_allclose(ran(run_onnx, network), combine(PICTURES, constant), rtol=1e-6)


def test_prelu_has_a_slope_a_channel(run_onnx: RunOnnx) -> None:
    slopes = np.array([[[0.1, -1.0, 2.0]]], np.float32)
    network = single("PRELU", [slopes], shape=(1, 7, 6, 3))
    expected = np.where(PICTURES < 0, slopes * PICTURES, PICTURES)
    np.testing.assert_allclose(ran(run_onnx, network), expected, rtol=1e-6)


def test_padding_counts_in_the_files_axes(run_onnx: RunOnnx) -> None:
    amounts = np.array([[0, 0], [1, 0], [0, 2], [0, 3]], np.int32)
    network = single("PAD", [amounts], shape=(1, 8, 8, 6))
    np.testing.assert_array_equal(ran(run_onnx, network), np.pad(PICTURES, amounts))


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((1, 42, 3), id="to points"),
        pytest.param((1, 126), id="to numbers"),
        pytest.param((1, 3, 7, 6), id="to another picture"),
    ],
)
def test_reshape_reads_pictures_pixel_by_pixel(shape: tuple[int, ...], run_onnx: RunOnnx) -> None:
    expected = PICTURES.reshape(2, *shape[1:])
    np.testing.assert_array_equal(ran(run_onnx, single("RESHAPE", shape=shape)), expected)


def test_a_slice_of_everything_changes_nothing(run_onnx: RunOnnx) -> None:
    network = single("STRIDED_SLICE", slice_of((1, 7, 6, 3)), shape=(1, 7, 6, 3))
    np.testing.assert_array_equal(ran(run_onnx, network), PICTURES)


def slice_of(end: Sequence[int]) -> list[NDArray[np.generic]]:
    return [np.zeros(4, np.int32), np.array(end, np.int32), np.ones(4, np.int32)]


def test_half_precision_constants_are_widened(run_onnx: RunOnnx) -> None:
    halves = np.array([0.1, 0.2, 0.3], np.float16)
    network = dequantized(halves)
    expected = PICTURES * halves.astype(np.float32)
    np.testing.assert_allclose(ran(run_onnx, network), expected, rtol=1e-6)


def dequantized(constant: NDArray[np.generic]) -> Network:
    """The picture times a constant that is stored in another precision."""
    tensors = (
        Tensor(name="picture", shape=(1, 7, 6, 3)),
        Tensor(name="result", shape=(1, 7, 6, 3)),
        Tensor(name="stored", shape=(3,), constant=constant),
        Tensor(name="widened", shape=(3,)),
    )
    operators = (
        Operator(kind="DEQUANTIZE", inputs=(2,), outputs=(3,), options={}),
        Operator(
            kind="MUL", inputs=(0, 3), outputs=(1,), options={"FusedActivationFunction": PLAIN}
        ),
    )
    return Network(tensors=tensors, operators=operators, inputs=(0,), outputs=(1,))


SHAPE = (1, 7, 6, 3)


@pytest.mark.parametrize(
    ("network", "complaint"),
    [
        pytest.param(single("SOFTMAX", shape=SHAPE), "SOFTMAX", id="operator"),
        pytest.param(
            single("ADD", [np.ones(3)], shape=SHAPE, options={"FusedActivationFunction": 4}),
            "fused activation 4",
            id="activation",
        ),
        pytest.param(
            single("STRIDED_SLICE", slice_of((1, 7, 6, 2)), shape=(1, 7, 6, 2)),
            "slices that leave something out",
            id="part of a picture",
        ),
        pytest.param(dequantized(np.ones(3, np.int8)), "int8", id="8-bit constant"),
        pytest.param(single("CONV_2D", shape=SHAPE), "CONV_2D: its figures", id="no kernel"),
    ],
)
def test_what_is_not_supported_is_named(network: Network, complaint: str) -> None:
    with pytest.raises(ConversionError, match=complaint):
        lower(network)


def test_a_tensor_that_nobody_wrote_is_named() -> None:
    tensors = (*single("PRELU", shape=SHAPE).tensors, Tensor(name="ghost", shape=SHAPE))
    operator = Operator(kind="RESHAPE", inputs=(2,), outputs=(1,), options={})
    network = Network(tensors=tensors, operators=(operator,), inputs=(0,), outputs=(1,))
    with pytest.raises(ConversionError, match="ghost"):
        lower(network)


def test_a_network_has_one_input() -> None:
    network = Network(tensors=(), operators=(), inputs=(), outputs=())
    with pytest.raises(ConversionError, match="got 0 inputs"):
        lower(network)


@pytest.mark.parametrize(
    ("sources", "complaint"),
    [
        pytest.param({}, "got 0 files", id="none"),
        pytest.param({"a.tflite": b"", "b.tflite": b""}, "got 2 files", id="two"),
        pytest.param({"a.tflite": b"no such thing"}, "fetch it again", id="something else"),
    ],
)
def test_sources_other_than_one_tflite_file_are_refused(
    sources: dict[str, bytes], complaint: str
) -> None:
    with pytest.raises(ConversionError, match=complaint):
        convert(sources)

"""Every ncnn operator alone: against numpy, and against ncnn itself."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ncnn
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.ncnn import convert

Array = NDArray[np.float32]
RunOnnx = Callable[..., dict[str, Array]]

RNG = np.random.default_rng(7)
PICTURE = RNG.random((3, 6, 8), np.float32) - np.float32(0.4)
KERNEL = RNG.standard_normal((3, 3, 3, 2)).astype(np.float32)
BIAS = RNG.standard_normal(3).astype(np.float32)
CONVOLUTION = "Convolution conv 1 1 data out 0=3 1=2 11=3 5=1 6=54"
TWICE = "Split split 1 2 data a b"
FOUR_TIMES = "Split split 1 4 data a b c d"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Layers that make a picture `out` of the picture `data`."""

    layers: tuple[str, ...]
    expected: Callable[[Array], Array]
    weights: bytes = field(default=b"", repr=False)

    def sources(self) -> dict[str, bytes]:
        lines = ["7767517", f"{len(self.layers) + 1} 99", "Input input 0 1 data", *self.layers]
        return {"net.param": "\n".join(lines).encode() + b"\n", "net.bin": self.weights}


def fp32(*arrays: Array) -> bytes:
    """A tagged kernel and whatever follows it."""
    return struct.pack("<I", 0) + b"".join(array.tobytes() for array in arrays)


def fp16(kernel: Array, *arrays: Array) -> bytes:
    halves = kernel.astype("<f2").tobytes()
    padding = b"\0" * (-len(halves) % 4)
    tail = b"".join(array.tobytes() for array in arrays)
    return struct.pack("<I", 0x01306B47) + halves + padding + tail


def convolved(
    picture: Array,
    kernel: Array = KERNEL,
    bias: Array = BIAS,
    *,
    pads: Sequence[int] = (0, 0, 0, 0),
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
) -> Array:
    """Pads are top, left, bottom, right."""
    padded = np.pad(picture, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    reach_y = (kernel.shape[2] - 1) * dilations[0] + 1
    reach_x = (kernel.shape[3] - 1) * dilations[1] + 1
    rows = range(0, padded.shape[1] - reach_y + 1, strides[0])
    columns = range(0, padded.shape[2] - reach_x + 1, strides[1])
    out = np.empty((len(kernel), len(rows), len(columns)), np.float32)
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            window = padded[:, y : y + reach_y : dilations[0], x : x + reach_x : dilations[1]]
            out[:, i, j] = (kernel * window).sum((1, 2, 3)) + bias
    return out


def cubic(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    a, d = -0.75, np.abs(distance)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def linear(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(1 - np.abs(distance), 0, None)


def resampled(
    picture: Array, scale: float, kernel: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Array:
    """Half-pixel centers, border pixels repeated, no filter against aliasing."""

    def weights(side: int) -> NDArray[np.float64]:
        center = (np.arange(int(side * scale)) + 0.5) / scale - 0.5
        taps = np.arange(-2, side + 2)
        full = kernel(center[:, None] - taps)
        inner = full[:, 2:-2].copy()
        inner[:, 0] += full[:, :2].sum(1)
        inner[:, -1] += full[:, -2:].sum(1)
        return inner

    across, down = weights(picture.shape[2]), weights(picture.shape[1])
    return np.asarray(down @ picture.astype(np.float64) @ across.T, np.float32)


def shuffled(stack: Array, factor: int, *, is_depth_first: bool) -> Array:
    channels, height, width = len(stack) // factor**2, *stack.shape[1:]
    out = np.empty((channels, height * factor, width * factor), np.float32)
    for channel in range(channels):
        for i in range(factor):
            for j in range(factor):
                cell = i * factor + j
                index = cell * channels + channel if is_depth_first else channel * factor**2 + cell
                out[channel, i::factor, j::factor] = stack[index]
    return out


def four_shuffled(mode: int, *, is_depth_first: bool) -> Case:
    return Case(
        layers=(
            FOUR_TIMES,
            "Concat join 4 1 a b c d stack",
            f"PixelShuffle shuffle 1 1 stack out 0=2 1={mode}",
        ),
        expected=lambda x: shuffled(np.concatenate([x] * 4), 2, is_depth_first=is_depth_first),
    )


def activated(parameters: str, expected: Callable[[Array], Array]) -> Case:
    return Case(
        layers=(f"{CONVOLUTION} {parameters}",),
        weights=fp32(KERNEL, BIAS),
        expected=lambda x: expected(convolved(x)),
    )


def combined(layer: str, expected: Callable[[Array, Array], Array]) -> Case:
    """A layer that reads the picture as `a` and its square as `b`."""
    return Case(
        layers=("Split split 1 3 data a x y", "BinaryOp square 2 1 x y b 0=2", layer),
        expected=lambda x: expected(x, x * x),
    )


def scaled(parameters: str, expected: Callable[[Array], Array]) -> Case:
    return Case(layers=(f"Interp resize 1 1 data out {parameters}",), expected=expected)


SLOPES = np.array([0.1, -0.5, 2.0], np.float32)

CASES = {
    "convolution": Case(
        layers=(CONVOLUTION,), weights=fp32(KERNEL, BIAS), expected=convolved
    ),
    "convolution in half precision": Case(
        layers=(CONVOLUTION,),
        weights=fp16(KERNEL, BIAS),
        expected=lambda x: convolved(x, KERNEL.astype(np.float16).astype(np.float32)),
    ),
    "convolution without bias": Case(
        layers=("Convolution conv 1 1 data out 0=3 1=2 11=3 6=54",),
        weights=fp32(KERNEL),
        expected=lambda x: convolved(x, bias=np.zeros(3, np.float32)),
    ),
    "convolution with one padding": Case(
        layers=(f"{CONVOLUTION} 4=1",),
        weights=fp32(KERNEL, BIAS),
        expected=lambda x: convolved(x, pads=(1, 1, 1, 1)),
    ),
    "convolution with four paddings": Case(
        layers=(f"{CONVOLUTION} 4=1 14=2 15=0 16=3",),
        weights=fp32(KERNEL, BIAS),
        expected=lambda x: convolved(x, pads=(2, 1, 3, 0)),
    ),
    "convolution with stride": Case(
        layers=(f"{CONVOLUTION} 3=2 13=3",),
        weights=fp32(KERNEL, BIAS),
        expected=lambda x: convolved(x, strides=(3, 2)),
    ),
    "convolution with dilation": Case(
        layers=(f"{CONVOLUTION} 2=3 12=2",),
        weights=fp32(KERNEL, BIAS),
        expected=lambda x: convolved(x, dilations=(2, 3)),
    ),
    "convolution, then relu": activated("9=1", lambda x: np.maximum(x, 0)),
    "convolution, then leaky relu": activated(
        "9=2 -23310=1,2.0e-01", lambda x: np.where(x < 0, 0.2 * x, x)
    ),
    "convolution, then clip": activated("9=3 -23310=2,-0.5,0.25", lambda x: np.clip(x, -0.5, 0.25)),
    "convolution, then sigmoid": activated("9=4", lambda x: 1 / (1 + np.exp(-x))),
    "prelu": Case(
        layers=("PReLU prelu 1 1 data out 0=3",),
        weights=SLOPES.tobytes(),
        expected=lambda x: np.where(x < 0, SLOPES[:, None, None] * x, x),
    ),
    "prelu with one slope": Case(
        layers=("PReLU prelu 1 1 data out 0=1",),
        weights=SLOPES[:1].tobytes(),
        expected=lambda x: np.where(x < 0, SLOPES[0] * x, x),
    ),
    "relu": Case(layers=("ReLU relu 1 1 data out",), expected=lambda x: np.maximum(x, 0)),
    "relu with slope": Case(
        layers=("ReLU relu 1 1 data out 0=0.3",), expected=lambda x: np.where(x < 0, 0.3 * x, x)
    ),
    "concat along the height": Case(
        layers=(TWICE, "Concat join 2 1 a b out 0=1"),
        expected=lambda x: np.concatenate([x, x], axis=1),
    ),
    "concat along the last axis": Case(
        layers=(TWICE, "Concat join 2 1 a b out 0=-1"),
        expected=lambda x: np.concatenate([x, x], axis=2),
    ),
    "concat of channels, pixel shuffle": four_shuffled(0, is_depth_first=False),
    "pixel shuffle, depth first": four_shuffled(1, is_depth_first=True),
    "eltwise product": combined("Eltwise e 2 1 a b out 0=0", lambda a, b: a * b),
    "eltwise sum": combined("Eltwise e 2 1 a b out 0=1", lambda a, b: a + b),
    "eltwise weighted sum": combined(
        "Eltwise e 2 1 a b out 0=1 -23301=2,2.0e-01,1.0", lambda a, b: 0.2 * a + b
    ),
    "eltwise maximum": combined("Eltwise e 2 1 a b out 0=2", np.maximum),
    "binary add": combined("BinaryOp o 2 1 a b out 0=0", lambda a, b: a + b),
    "binary subtract": combined("BinaryOp o 2 1 a b out 0=1", lambda a, b: a - b),
    "binary multiply": combined("BinaryOp o 2 1 a b out 0=2", lambda a, b: a * b),
    "binary divide": combined("BinaryOp o 2 1 a b out 0=3", lambda a, b: a / b),
    "binary maximum": combined("BinaryOp o 2 1 a b out 0=4", np.maximum),
    "binary minimum": combined("BinaryOp o 2 1 a b out 0=5", np.minimum),
    "binary power": combined("BinaryOp o 2 1 b a out 0=6", lambda a, b: b**a),
    "binary reversed subtract": combined("BinaryOp o 2 1 a b out 0=7", lambda a, b: b - a),
    "binary reversed divide": combined("BinaryOp o 2 1 a b out 0=8", lambda a, b: b / a),
    "binary with a scalar": Case(
        layers=("BinaryOp o 1 1 data out 0=1 1=1 2=0.25",), expected=lambda x: x - 0.25
    ),
    "binary reversed with a scalar": Case(
        layers=("BinaryOp o 1 1 data out 0=7 1=1 2=0.25",), expected=lambda x: 0.25 - x
    ),
    "nearest, four times": scaled(
        "0=1 1=4.0 2=4.0", lambda x: x.repeat(4, axis=1).repeat(4, axis=2)
    ),
    "bilinear, twice": scaled("0=2 1=2.0 2=2.0", lambda x: resampled(x, 2.0, linear)),
    "bicubic, half": scaled("0=3 1=0.5 2=0.5", lambda x: resampled(x, 0.5, cubic)),
    "bicubic, three quarters": scaled("0=3 1=0.75 2=0.75", lambda x: resampled(x, 0.75, cubic)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_an_operator_computes_what_numpy_does(case: Case, run_onnx: RunOnnx) -> None:
    batch = np.stack([PICTURE, 2 * PICTURE])
    got = run_onnx(convert(case.sources()), input=batch)["output"]
    expected = np.stack([case.expected(picture) for picture in batch])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_an_operator_computes_what_ncnn_does(case: Case, run_onnx: RunOnnx, tmp_path: Path) -> None:
    got = run_onnx(convert(case.sources()), input=PICTURE[None])["output"]
    np.testing.assert_allclose(got[0], run_ncnn(case, tmp_path), rtol=1e-4, atol=1e-4)


def run_ncnn(case: Case, folder: Path) -> Array:
    for name, content in case.sources().items():
        (folder / name).write_bytes(content)
    net = ncnn.Net()
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    assert net.load_param(str(folder / "net.param")) == 0
    assert net.load_model(str(folder / "net.bin")) == 0
    extractor = net.create_extractor()
    # ncnn works in place, in memory of its own only.
    picture = ncnn.Mat(PICTURE).clone()
    extractor.input("data", picture)
    code, result = extractor.extract("out")
    assert code == 0
    return np.array(result)


def test_the_same_sources_give_the_same_bytes() -> None:
    case = CASES["convolution"]
    assert convert(case.sources()) == convert(case.sources())


@pytest.mark.parametrize(
    ("layer", "complaint"),
    [
        pytest.param("Mystery m 1 1 data out", "Mystery", id="operator"),
        pytest.param("Interp i 1 1 data out 0=4", "Interp 'i': interpolation 4", id="resampling"),
        pytest.param("Interp i 1 1 data out 0=1 6=1", "parameter 6", id="aligned corners"),
        pytest.param("BinaryOp o 2 1 data data out 0=99", "operation 99", id="binary operation"),
        pytest.param("Eltwise e 2 1 data data out 0=9", "operation 9", id="eltwise operation"),
        pytest.param(f"{CONVOLUTION} 4=-233", "automatic padding", id="automatic padding"),
        pytest.param(f"{CONVOLUTION} 9=5", "activation 5", id="activation"),
        pytest.param(f"{CONVOLUTION} 8=1", "parameter 8", id="8-bit convolution"),
        pytest.param(f"{CONVOLUTION} 6=53", "'conv': its figures", id="wrong number of weights"),
    ],
)
def test_what_is_not_supported_is_named(layer: str, complaint: str) -> None:
    case = Case(layers=(layer,), weights=fp32(KERNEL, BIAS), expected=lambda x: x)
    with pytest.raises(ConversionError, match=complaint):
        convert(case.sources())


@pytest.mark.parametrize(
    ("layers", "complaint"),
    [
        pytest.param(("ReLU r 1 1 nothing out",), "before it is written", id="unknown blob"),
        pytest.param((TWICE,), "got 2 outputs", id="two outputs"),
    ],
)
def test_a_network_that_does_not_hang_together_is_refused(
    layers: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(ConversionError, match=complaint):
        convert(Case(layers=layers, expected=lambda x: x).sources())


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param({}, id="none"),
        pytest.param({"net.param": b"7767517\n0 0\n"}, id="no weights"),
        pytest.param({"a.param": b"", "b.param": b"", "a.bin": b""}, id="two graphs"),
    ],
)
def test_sources_other_than_one_pair_are_refused(sources: dict[str, bytes]) -> None:
    with pytest.raises(ConversionError, match="wanted one"):
        convert(sources)

"""The reader, on a file that is built here with the schema's own functions."""

from collections.abc import Callable

import flatbuffers
import numpy as np
import pytest
import tflite
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.tflite import convert, refinement_indices
from app.inference.convert.tflite_file import read_network

Array = NDArray[np.float32]

HALVES = np.array([0.5, 1.5, 2.5], np.float16)
CUSTOM = {"subset_idxs": [3, 1, 2], "scale_x": 1.5, "output_width": 16}
PICTURE, STORED, WIDENED, PRODUCT, RESULT = range(5)


class FileBuilder:
    """Writes a `.tflite` file: a picture times stored halves, then a custom operator."""

    def __init__(self, stored_type: int = tflite.TensorType.FLOAT16) -> None:
        self.builder = flatbuffers.Builder(1024)
        self.stored_type = stored_type

    def content(self) -> bytes:
        b = self.builder
        buffers = self._offsets([self._buffer(b""), self._buffer(HALVES.tobytes())])
        codes = self._offsets(
            [
                self._code(tflite.BuiltinOperator.DEQUANTIZE),
                self._code(tflite.BuiltinOperator.MUL),
                self._code(tflite.BuiltinOperator.CUSTOM, "Mystery", 2),
            ]
        )
        graphs = self._offsets([self._graph()])
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, 3)
        tflite.ModelAddOperatorCodes(b, codes)
        tflite.ModelAddSubgraphs(b, graphs)
        tflite.ModelAddBuffers(b, buffers)
        b.Finish(tflite.ModelEnd(b), b"TFL3")
        return bytes(b.Output())

    def _graph(self) -> int:
        b, picture = self.builder, (1, 2, 2, 3)
        float32 = tflite.TensorType.FLOAT32
        tensors = self._offsets(
            [
                self._tensor("picture", picture, float32, 0),
                self._tensor("stored", (3,), self.stored_type, 1),
                self._tensor("widened", (3,), float32, 0),
                self._tensor("product", picture, float32, 0),
                self._tensor("result", picture, float32, 0),
            ]
        )
        operators = self._offsets(
            [
                self._operator(0, (STORED,), WIDENED),
                self._operator(1, (PICTURE, WIDENED), PRODUCT, self._relu_options),
                self._operator(2, (PRODUCT,), RESULT, custom=bytes(flexbuffers.Dumps(CUSTOM))),
            ]
        )
        inputs, outputs = self._ints((PICTURE,)), self._ints((RESULT,))
        tflite.SubGraphStart(b)
        tflite.SubGraphAddTensors(b, tensors)
        tflite.SubGraphAddInputs(b, inputs)
        tflite.SubGraphAddOutputs(b, outputs)
        tflite.SubGraphAddOperators(b, operators)
        return int(tflite.SubGraphEnd(b))

    def _buffer(self, data: bytes) -> int:
        offset = self.builder.CreateByteVector(data)
        tflite.BufferStart(self.builder)
        tflite.BufferAddData(self.builder, offset)
        return int(tflite.BufferEnd(self.builder))

    def _code(self, builtin: int, custom: str = "", version: int = 1) -> int:
        name = self.builder.CreateString(custom)
        tflite.OperatorCodeStart(self.builder)
        tflite.OperatorCodeAddBuiltinCode(self.builder, builtin)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.builder, builtin)
        tflite.OperatorCodeAddCustomCode(self.builder, name)
        tflite.OperatorCodeAddVersion(self.builder, version)
        return int(tflite.OperatorCodeEnd(self.builder))

    def _tensor(self, name: str, shape: tuple[int, ...], dtype: int, buffer: int) -> int:
        sides, text = self._ints(shape), self.builder.CreateString(name)
        tflite.TensorStart(self.builder)
        tflite.TensorAddShape(self.builder, sides)
        tflite.TensorAddType(self.builder, dtype)
        tflite.TensorAddBuffer(self.builder, buffer)
        tflite.TensorAddName(self.builder, text)
        return int(tflite.TensorEnd(self.builder))

    def _operator(
        self,
        code: int,
        inputs: tuple[int, ...],
        output: int,
        options: Callable[[], tuple[int, int]] | None = None,
        custom: bytes = b"",
    ) -> int:
        read, written = self._ints(inputs), self._ints((output,))
        union = options() if options else None
        custom_offset = self.builder.CreateByteVector(custom) if custom else None
        tflite.OperatorStart(self.builder)
        tflite.OperatorAddOpcodeIndex(self.builder, code)
        tflite.OperatorAddInputs(self.builder, read)
        tflite.OperatorAddOutputs(self.builder, written)
        if union:
            tflite.OperatorAddBuiltinOptionsType(self.builder, union[0])
            tflite.OperatorAddBuiltinOptions(self.builder, union[1])
        if custom_offset is not None:
            tflite.OperatorAddCustomOptions(self.builder, custom_offset)
        return int(tflite.OperatorEnd(self.builder))

    def _relu_options(self) -> tuple[int, int]:
        tflite.MulOptionsStart(self.builder)
        tflite.MulOptionsAddFusedActivationFunction(
            self.builder, tflite.ActivationFunctionType.RELU
        )
        return tflite.BuiltinOptions.MulOptions, int(tflite.MulOptionsEnd(self.builder))

    def _ints(self, values: tuple[int, ...]) -> int:
        return int(self.builder.CreateNumpyVector(np.array(values, np.int32)))

    def _offsets(self, offsets: list[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())


def test_tensors_come_with_names_shapes_and_constants() -> None:
    network = read_network(FileBuilder().content())
    assert [tensor.name for tensor in network.tensors] == [
        "picture",
        "stored",
        "widened",
        "product",
        "result",
    ]
    assert network.tensors[PICTURE].shape == (1, 2, 2, 3)
    assert network.tensors[PICTURE].constant is None
    stored = network.tensors[STORED].constant
    assert stored is not None
    assert stored.dtype == np.float16
    assert stored.tolist() == HALVES.tolist()
    assert (network.inputs, network.outputs) == ((PICTURE,), (RESULT,))


def test_operators_come_with_their_options() -> None:
    _, product, mystery = read_network(FileBuilder().content()).operators
    assert (product.kind, product.inputs, product.outputs) == (
        "MUL",
        (PICTURE, WIDENED),
        (PRODUCT,),
    )
    assert product.integer("FusedActivationFunction") == tflite.ActivationFunctionType.RELU
    assert (mystery.kind, mystery.version) == ("Mystery", 2)
    assert mystery.integers("subset_idxs") == (3, 1, 2)
    assert mystery.number("scale_x") == 1.5
    assert mystery.number("output_width") == 16.0


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda operator: operator.integer("scale_x"), id="whole number of a fraction"),
        pytest.param(lambda operator: operator.number("subset_idxs"), id="number of a list"),
        pytest.param(lambda operator: operator.integers("scale_x"), id="list of a number"),
        pytest.param(lambda operator: operator.integer("nothing"), id="missing"),
    ],
)
def test_a_wrong_option_is_refused_with_the_operators_name(ask: object) -> None:
    with pytest.raises(ConversionError, match="Mystery"):
        ask(read_network(FileBuilder().content()).operators[2])  # type: ignore[operator]


def test_an_unknown_custom_operator_is_named_on_conversion() -> None:
    with pytest.raises(ConversionError, match="Mystery"):
        convert({"net.tflite": FileBuilder().content()})


def test_another_network_refines_no_points() -> None:
    with pytest.raises(ConversionError, match="wanted lips and eyes"):
        refinement_indices(FileBuilder().content())


def test_constants_of_another_type_are_refused() -> None:
    with pytest.raises(ConversionError, match="'stored'"):
        read_network(FileBuilder(stored_type=tflite.TensorType.STRING).content())


@pytest.mark.parametrize("length", [8, 40, 200, 400])
def test_a_cut_file_is_refused(length: int) -> None:
    with pytest.raises(ConversionError, match="fetch it again"):
        read_network(FileBuilder().content()[:length])


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(ConversionError, match="TFL3"):
        read_network(b"\x08\x00\x00\x00ONNX" + bytes(64))

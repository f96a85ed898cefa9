import struct

import numpy as np
import pytest

from app.core.errors import ConversionError
from app.inference.convert.ncnn_file import WeightReader, parse_param

TEXT = """7767517
2 2
Input  in   0 1 data
Thing  it   1 2 data left right 0=3 1=-2 4=5.0e-01 -23310=2,1.0,2.5e+00
"""


def test_a_line_becomes_a_layer() -> None:
    layer = parse_param(TEXT)[1]
    assert (layer.kind, layer.name) == ("Thing", "it")
    assert (layer.inputs, layer.outputs) == (("data",), ("left", "right"))
    assert layer.parameters == {0: 3, 1: -2, 4: 0.5, 10: (1.0, 2.5)}


def test_a_parameter_is_read_as_what_it_has_to_be() -> None:
    layer = parse_param(TEXT)[1]
    assert layer.integer(0, 9) == 3
    assert layer.integer(7, 9) == 9
    assert layer.number(4, 0.0) == 0.5
    assert layer.array(10) == (1.0, 2.5)
    assert layer.array(7) == ()


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda layer: layer.integer(4, 0), id="whole number of a fraction"),
        pytest.param(lambda layer: layer.number(10, 0.0), id="number of an array"),
        pytest.param(lambda layer: layer.array(0), id="array of a number"),
        pytest.param(lambda layer: layer.refuse_others(0, 1, 4), id="parameter nobody knows"),
    ],
)
def test_a_wrong_parameter_is_refused_with_the_layers_name(ask: object) -> None:
    with pytest.raises(ConversionError, match="Thing 'it'"):
        ask(parse_param(TEXT)[1])  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("1234\n1 1\n", id="other magic number"),
        pytest.param(TEXT.replace("2 2", "3 2"), id="a layer is missing"),
        pytest.param(TEXT.replace("0=3", "0"), id="parameter without a value"),
        pytest.param(TEXT.replace("=2,1.0", "=3,1.0"), id="array shorter than it says"),
        pytest.param("7767517\n1 1\nInput in 0 2 data\n", id="blob is missing"),
        pytest.param("7767517\n1 1\nInput in\n", id="line is cut"),
    ],
)
def test_a_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(ConversionError, match="param file"):
        parse_param(text)


def test_half_precision_is_widened_and_padded_to_four_bytes() -> None:
    halves = np.array([1, -2, 0.5], "<f2").tobytes() + b"\0\0"
    data = struct.pack("<I", 0x01306B47) + halves + np.array([7], "<f4").tobytes()
    reader = WeightReader(data)
    widened = reader.tagged(3)
    assert widened.dtype == np.float32
    assert widened.tolist() == [1, -2, 0.5]
    assert reader.plain(1).tolist() == [7]
    reader.finish()


def test_single_precision_has_a_tag_of_zero() -> None:
    reader = WeightReader(struct.pack("<I", 0) + np.array([1.5, 2.5], "<f4").tobytes())
    assert reader.tagged(2).tolist() == [1.5, 2.5]


def test_another_storage_type_is_refused() -> None:
    with pytest.raises(ConversionError, match="0x000d4b38"):
        WeightReader(struct.pack("<I", 0x000D4B38) + b"\0" * 8).tagged(2)


def test_weights_that_end_too_early_are_refused() -> None:
    with pytest.raises(ConversionError, match="at least 12"):
        WeightReader(b"\0" * 8).plain(3)


def test_weights_left_over_are_refused() -> None:
    with pytest.raises(ConversionError, match="0 of 8 bytes"):
        WeightReader(b"\0" * 8).finish()

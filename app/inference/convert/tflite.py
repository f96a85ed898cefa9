"""MediaPipe's face meshes, tflite files of half precision, to ONNX.

Contract of the result: input `input` `(N, 3, H, W)`, RGB from 0 to 1, N free. The attention mesh
(`face_landmark_with_attention.tflite`) has these outputs, in pixels of the 192 x 192 crop:

- `mesh` `(N, 468, 3)`; z at the scale of x, smaller is nearer;
- `lips` `(N, 80, 2)`, `left_eye` and `right_eye` `(N, 71, 2)`: better places of those mesh points that `refinement_indices` names;
- `left_iris`, `right_iris` `(N, 5, 2)`: center, then four points on the rim;
- `presence` `(N, 1)`: logit of there being a face.

Left and right are MediaPipe's names in this file: **`left_eye` is the eye at the viewer's left**, which is the person's right one
(mesh points 33 to 133), and the points 468 to 472 of MediaPipe's 478 are `left_iris`.
Other files keep their output names, with pictures as `(N, C, H, W)`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.graph import Port
from app.inference.convert.mediapipe_ops import CUSTOM, MATRIX, POINTS, region_of
from app.inference.convert.tflite_file import Network, Operator, read_network
from app.inference.convert.tflite_lowering import PICTURE_RANK, Lowering
from app.inference.convert.tflite_ops import STANDARD, dequantize

_INPUT = "input"
_LOWERINGS = MappingProxyType({**STANDARD, **CUSTOM})

_ATTENTION_OUTPUTS: Mapping[str, tuple[str, tuple[int, ...]]] = MappingProxyType(
    {
        "output_mesh_identity": ("mesh", (468, 3)),
        "output_lips": ("lips", (80, 2)),
        "output_left_eye": ("left_eye", (71, 2)),
        "output_right_eye": ("right_eye", (71, 2)),
        "output_left_iris": ("left_iris", (5, 2)),
        "output_right_iris": ("right_iris", (5, 2)),
        "conv_faceflag": ("presence", (1,)),
    }
)
"""The attention mesh's own output names, what we call them, and how they are laid out."""

_REFINED = MappingProxyType(
    {"lips": "output_lips", "left_eye": "output_left_eye", "right_eye": "output_right_eye"}
)


def convert(sources: Mapping[str, bytes]) -> bytes:
    """Rewrite a tflite network.

    Args:
        sources: One `.tflite` file, by name.

    Returns:
        The ONNX file.

    Raises:
        ConversionError: The file is missing or damaged, or the network has an operator that we do not know.
    """
    if len(sources) != 1:
        raise ConversionError(f"tflite sources: got {len(sources)} files, wanted one")
    (data,) = sources.values()
    return lower(read_network(data))


def lower(network: Network) -> bytes:
    """Write a network as ONNX; `convert` without the file.

    Raises:
        ConversionError: The network has an operator that we do not know, or another number of inputs than one.
    """
    if len(network.inputs) != 1:
        raise ConversionError(f"tflite network: got {len(network.inputs)} inputs, wanted one")
    lowering = Lowering(network, {network.inputs[0]: _INPUT})
    lowering.graph.reserve(_INPUT)
    for operator in network.operators:
        _add(lowering, operator)
    outputs = [_add_output(lowering, index) for index in network.outputs]
    picture = Port(_INPUT, _free_shape(network.tensors[network.inputs[0]].shape))
    return lowering.graph.build("tflite", [picture], outputs)


def refinement_indices(data: bytes) -> dict[str, NDArray[np.int64]]:
    """Which of the 468 mesh points the attention mesh's lips and eyes refine.

    Args:
        data: The attention mesh's tflite file, which holds the lists as options of its custom operators.

    Returns:
        `lips` `(80,)`, `left_eye` and `right_eye` `(71,)`, in the order of those outputs' points.

    Raises:
        ConversionError: The file has no such outputs.
    """
    network = read_network(data)
    positions = {network.tensors[index].name: index for index in network.outputs}
    if not set(_REFINED.values()) <= positions.keys():
        raise ConversionError(
            f"tflite network: its outputs are {sorted(positions)}, wanted lips and eyes"
        )
    return {
        name: np.array(region_of(_matrix_behind(network, positions[output])).subset, np.int64)
        for name, output in _REFINED.items()
    }


def _matrix_behind(network: Network, index: int) -> Operator:
    """The operator that placed the crop from which the tensor was read."""
    makers = {output: operator for operator in network.operators for output in operator.outputs}
    while index in makers and makers[index].kind != MATRIX:
        maker = makers[index]
        index = maker.inputs[1] if maker.kind == POINTS else maker.inputs[0]
    if index not in makers:
        raise ConversionError(f"tflite network: no {MATRIX} stands behind an output")
    return makers[index]


def _add(lowering: Lowering, operator: Operator) -> None:
    if operator.kind == "DEQUANTIZE":
        dequantize(lowering, operator)
        return
    if operator.kind not in _LOWERINGS or len(operator.outputs) != 1:
        raise ConversionError(f"{operator}: this operator is not supported")
    lowering.set_value(operator.outputs[0], _LOWERINGS[operator.kind](lowering, operator))


def _add_output(lowering: Lowering, index: int) -> Port:
    file_name, value = lowering.name(index), lowering.output_value(index)
    if file_name not in _ATTENTION_OUTPUTS:
        name = lowering.graph.reserve(f"{file_name}:0")
        lowering.graph.add_output(name, "Identity", [value])
        return Port(name, _free_shape(lowering.shape(index)))
    name, shape = _ATTENTION_OUTPUTS[file_name]
    lowering.graph.add_output(
        name, "Reshape", [value, lowering.graph.ints([-1, *shape], "shape")]
    )
    return Port(name, ("N", *shape))


def _free_shape(shape: tuple[int, ...]) -> tuple[int | str, ...]:
    if len(shape) != PICTURE_RANK:
        return ("N", *shape[1:])
    return ("N", shape[3], shape[1], shape[2])

"""MediaPipe's face meshes, tflite files of half precision, to ONNX.

Contract of the result: input `input` `(N, 3, H, W)`, RGB from 0 to 1, N free. The attention mesh
(`face_landmark_with_attention.tflite`) has these outputs, in pixels of its 192 x 192 crop:

- `mesh` `(N, 468, 3)`: z at the scale of x, smaller is nearer.
- `lips` `(N, 80, 2)`, `left_eye` and `right_eye` `(N, 71, 2)`: better places of the mesh points that
  `refinement_indices` lists.
- `left_iris`, `right_iris` `(N, 5, 2)`: the center, then four points of the rim.
- `presence` `(N, 1)`: logit of there being a face.

Left and right are the file's own words, as in MediaPipe's graphs: **`left_eye` is the eye at the viewer's left**, with
the corners 33 and 133, and `left_iris` are the points 468 to 472 of MediaPipe's 478.
Other files keep the names of their outputs; pictures come out as `(N, C, H, W)`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.graph import GraphBuilder, Port
from app.inference.convert.mediapipe_ops import CUSTOM, MATRIX, POINTS, region_of
from app.inference.convert.tflite_file import Network, Operator, Tensor, read_network
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
    picture = Port(_INPUT, _free_shape(network.tensors[network.inputs[0]].shape))
    outputs = [_port(network.tensors[index]) for index in network.outputs]
    graph = GraphBuilder(_INPUT, *(port.name for port in outputs))
    lowering = Lowering(network, graph, {network.inputs[0]: _INPUT})
    for operator in network.operators:
        _add(lowering, operator)
    for index, port in zip(network.outputs, outputs, strict=True):
        shape = graph.ints([-1, *port.shape[1:]], "shape")
        graph.add_output(port.name, op_type="Reshape", inputs=[lowering.written(index), shape])
    return graph.build("tflite", inputs=[picture], outputs=outputs)


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
    try:
        if operator.kind == "DEQUANTIZE":
            dequantize(lowering, operator)
        elif operator.kind in _LOWERINGS and len(operator.outputs) == 1:
            value = _LOWERINGS[operator.kind](lowering, operator)
            lowering.set_value(operator.outputs[0], value)
        else:
            raise ConversionError(f"{operator}: this operator is not supported")
    except (ValueError, IndexError) as error:
        raise ConversionError(f"{operator}: its figures do not fit together: {error}") from error


def _port(tensor: Tensor) -> Port:
    if tensor.name not in _ATTENTION_OUTPUTS:
        return Port(tensor.name, _free_shape(tensor.shape))
    name, shape = _ATTENTION_OUTPUTS[tensor.name]
    return Port(name, ("N", *shape))


def _free_shape(shape: tuple[int, ...]) -> tuple[int | str, ...]:
    if len(shape) != PICTURE_RANK:
        return ("N", *shape[1:])
    return ("N", shape[3], shape[1], shape[2])

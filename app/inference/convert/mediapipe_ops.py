"""MediaPipe's three custom tflite operators, version 2, as standard ONNX nodes.

They let the attention mesh look again at the lips and the eyes. A *matrix* is `(N, 4, 4)` and takes the homogeneous
point `(x, y, 0, 1)` of a small crop of `w x h` cells to cells of a feature map, or to pixels of the network's
input; the center of the first cell is at (0.5, 0.5).

- `Landmarks2TransformMatrix`: `T(c) R(a) diag(sx W / w, sy H / h) T(-w/2, -h/2)`. `a` is the roll of the line between
  two given landmarks; `W x H` is the box around a given subset of them after turning by `-a`; `c` is the center of
  that box, turned back; `sx` and `sy` widen the box.
- `TransformTensorBilinear`: each cell of the output is the feature map, sampled bilinearly where the matrix puts the
  cell's center, and zero where that lies beyond the outermost centers.
- `TransformLandmarks`: takes points through the matrix.

Source: MediaPipe, `mediapipe/util/tflite/operations`: `landmarks_to_transform_matrix.cc`,
`transform_tensor_bilinear.cc`, `transform_landmarks.cc`, namespaces `v2`; Apache-2.0. Formulas only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from app.core.errors import ConversionError
from app.inference.convert.graph import GraphBuilder
from app.inference.convert.tflite_file import Operator
from app.inference.convert.tflite_lowering import Lower, Lowering

MATRIX = "Landmarks2TransformMatrix"
BILINEAR = "TransformTensorBilinear"
POINTS = "TransformLandmarks"

_VERSION = 2
_SHORTEST = 1e-9
"""Keeps the roll finite where both landmarks fall on one spot."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """What `Landmarks2TransformMatrix` is told.

    Attributes:
        level_pair: The two landmarks whose line is to be level, left one first.
        subset: The landmarks around which the box is drawn.
        scale_xy: How much wider and higher than that box the crop is.
        size_wh: Cells of the crop.
    """

    level_pair: tuple[int, int]
    subset: tuple[int, ...]
    scale_xy: tuple[float, float]
    size_wh: tuple[int, int]


def region_of(operator: Operator) -> Region:
    """Read the options of a `Landmarks2TransformMatrix`.

    Raises:
        ConversionError: One is missing, or asks for a crop that is not level.
    """
    if operator.number("target_rotation_radians") != 0.0:
        raise ConversionError(f"{operator}: a target rotation other than 0 is not supported")
    return Region(
        level_pair=(operator.integer("left_rotation_idx"), operator.integer("right_rotation_idx")),
        subset=operator.integers("subset_idxs"),
        scale_xy=(operator.number("scale_x"), operator.number("scale_y")),
        size_wh=(operator.integer("output_width"), operator.integer("output_height")),
    )


def landmarks_to_matrix(graph: GraphBuilder, landmarks: str, *, region: Region) -> str:
    """Append the nodes of `Landmarks2TransformMatrix`.

    Args:
        graph: Is added to.
        landmarks: Value `(N, P, 3)`; z is not looked at.
        region: What to crop.

    Returns:
        Value `(N, 4, 4)`.
    """
    points = graph.add("Gather", [landmarks, graph.ints([0, 1])], hint="points", axis=2)
    roll = _roll(graph, points, pair=region.level_pair)
    subset = graph.add("Gather", [points, graph.ints(region.subset)], hint="subset", axis=1)
    level = graph.add("MatMul", [subset, roll], hint="level")
    highest = graph.add("ReduceMax", [level], axes=[1], keepdims=1)
    lowest = graph.add("ReduceMin", [level], axes=[1], keepdims=1)
    middle = graph.add("Mul", [graph.add("Add", [highest, lowest]), graph.floats(0.5)])
    center = graph.add("MatMul", [roll, _column(graph, middle)], hint="center")
    box_size = graph.add("Sub", [highest, lowest], hint="box_size")
    per_cell = graph.floats(np.divide(region.scale_xy, region.size_wh))
    cell_size = graph.add("Mul", [box_size, per_cell], hint="cell_size")
    linear = graph.add("Mul", [roll, cell_size], hint="linear")
    return _centered(graph, linear, center=center, size_wh=region.size_wh)


def _roll(graph: GraphBuilder, points: str, *, pair: tuple[int, int]) -> str:
    """`(N, 2, 2)`: the turn by the roll of the line from the first to the second landmark."""
    first, second = (graph.add("Gather", [points, graph.ints(index)], axis=1) for index in pair)
    across = graph.add("Sub", [second, first], hint="across")
    length = graph.add("ReduceL2", [across], axes=[1], keepdims=1)
    length = graph.add("Max", [length, graph.floats(_SHORTEST)])
    cos_sin = graph.add("Div", [across, length], hint="cos_sin")
    rows = graph.add("MatMul", [cos_sin, graph.floats([[1, 0, 0, 1], [0, -1, 1, 0]])])
    return graph.add("Reshape", [rows, graph.ints([-1, 2, 2])], hint="roll")


def _column(graph: GraphBuilder, row: str) -> str:
    return graph.add("Transpose", [row], perm=[0, 2, 1])


def _centered(graph: GraphBuilder, linear: str, *, center: str, size_wh: tuple[int, int]) -> str:
    """`(N, 4, 4)`: the linear map about the middle of the crop, moved to the center."""
    half_crop = graph.floats(np.divide(size_wh, 2)[:, None])
    shift = graph.add("Sub", [center, graph.add("MatMul", [linear, half_crop])], hint="shift")
    affine = graph.add("Concat", [linear, shift], hint="affine", axis=2)
    # Two products spread the (2, 3) affine over rows 0, 1 and columns 0, 1, 3; z and 1 stay as they are.
    rows = graph.add("MatMul", [graph.floats(np.eye(4, 2)), affine])
    spread = graph.add("MatMul", [rows, graph.floats(np.eye(4)[[0, 1, 3]])])
    return graph.add("Add", [spread, graph.floats(np.diag([0, 0, 1, 1]))], hint="matrix")


def sample_bilinear(
    graph: GraphBuilder,
    picture: str,
    *,
    matrix: str,
    picture_wh: tuple[int, int],
    size_wh: tuple[int, int],
) -> str:
    """Append the nodes of `TransformTensorBilinear`.

    Args:
        graph: Is added to.
        picture: Value `(N, C, H, W)`.
        matrix: Value `(N, 4, 4)`, from cells of the output to cells of `picture`.
        picture_wh: W and H.
        size_wh: Of the output.

    Returns:
        Value `(N, C, h, w)`.
    """
    # GridSample's -1 to 1 runs from border to border, as W cells do whose centers lie at a half.
    to_unit = np.diag(np.divide(2.0, picture_wh)) @ np.eye(2, 4)
    rows = graph.add("MatMul", [graph.floats(to_unit), matrix])
    from_zero = graph.add("MatMul", [rows, graph.floats(_cell_centers(size_wh))])
    unit = graph.add("Sub", [_column(graph, from_zero), graph.floats(1.0)])
    shape = graph.ints([-1, size_wh[1], size_wh[0], 2])
    grid = graph.add("Reshape", [unit, shape], hint="grid")
    sampled = graph.add(
        "GridSample", [picture, grid], mode="bilinear", padding_mode="border", align_corners=0
    )
    return graph.add("Mul", [sampled, _inside(graph, grid, picture_wh=picture_wh)], hint="crop")


def _cell_centers(size_wh: tuple[int, int]) -> NDArray[np.float64]:
    """`(4, h w)` homogeneous points, row by row."""
    y, x = np.mgrid[: size_wh[1], : size_wh[0]].reshape(2, -1) + 0.5
    return np.stack([x, y, np.zeros_like(x), np.ones_like(x)])


def _inside(graph: GraphBuilder, grid: str, *, picture_wh: tuple[int, int]) -> str:
    """`(N, 1, h, w)`: 1 where the sampled point lies between the outermost centers, else 0."""
    outermost = graph.floats(1.0 - np.divide(1.0, picture_wh))
    beyond = graph.add("Sub", [graph.add("Abs", [grid]), outermost])
    farthest = graph.add("ReduceMax", [beyond], axes=[3], keepdims=0)
    is_inside = graph.add("LessOrEqual", [farthest, graph.floats(0.0)])
    channel = graph.add("Unsqueeze", [is_inside, graph.ints([1])])
    return graph.add("Cast", [channel], hint="inside", to=TensorProto.FLOAT)


def transform_points(graph: GraphBuilder, points: str, *, matrix: str) -> str:
    """Append the nodes of `TransformLandmarks`.

    Args:
        graph: Is added to.
        points: Value `(N, P, 2)`.
        matrix: Value `(N, 4, 4)`.

    Returns:
        Value `(N, P, 2)`.
    """
    # Points are rows here, so the matrix comes from the right, transposed.
    transposed = graph.add("Transpose", [matrix], perm=[0, 2, 1])
    columns = graph.add("Gather", [transposed, graph.ints([0, 1])], axis=2)
    linear = graph.add("Gather", [columns, graph.ints([0, 1])], axis=1)
    shift = graph.add("Gather", [columns, graph.ints([3])], axis=1)
    return graph.add("Add", [graph.add("MatMul", [points, linear]), shift], hint="refined")


def _lower_matrix(lowering: Lowering, operator: Operator) -> str:
    _require_version(operator)
    region = region_of(operator)
    return landmarks_to_matrix(lowering.graph, lowering.value(operator, 0), region=region)


def _lower_bilinear(lowering: Lowering, operator: Operator) -> str:
    _require_version(operator)
    height, width, _ = lowering.picture_shape(operator)
    return sample_bilinear(
        lowering.graph,
        lowering.value(operator, 0),
        matrix=lowering.value(operator, 1),
        picture_wh=(width, height),
        size_wh=(operator.integer("output_width"), operator.integer("output_height")),
    )


def _lower_points(lowering: Lowering, operator: Operator) -> str:
    _require_version(operator)
    shape = lowering.shape(operator.inputs[0])
    if len(shape) != 3 or shape[2] != 2:
        raise ConversionError(f"{operator}: points have shape {shape}, wanted (1, P, 2)")
    matrix = lowering.value(operator, 1)
    return transform_points(lowering.graph, lowering.value(operator, 0), matrix=matrix)


def _require_version(operator: Operator) -> None:
    if operator.version != _VERSION:
        raise ConversionError(
            f"{operator}: version {operator.version} is not supported, wanted {_VERSION}"
        )


CUSTOM: Mapping[str, Lower] = MappingProxyType(
    {MATRIX: _lower_matrix, BILINEAR: _lower_bilinear, POINTS: _lower_points}
)
"""By the name that the operator carries in the file."""

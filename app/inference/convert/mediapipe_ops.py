"""MediaPipe's three custom tflite operators, version 2, as standard ONNX nodes.

They let the attention mesh look again at the lips and the eyes. A *matrix* is `(N, 4, 4)` and takes the
homogeneous point `(x, y, 0, 1)` of a small crop, `w x h` cells, to the frame of the landmarks; points are in units of cells
and a cell's center lies at a half.

- `Landmarks2TransformMatrix`: `T(c) R(a) diag(sx W / w, sy H / h) T(-w/2, -h/2)`. `a` is the roll of the line
  between two given landmarks; `W x H` is the box around a given subset of them after turning by `-a`,
  `c` is that box's center, turned back; `sx` and `sy` widen the box.
- `TransformTensorBilinear`: cell `(i, j)` of the output is the feature map, sampled bilinearly where the matrix puts the
  cell's center; zero where that lies beyond the outermost centers.
- `TransformLandmarks`: takes points through the matrix.

Source: MediaPipe, `mediapipe/util/tflite/operations`: `landmarks_to_transform_matrix.cc`,
`transform_tensor_bilinear.cc`, `transform_landmarks.cc`, namespaces `v2`; Apache-2.0. Formulas only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from app.core.errors import ConversionError
from app.inference.convert.graph import GraphBuilder
from app.inference.convert.tflite_file import Operator
from app.inference.convert.tflite_lowering import Lowering
from app.inference.convert.tflite_ops import Lower

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
    subset: Sequence[int]
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


def landmarks_to_matrix(graph: GraphBuilder, landmarks: str, region: Region) -> str:
    """Append the nodes of `Landmarks2TransformMatrix`.

    Args:
        graph: Is added to.
        landmarks: Value `(N, P, 3)`; z is not looked at.
        region: What to crop.

    Returns:
        Value `(N, 4, 4)`.
    """
    points = graph.add("Gather", [landmarks, graph.ints([0, 1], "xy")], "points", axis=2)
    roll = _roll(graph, points, region.level_pair)
    subset = graph.add("Gather", [points, graph.ints(region.subset, "subset")], axis=1)
    level = graph.add("MatMul", [subset, roll], "level")
    highest = graph.add("ReduceMax", [level], axes=[1], keepdims=1)
    lowest = graph.add("ReduceMin", [level], axes=[1], keepdims=1)
    size = graph.add("Sub", [highest, lowest], "box_size")
    middle = graph.add(
        "Mul", [graph.add("Add", [highest, lowest]), graph.floats(0.5)], "box_middle"
    )
    return _compose(graph, roll, middle, _cell_size(graph, size, region), region)


def _roll(graph: GraphBuilder, points: str, pair: tuple[int, int]) -> str:
    """The `(N, 2, 2)` turn by the roll of the line from the first to the second landmark."""
    first, second = (
        graph.add("Gather", [points, graph.ints(index, "landmark")], axis=1) for index in pair
    )
    across = graph.add("Sub", [second, first], "across")
    length = graph.add("ReduceL2", [across], axes=[1], keepdims=1)
    length = graph.add("Max", [length, graph.floats(_SHORTEST)])
    cos_sin = graph.add("Div", [across, length], "cos_sin")
    to_turn = graph.floats([[1, 0, 0, 1], [0, -1, 1, 0]], "to_turn")
    turn = graph.add("MatMul", [cos_sin, to_turn])
    return graph.add("Reshape", [turn, graph.ints([-1, 2, 2], "shape")], "roll")


def _cell_size(graph: GraphBuilder, box_size: str, region: Region) -> str:
    factors = np.divide(region.scale_xy, region.size_wh)
    return graph.add("Mul", [box_size, graph.floats(factors, "per_cell")], "cell_size")


def _compose(graph: GraphBuilder, roll: str, middle: str, cell_size: str, region: Region) -> str:
    """`T(R m) R diag(cell) T(-size / 2)` as a `(N, 4, 4)`, from `m` in the level frame."""
    linear = graph.add("Mul", [roll, cell_size], "linear")
    level_middle = graph.add("Transpose", [middle], perm=[0, 2, 1])
    center = graph.add("MatMul", [roll, level_middle], "center")
    half_crop = graph.floats(np.divide(region.size_wh, 2)[:, None], "half_crop")
    shift = graph.add("Sub", [center, graph.add("MatMul", [linear, half_crop])], "shift")
    affine = graph.add("Concat", [linear, shift], "affine", axis=2)
    return _embed(graph, affine)


def _embed(graph: GraphBuilder, affine: str) -> str:
    """A `(N, 2, 3)` affine as a `(N, 4, 4)` that leaves z alone."""
    above = graph.floats(np.eye(4, 2), "above")
    beside = graph.floats(np.eye(4)[[0, 1, 3]], "beside")
    widened = graph.add("MatMul", [graph.add("MatMul", [above, affine]), beside])
    return graph.add("Add", [widened, graph.floats(np.diag([0, 0, 1, 1]), "z_and_one")], "matrix")


def sample_bilinear(
    graph: GraphBuilder,
    picture: str,
    matrix: str,
    *,
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
    # ONNX's grid runs from -1 to 1 between the outer borders, and so do cells whose centers lie at a half.
    to_unit = np.diag(np.divide(2.0, picture_wh)) @ np.eye(2, 4)
    rows = graph.add("MatMul", [graph.floats(to_unit, "to_unit"), matrix])
    centers = graph.floats(_cell_centers(size_wh), "cell_centers")
    from_zero = graph.add("MatMul", [rows, centers])
    flat = graph.add("Sub", [from_zero, graph.floats(1.0)])
    shape = graph.ints([-1, size_wh[1], size_wh[0], 2], "shape")
    grid = graph.add("Reshape", [graph.add("Transpose", [flat], perm=[0, 2, 1]), shape], "grid")
    sampled = graph.add(
        "GridSample", [picture, grid], mode="bilinear", padding_mode="border", align_corners=0
    )
    return graph.add("Mul", [sampled, _inside(graph, grid, picture_wh)], "crop")


def _cell_centers(size_wh: tuple[int, int]) -> np.ndarray[tuple[int, ...]]:
    """`(4, h w)` homogeneous points, row by row."""
    y, x = np.mgrid[: size_wh[1], : size_wh[0]].reshape(2, -1) + 0.5
    return np.stack([x, y, np.zeros_like(x), np.ones_like(x)])


def _inside(graph: GraphBuilder, grid: str, picture_wh: tuple[int, int]) -> str:
    """`(N, 1, h, w)`: 1 where the sampled point lies between the outermost centers, else 0."""
    outermost = graph.floats(1.0 - np.divide(1.0, picture_wh), "outermost")
    distance = graph.add("Sub", [graph.add("Abs", [grid]), outermost])
    farthest = graph.add("ReduceMax", [distance], axes=[3], keepdims=0)
    is_inside = graph.add("LessOrEqual", [farthest, graph.floats(0.0)])
    channel = graph.add("Unsqueeze", [is_inside, graph.ints([1], "axis")])
    return graph.add("Cast", [channel], "inside", to=1)


def transform_points(graph: GraphBuilder, points: str, matrix: str) -> str:
    """Append the nodes of `TransformLandmarks`.

    Args:
        graph: Is added to.
        points: Value `(N, P, 2)`.
        matrix: Value `(N, 4, 4)`.

    Returns:
        Value `(N, P, 2)`.
    """
    # Points lie in rows here, so the matrix comes in from the right, transposed.
    columns = graph.add("Transpose", [matrix], perm=[0, 2, 1])
    columns = graph.add("Gather", [columns, graph.ints([0, 1], "xy")], axis=2)
    linear = graph.add("Gather", [columns, graph.ints([0, 1], "xy")], axis=1)
    shift = graph.add("Gather", [columns, graph.ints([3], "one")], axis=1)
    return graph.add("Add", [graph.add("MatMul", [points, linear]), shift], "refined")


def _lower_matrix(lowering: Lowering, operator: Operator) -> str:
    _require_version(operator)
    return landmarks_to_matrix(lowering.graph, lowering.value(operator, 0), region_of(operator))


def _lower_bilinear(lowering: Lowering, operator: Operator) -> str:
    _require_version(operator)
    height, width, _ = lowering.picture_shape(operator)
    return sample_bilinear(
        lowering.graph,
        lowering.value(operator, 0),
        lowering.value(operator, 1),
        picture_wh=(width, height),
        size_wh=(operator.integer("output_width"), operator.integer("output_height")),
    )


def _lower_points(lowering: Lowering, operator: Operator) -> str:
    _require_version(operator)
    shape = lowering.shape(operator.inputs[0])
    if len(shape) != 3 or shape[2] != 2:
        raise ConversionError(f"{operator}: points have shape {shape}, wanted (1, P, 2)")
    return transform_points(
        lowering.graph, lowering.value(operator, 0), lowering.value(operator, 1)
    )


def _require_version(operator: Operator) -> None:
    if operator.version != _VERSION:
        raise ConversionError(
            f"{operator}: version {operator.version} is not supported, wanted {_VERSION}"
        )


CUSTOM: Mapping[str, Lower] = MappingProxyType(
    {MATRIX: _lower_matrix, BILINEAR: _lower_bilinear, POINTS: _lower_points}
)
"""By the name that the operator carries in the file."""

"""The attention mesh's three operators, against their formulas written out point by point."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import ConversionError
from app.inference.convert.graph import GraphBuilder, Port
from app.inference.convert.mediapipe_ops import (
    Region,
    landmarks_to_matrix,
    region_of,
    sample_bilinear,
    transform_points,
)
from app.inference.convert.tflite import lower
from app.inference.convert.tflite_file import Network, Operator, Option, Tensor

Array = NDArray[np.float32]
RunOnnx = Callable[..., dict[str, Array]]

RNG = np.random.default_rng(3)
REGION = Region(level_pair=(0, 4), subset=(1, 2, 3, 5), scale_xy=(1.5, 1.25), size_wh=(8, 4))
OPTIONS: dict[str, Option] = {
    "left_rotation_idx": 0,
    "right_rotation_idx": 4,
    "subset_idxs": [1, 2, 3, 5],
    "scale_x": 1.5,
    "scale_y": 1.25,
    "output_width": 8,
    "output_height": 4,
    "target_rotation_radians": 0.0,
}


def turned(points: Array, angle: float) -> Array:
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.asarray(points @ np.array([[cosine, sine], [-sine, cosine]]), np.float32)


def move(x: float, y: float) -> Array:
    matrix = np.eye(4, dtype=np.float32)
    matrix[:2, 3] = x, y
    return matrix


def expected_matrix(landmarks: Array) -> Array:
    """`T(c) R(a) diag(sx W / w, sy H / h) T(-w/2, -h/2)`, as the module states it."""
    first, second = landmarks[REGION.level_pair[0], :2], landmarks[REGION.level_pair[1], :2]
    roll = float(np.arctan2(*(second - first)[::-1]))
    level = turned(landmarks[list(REGION.subset), :2], -roll)
    low, high = level.min(0), level.max(0)
    center = turned((low + high) / 2, roll)
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]]
    scale = np.diag([*((high - low) * REGION.scale_xy / REGION.size_wh), 1, 1])
    half_w, half_h = np.array(REGION.size_wh) / 2
    return np.asarray(move(*center) @ turn @ scale @ move(-half_w, -half_h), np.float32)


def matrix_graph() -> bytes:
    graph = GraphBuilder("input", "matrix")
    matrix = landmarks_to_matrix(graph, "input", region=REGION)
    graph.add_output("matrix", op_type="Identity", inputs=[matrix])
    return graph.build(
        "test", inputs=[Port("input", ("N", 6, 3))], outputs=[Port("matrix", ("N", 4, 4))]
    )


def test_the_matrix_centers_levels_and_scales_the_crop(run_onnx: RunOnnx) -> None:
    landmarks = (50 * RNG.random((5, 6, 3))).astype(np.float32)
    got = run_onnx(matrix_graph(), input=landmarks)["matrix"]
    expected = np.stack([expected_matrix(points) for points in landmarks])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


def test_the_matrix_takes_the_crops_middle_to_the_boxs_middle(run_onnx: RunOnnx) -> None:
    landmarks = np.array(
        [[0, 0, 9], [10, 20, 9], [30, 20, 9], [30, 60, 9], [8, 0, 9], [10, 60, 9]], np.float32
    )
    matrix = run_onnx(matrix_graph(), input=landmarks[None])["matrix"][0]
    assert (matrix @ [4, 2, 0, 1]).tolist() == [20, 40, 0, 1]
    assert (matrix @ [8, 4, 0, 1]).tolist() == [20 + 1.5 * 10, 40 + 1.25 * 20, 0, 1]


def test_two_landmarks_on_one_spot_give_finite_figures(run_onnx: RunOnnx) -> None:
    landmarks = np.ones((1, 6, 3), np.float32)
    assert np.isfinite(run_onnx(matrix_graph(), input=landmarks)["matrix"]).all()


def bilinear(picture: Array, x: float, y: float) -> Array:
    """The `(C, H, W)` picture at a point whose whole numbers are cell centers; zero beyond the outermost ones."""
    _, height, width = picture.shape
    if not (0 <= x <= width - 1 and 0 <= y <= height - 1):
        return np.zeros(len(picture), np.float32)
    column, row = min(int(x), width - 2), min(int(y), height - 2)
    right, down = x - column, y - row
    upper = (1 - right) * picture[:, row, column] + right * picture[:, row, column + 1]
    lower_row = (1 - right) * picture[:, row + 1, column] + right * picture[:, row + 1, column + 1]
    return np.asarray((1 - down) * upper + down * lower_row, np.float32)


def expected_crop(picture: Array, matrix: Array) -> Array:
    crop = np.empty((len(picture), 4, 8), np.float32)
    for i in range(4):
        for j in range(8):
            x, y = (matrix @ [j + 0.5, i + 0.5, 0, 1])[:2] - 0.5
            crop[:, i, j] = bilinear(picture, x, y)
    return crop


@pytest.mark.parametrize(
    "matrix",
    [
        pytest.param(np.eye(4), id="nothing"),
        pytest.param(move(0.3, 0.6), id="a shift"),
        pytest.param(move(-2.2, 1.4), id="a shift beyond the border"),
        pytest.param(np.diag([0.7, 1.3, 1, 1]), id="a scale"),
        pytest.param(
            move(3, 1)
            @ np.array([[0.8, -0.6, 0, 0], [0.6, 0.8, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
            id="a turn",
        ),
    ],
)
def test_sampling_puts_cell_centers_through_the_matrix(matrix: Array, run_onnx: RunOnnx) -> None:
    graph = GraphBuilder("input", "matrix", "crop")
    crop = sample_bilinear(graph, "input", matrix="matrix", picture_wh=(9, 6), size_wh=(8, 4))
    graph.add_output("crop", op_type="Identity", inputs=[crop])
    content = graph.build(
        "test",
        inputs=[Port("input", ("N", 2, 6, 9)), Port("matrix", ("N", 4, 4))],
        outputs=[Port("crop", ("N", 2, 4, 8))],
    )
    pictures = RNG.random((2, 2, 6, 9), np.float32)
    matrices = np.stack([matrix, move(0.25, -0.125) @ matrix]).astype(np.float32)
    got = run_onnx(content, input=pictures, matrix=matrices)["crop"]
    expected = [expected_crop(*pair) for pair in zip(pictures, matrices, strict=True)]
    np.testing.assert_allclose(got, np.stack(expected), rtol=1e-4, atol=1e-5)


def test_points_go_through_the_matrix(run_onnx: RunOnnx) -> None:
    graph = GraphBuilder("input", "matrix", "points")
    points = transform_points(graph, "input", matrix="matrix")
    graph.add_output("points", op_type="Identity", inputs=[points])
    content = graph.build(
        "test",
        inputs=[Port("input", ("N", 7, 2)), Port("matrix", ("N", 4, 4))],
        outputs=[Port("points", ("N", 7, 2))],
    )
    given = RNG.random((3, 7, 2), np.float32)
    matrices = RNG.random((3, 4, 4), np.float32)
    got = run_onnx(content, input=given, matrix=matrices)["points"]
    expected = [
        [(matrix @ [x, y, 0, 1])[:2] for x, y in rows]
        for rows, matrix in zip(given, matrices, strict=True)
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_the_options_of_the_file_become_a_region() -> None:
    assert region_of(operator("Landmarks2TransformMatrix", OPTIONS)) == REGION


def operator(kind: str, options: dict[str, Option], version: int = 2) -> Operator:
    return Operator(kind=kind, inputs=(0,), outputs=(1,), options=options, version=version)


@pytest.mark.parametrize(
    ("custom", "complaint"),
    [
        pytest.param(
            operator("Landmarks2TransformMatrix", OPTIONS, version=1),
            "Landmarks2TransformMatrix: version 1",
            id="older version",
        ),
        pytest.param(
            operator("Landmarks2TransformMatrix", OPTIONS | {"target_rotation_radians": 0.5}),
            "target rotation",
            id="crop that is not level",
        ),
        pytest.param(
            operator("Landmarks2TransformMatrix", {}),
            "target_rotation_radians is None",
            id="option is missing",
        ),
        pytest.param(
            operator("TransformLandmarks", {}), "wanted .1, P, 2.", id="points with depth"
        ),
        pytest.param(
            operator("TransformTensorBilinear", {}), "wanted .1, H, W, C.", id="no picture"
        ),
    ],
)
def test_what_is_not_supported_is_named(custom: Operator, complaint: str) -> None:
    tensors = (Tensor(name="points", shape=(1, 6, 3)), Tensor(name="matrix", shape=(1, 4, 4)))
    network = Network(tensors=tensors, operators=(custom,), inputs=(0,), outputs=(1,))
    with pytest.raises(ConversionError, match=complaint):
        lower(network)

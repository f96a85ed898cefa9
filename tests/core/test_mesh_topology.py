import numpy as np
import pytest

from app.core.mesh_topology import (
    LEFT_EYE_REFINED,
    LIPS_REFINED,
    MESH_POINTS,
    RIGHT_EYE_REFINED,
    MeshTopology,
    load_topology,
)

OUTER_CORNERS = (33, 263)
FOREHEAD, NOSE_TIP, CHIN = 10, 1, 152


@pytest.fixture(scope="module")
def topology() -> MeshTopology:
    return load_topology()


def test_the_table_has_the_promised_shapes(topology: MeshTopology) -> None:
    assert (topology.vertices.shape, topology.vertices.dtype) == ((MESH_POINTS, 3), np.float32)
    assert (topology.uv.shape, topology.uv.dtype) == ((MESH_POINTS, 2), np.float32)
    assert (topology.triangles.shape, topology.triangles.dtype) == ((898, 3), np.int32)


def test_x_goes_right_y_up_and_z_to_the_viewer(topology: MeshTopology) -> None:
    left, right = topology.vertices[list(OUTER_CORNERS)]
    assert left[0] < 0 < right[0]
    assert topology.vertices[CHIN, 1] < topology.vertices[FOREHEAD, 1]
    assert topology.vertices[NOSE_TIP, 2] == pytest.approx(topology.vertices[:, 2].max(), abs=0.2)


def test_the_texture_starts_at_the_top_left(topology: MeshTopology) -> None:
    left, right = topology.uv[list(OUTER_CORNERS)]
    assert left[0] < 0.5 < right[0]
    assert topology.uv[FOREHEAD, 1] < topology.uv[CHIN, 1]
    assert topology.uv.min() >= 0
    assert topology.uv.max() <= 1


def test_every_point_is_in_a_triangle(topology: MeshTopology) -> None:
    assert np.unique(topology.triangles).tolist() == list(range(MESH_POINTS))


def test_triangles_run_counter_clockwise_in_front(topology: MeshTopology) -> None:
    corners = topology.uv[topology.triangles]
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    # The texture's y points down, so that counter-clockwise comes out negative.
    assert (first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0] < 0).all()


def test_no_two_triangles_share_an_edge_in_the_same_direction(topology: MeshTopology) -> None:
    edges = np.concatenate([topology.triangles[:, pair] for pair in ((0, 1), (1, 2), (2, 0))])
    assert len(np.unique(edges, axis=0)) == len(edges)


def test_nobody_can_write_into_the_table(topology: MeshTopology) -> None:
    with pytest.raises(ValueError, match="read-only"):
        topology.vertices[0, 0] = 1


@pytest.mark.parametrize(
    ("indices", "count"),
    [
        pytest.param(LIPS_REFINED, 80, id="lips"),
        pytest.param(LEFT_EYE_REFINED, 71, id="left eye"),
        pytest.param(RIGHT_EYE_REFINED, 71, id="right eye"),
    ],
)
def test_refined_points_are_points_of_the_mesh(indices: tuple[int, ...], count: int) -> None:
    assert len(indices) == len(set(indices)) == count
    assert set(indices) <= set(range(MESH_POINTS))


def test_the_eyes_lists_are_mirror_images(topology: MeshTopology) -> None:
    left, right = (
        topology.vertices[list(LEFT_EYE_REFINED)],
        topology.vertices[list(RIGHT_EYE_REFINED)],
    )
    np.testing.assert_allclose(left * [-1, 1, 1], right, atol=0.05)

"""Drawing the mesh and mapping between its placements."""

import numpy as np
import pytest

from app.processors.mesh.face_model import FaceModel, texture_ids, texture_points
from app.processors.mesh.raster import (
    dense_map,
    draw_triangles,
    facing,
    far_to_near,
    grown,
    point_map,
    triangle_maps,
)

SQUARE = np.array([[2, 2], [18, 2], [18, 18], [2, 18]], np.float32)
HALVES = np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def drawn() -> np.ndarray:
    return draw_triangles(SQUARE, HALVES, (21, 21), np.arange(2, dtype=np.int32))


def test_triangles_cover_their_area_and_nothing_else() -> None:
    ids = drawn()
    assert (ids[2:19, 2:19] >= 0).all()
    assert (ids[:1] == -1).all() and (ids[:, :1] == -1).all()
    assert set(np.unique(ids)) == {-1, 0, 1}


def test_later_triangles_cover_earlier_ones() -> None:
    twice = np.array([[0, 1, 2], [0, 1, 2]], np.int32)
    ids = draw_triangles(SQUARE, twice, (21, 21), np.array([1, 0], np.int32))
    assert set(np.unique(ids)) == {-1, 0}


def test_a_map_of_an_affine_placement_is_that_affine() -> None:
    there = SQUARE @ np.array([[2, 0.5], [-0.5, 1]], np.float32) + np.array([3, 7], np.float32)
    ids = drawn()
    place = dense_map(ids, triangle_maps(SQUARE, there, HALVES))
    y, x = np.nonzero(ids >= 0)
    wanted = np.stack([x, y], 1) @ np.array([[2, 0.5], [-0.5, 1]]) + [3, 7]
    assert np.abs(place[y, x] - wanted).max() < 1e-3


def test_a_part_of_a_map_equals_that_part_of_the_whole() -> None:
    ids, maps = drawn(), triangle_maps(SQUARE, SQUARE * 3, HALVES)
    part = dense_map(ids[4:15, 6:19], maps, (6, 4))
    assert np.array_equal(part, dense_map(ids, maps)[4:15, 6:19])


def test_slivers_take_no_pixel_far_away() -> None:
    sliver = np.array([[2, 10], [18, 10], [10, 10.001]], np.float32)
    there = np.array([[0, 0], [1, 0], [0.5, 1]], np.float32)
    one = np.array([[0, 1, 2]], np.int32)
    ids = draw_triangles(sliver, one, (21, 21), np.array([0], np.int32))
    place = dense_map(ids, triangle_maps(sliver, there, one))
    assert place.min() >= 0 and place.max() <= 1


def test_growing_continues_outwards_and_keeps_the_inside() -> None:
    ids = drawn()
    larger = grown(ids, 2)
    assert np.array_equal(larger[ids >= 0], ids[ids >= 0])
    assert (larger[0, 4:17] >= 0).all()


def test_values_at_points_are_interpolated() -> None:
    place = point_map(drawn(), SQUARE, np.array([0, 1, 1, 0], np.float32), HALVES)
    assert np.abs(place[10, 2:19] - np.linspace(0, 1, 17)).max() < 0.01


def test_the_canonical_face_looks_at_the_camera(model: FaceModel) -> None:
    cosines = facing(model.canonical, model.triangles)
    assert (cosines > 0).mean() > 0.95


def test_the_painter_begins_with_the_farthest_and_skips_the_back(model: FaceModel) -> None:
    order = far_to_near(model.canonical, model.triangles)
    depth = model.canonical[model.triangles[order], 2].mean(1)
    assert (np.diff(depth) <= 1e-6).all()
    turned = model.canonical * np.array([-1, 1, -1], np.float32)
    assert len(far_to_near(turned, model.triangles)) < 0.05 * len(model.triangles)


def test_the_texture_is_its_own_mirror_image(model: FaceModel) -> None:
    mirrored = model.uv * [-1, 1] + [1, 0]
    distance = np.linalg.norm(mirrored[:, None] - model.uv[None], axis=2).min(1)
    assert distance.max() < 0.005


@pytest.mark.parametrize("side_px", [64, 256])
def test_the_flat_layout_has_no_holes(model: FaceModel, side_px: int) -> None:
    ids = texture_ids(model.uv, model.triangles, side_px)
    points = texture_points(model.uv, side_px)
    center = points.mean(0).round().astype(int)
    row = ids[center[1]] >= 0
    assert row[np.argmax(row) : len(row) - np.argmax(row[::-1])].all()

"""Where the new face shows, and which parts of the target stay."""

import numpy as np
import pytest

from app.core import mesh_regions as regions
from app.processors.mesh import masks
from app.processors.mesh.face_model import FaceModel
from app.processors.mesh.raster import draw_triangles, far_to_near
from tests.processors.conftest import MakePortrait

SIZE_WH = (160, 160)
FACE_PX = 100.0


def closed(points: np.ndarray) -> np.ndarray:
    shut = points.copy()
    for contour, _, lids in regions.EYES:
        shut[list(contour), 1] = points[lids[2], 1]
    return shut


def test_the_edge_is_zero_at_the_outline_and_one_inside(
    model: FaceModel, make_portrait: MakePortrait
) -> None:
    points = make_portrait().landmarks[:468]
    ids = draw_triangles(
        points[:, :2], model.triangles, SIZE_WH, far_to_near(points, model.triangles)
    )
    mask = masks.edge_mask(ids, FACE_PX)
    outline = points[list(regions.FACE_OVAL), :2].round().astype(int)
    x, y = points[1, :2].round().astype(int)
    assert mask[outline[:, 1], outline[:, 0]].max() < 0.2
    assert mask[ids < 0].max() == 0
    assert mask[y, x] == 1


def test_hair_hides_the_new_face_only_where_hair_falls(make_portrait: MakePortrait) -> None:
    points = make_portrait().landmarks[:468]
    nothing_is_skin = np.zeros(SIZE_WH[::-1], np.float32)
    zone = np.zeros(SIZE_WH[::-1], np.float32)
    zone[:40] = 1
    free = masks.hair_free(nothing_is_skin, zone, points, FACE_PX)
    assert free[:20].max() == 0
    assert free[40:].min() == 1


def test_brows_are_no_hair(make_portrait: MakePortrait) -> None:
    points = make_portrait().landmarks[:468]
    nothing_is_skin = np.zeros(SIZE_WH[::-1], np.float32)
    free = masks.hair_free(nothing_is_skin, nothing_is_skin + 1, points, FACE_PX)
    x, y = points[list(regions.LEFT_BROW), :2].mean(0).round().astype(int)
    assert free[y, x] > 0.9


def test_open_eyes_stay_as_far_as_the_eyeball(make_portrait: MakePortrait) -> None:
    points = make_portrait().landmarks[:468]
    parts = masks.eye_parts(points, points, SIZE_WH, face_px=FACE_PX)
    assert len(parts) == 2
    for part, (contour, ring, _) in zip(parts, regions.EYES, strict=True):
        x, y = points[list(contour), :2].mean(0).round().astype(int)
        assert part.share[y - part.box.y0, x - part.box.x0] > 0.5
        lid_x, lid_y = points[list(ring), :2].round().astype(int).T
        assert part.share[lid_y - part.box.y0, lid_x - part.box.x0].max() < 0.2


def test_closed_eyes_stay_with_their_lids(make_portrait: MakePortrait) -> None:
    points = make_portrait().landmarks[:468]
    for part, (_, ring, _) in zip(
        masks.eye_parts(points, closed(points), SIZE_WH, face_px=FACE_PX), regions.EYES, strict=True
    ):
        x, y = points[list(ring), :2].mean(0).round().astype(int)
        assert part.share[y - part.box.y0, x - part.box.x0] > 0.9


@pytest.mark.parametrize(
    ("open_cm", "low", "high"),
    [
        pytest.param(0, 0, 0, id="closed"),
        pytest.param(0.5, 0.05, 0.95, id="ajar"),
        pytest.param(2, 0.95, 1, id="open"),
    ],
)
def test_a_mouth_stays_as_far_as_it_is_open(
    make_portrait: MakePortrait, open_cm: float, low: float, high: float
) -> None:
    points = make_portrait(mouth_open_cm=open_cm).landmarks[:468]
    parts = masks.mouth_parts(points, points, SIZE_WH, FACE_PX)
    strongest = max((float(part.share.max()) for part in parts), default=0.0)
    assert low <= strongest <= high


def test_parts_outside_the_drawing_are_left_out(make_portrait: MakePortrait) -> None:
    points = make_portrait().landmarks[:468] + np.array([1000, 0, 0], np.float32)
    assert masks.eye_parts(points, points, SIZE_WH, face_px=FACE_PX) == []

"""Photos become one texture: what is seen, what is covered, and how several are merged."""

import numpy as np
import pytest

from app.core import mesh_regions as regions
from app.processors.mesh.atlas import Atlas, build_atlas
from app.processors.mesh.face_model import FaceModel, texture_ids, texture_points
from app.processors.mesh.gaze import SourceEyes
from app.processors.mesh.layers import Layer, sampled_layer
from app.processors.mesh.merging import completed, merged
from tests.processors.conftest import MakeIdentity, MakePortrait

USABLE, PLAIN, COLORED, HAIR_ZONE = range(4)
LEFT_CHEEK, RIGHT_CHEEK = regions.SKIN_PATCHES[:2]


def at(image: np.ndarray, model: FaceModel, points: tuple[int, ...]) -> np.ndarray:
    x, y = texture_points(model.uv, image.shape[0])[list(points)].mean(0).round().astype(int)
    return image[y, x].astype(float)


def test_skin_and_features_land_where_they_belong(
    model: FaceModel, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    atlas = build_atlas(make_identity(make_portrait()), model)
    finest = atlas.levels[0]
    assert np.abs(at(finest, model, LEFT_CHEEK) - (205, 160, 130)).max() < 15
    assert at(finest, model, regions.LEFT_BROW).mean() < 100
    assert at(atlas.traits, model, LEFT_CHEEK)[[USABLE, PLAIN, COLORED]].min() > 200
    assert at(atlas.traits, model, regions.LEFT_BROW)[[PLAIN, COLORED]].max() < 60


def test_the_unseen_cheek_is_mirrored_in(
    model: FaceModel, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    turned = make_portrait(yaw_deg=50)
    ids = texture_ids(model.uv, model.triangles, 256)
    layer = sampled_layer(make_identity(turned).views[0], model, ids)
    seen = [
        float(at(layer.seen[..., None], model, cheek)[0]) for cheek in (LEFT_CHEEK, RIGHT_CHEEK)
    ]
    assert max(seen) > 0.9 > 0.6 > min(seen)
    whole = completed(layer)
    colors = [at(whole.rgb, model, cheek) for cheek in (LEFT_CHEEK, RIGHT_CHEEK)]
    assert np.abs(colors[0] - colors[1]).max() < 25


def test_hair_over_the_forehead_is_not_used(
    model: FaceModel, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    portrait = make_portrait(side_px=320, face_px=240)
    top = int(portrait.landmarks[list(regions.LEFT_BROW_TOP), 1].min())
    image = portrait.image.copy()
    image[: top - 20] = (60, 45, 30)
    from_fringe = type(portrait)(image, portrait.landmarks)
    bare, covered = (
        at(build_atlas(make_identity(each), model).traits, model, (10, 151, 9))[USABLE]
        for each in (portrait, from_fringe)
    )
    assert bare > 200 > 60 > covered


def test_two_photos_from_two_sides_show_both_cheeks(
    model: FaceModel, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    left, right = (make_portrait(yaw_deg=yaw) for yaw in (-50, 50))
    ids = texture_ids(model.uv, model.triangles, 256)
    layers = [sampled_layer(view, model, ids) for view in make_identity(left, right).views]
    both = merged(layers)
    for cheek in (LEFT_CHEEK, RIGHT_CHEEK):
        assert at(both.seen[..., None], model, cheek)[0] > 0.9
        assert np.abs(at(both.rgb, model, cheek) - (205, 160, 130)).max() < 20


def test_the_first_photos_colors_hold() -> None:
    seen = np.ones((256, 256), np.float32)
    warm, cold = (
        np.full((256, 256, 3), color, np.float32) for color in ((200, 150, 120), (120, 150, 200))
    )
    rgb = merged([Layer(warm, seen), Layer(cold, seen)]).rgb
    assert np.abs(rgb - warm).max() < 6


def test_fine_structure_is_taken_from_one_photo_not_averaged() -> None:
    rng = np.random.default_rng(0)
    seen = np.ones((256, 256), np.float32)
    one, other = (
        Layer((150 + rng.normal(0, 20, (256, 256, 3))).astype(np.float32), seen) for _ in range(2)
    )
    assert merged([one, other]).rgb.std() > 0.9 * one.rgb.std()


def test_one_photo_is_left_alone() -> None:
    layer = Layer(np.zeros((8, 8, 3), np.float32), np.ones((8, 8), np.float32))
    assert merged([layer]) is layer


@pytest.mark.parametrize(
    ("wanted_px", "expected_px"),
    [
        pytest.param(10, 64, id="smaller than all"),
        pytest.param(65, 91, id="between two"),
        pytest.param(128, 128, id="exactly one"),
        pytest.param(9000, 128, id="larger than all"),
    ],
)
def test_the_smallest_texture_that_is_fine_enough_is_drawn(
    wanted_px: float, expected_px: int
) -> None:
    levels = tuple(np.zeros((side, side, 3), np.uint8) for side in (128, 91, 64))
    atlas = Atlas(
        levels=levels,
        traits=np.zeros((1, 1, 4), np.uint8),
        shape=np.zeros((468, 3), np.float32),
        eyes=SourceEyes(np.zeros((2, 2), np.float32), np.ones(2, np.float32)),
    )
    assert atlas.level(wanted_px).shape[0] == expected_px

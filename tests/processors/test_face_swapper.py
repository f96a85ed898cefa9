"""The mesh swapper on painted faces."""

from dataclasses import replace

import numpy as np
import pytest

from app.core import mesh_regions as regions
from app.core.types import FaceBatch
from app.processors.face_swapper import MAX_ATLASES, MeshSwapper, Options
from tests.processors.conftest import MakeBatch, MakeIdentity, MakePortrait

CHEEKS = regions.SKIN_PATCHES[0]


def color_at(batch: FaceBatch, points: tuple[int, ...]) -> np.ndarray:
    x, y = batch.landmarks[0, list(points), :2].mean(0).round().astype(int)
    return batch.crops[0, y - 1 : y + 2, x - 1 : x + 2].mean((0, 1))


def test_the_skin_takes_the_targets_color(make_batch: MakeBatch) -> None:
    batch = make_batch(skin=(225, 185, 165))
    out = MeshSwapper(Options()).process(batch)
    assert np.abs(color_at(out, CHEEKS) - color_at(batch, CHEEKS)).max() < 12
    assert not np.array_equal(out.crops, batch.crops)


def test_brows_come_from_the_source(make_batch: MakeBatch) -> None:
    batch = make_batch(features=(200, 150, 120))
    out = MeshSwapper(Options()).process(batch)
    assert color_at(out, regions.LEFT_BROW).mean() < color_at(batch, regions.LEFT_BROW).mean() - 40


@pytest.mark.parametrize(
    "tint",
    [
        pytest.param((1, 1, 1), id="gray"),
        pytest.param((1.05, 0.95, 0.75), id="sepia"),
        pytest.param((0.5, 0.7, 1.1), id="blue"),
    ],
)
def test_a_target_of_one_hue_stays_so(make_batch: MakeBatch, tint: tuple[float, ...]) -> None:
    batch = make_batch()
    gray = batch.crops.mean(-1, keepdims=True)
    tinted = np.clip(gray * np.array(tint), 0, 255).round().astype(np.uint8)
    out = MeshSwapper(Options()).process(replace(batch, crops=tinted))
    shown = out.crops[0][out.masks[0] > 0].astype(float)
    wanted = shown.mean(1, keepdims=True) * np.array(tint) / np.mean(tint)
    assert np.abs(shown - wanted).mean() < 2
    if tint == (1, 1, 1):
        assert np.ptp(out.crops[0][out.masks[0] > 0], axis=1).max() == 0


def test_nothing_is_put_back_outside_the_face(make_batch: MakeBatch) -> None:
    out = MeshSwapper(Options()).process(make_batch())
    x0, y0 = np.floor(out.landmarks[0, :468, :2].min(0)).astype(int)
    x1, y1 = np.ceil(out.landmarks[0, :468, :2].max(0)).astype(int)
    outside = out.masks[0].copy()
    outside[y0 : y1 + 1, x0 : x1 + 1] = 0
    assert outside.max() == 0
    assert out.masks[0].max() == 1


def test_nothing_is_put_back_beyond_the_picture(make_batch: MakeBatch) -> None:
    batch = make_batch()
    half = batch.masks.copy()
    half[:, :, :80] = 0
    out = MeshSwapper(Options()).process(replace(batch, masks=half))
    assert out.masks[:, :, :80].max() == 0
    assert out.masks[:, :, 80:].max() == 1


def test_a_tiny_face_stays_as_it_is(make_batch: MakeBatch) -> None:
    batch = make_batch(side_px=32, face_px=9)
    out = MeshSwapper(Options()).process(batch)
    assert out.masks.max() == 0
    assert np.array_equal(out.crops, batch.crops)


def test_points_on_one_spot_leave_the_face_as_it_is(make_batch: MakeBatch) -> None:
    batch = make_batch()
    out = MeshSwapper(Options()).process(replace(batch, landmarks=batch.landmarks * 0 + 80))
    assert out.masks.max() == 0


@pytest.mark.parametrize(
    ("eyes", "is_kept"),
    [pytest.param("target", True, id="target"), pytest.param("source", False, id="source")],
)
def test_eyeballs_come_from_where_they_shall(
    make_batch: MakeBatch, eyes: str, is_kept: bool
) -> None:
    batch = make_batch(side_px=320, face_px=240)
    marked = batch.crops.copy()
    x, y = batch.landmarks[0, 468, :2].round().astype(int)
    marked[0, y - 1 : y + 2, x - 2 : x + 3] = (0, 200, 0)
    out = MeshSwapper(Options(shape=0, eyes=eyes)).process(replace(batch, crops=marked))  # type: ignore[arg-type]
    green = out.crops[0, y, x].astype(int)
    assert (green[1] - green[0] > 60) == is_kept


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_open_mouth_shows_what_it_shall(make_batch: MakeBatch, is_kept: bool) -> None:
    batch = make_batch(side_px=320, face_px=240, mouth_open_cm=2)
    out = MeshSwapper(Options(keep_inner_mouth=is_kept)).process(batch)
    assert (color_at(out, regions.MOUTH_GAP).mean() > 200) == is_kept


def test_a_closed_mouth_shows_no_teeth_of_the_source(
    make_batch: MakeBatch, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    batch = make_batch(side_px=320, face_px=240)
    toothy = make_identity(make_portrait(side_px=320, face_px=240, mouth_open_cm=2))
    out = MeshSwapper(Options()).process(replace(batch, identities=(toothy,)))
    assert color_at(out, regions.MOUTH_GAP).mean() < 150


def test_light_from_one_side_falls_on_the_new_face(make_batch: MakeBatch) -> None:
    batch = make_batch(side_px=320, face_px=240)
    lamp = np.linspace(0.4, 1.1, 320)[None, None, :, None]
    lit = np.clip(batch.crops * lamp, 0, 255).astype(np.uint8)
    out = MeshSwapper(Options(shading=1)).process(replace(batch, crops=lit))
    left, right = (color_at(out, patch).mean() for patch in regions.SKIN_PATCHES[:2])
    assert right > 1.3 * left


def test_the_source_is_prepared_once_and_room_is_made(
    make_batch: MakeBatch, make_portrait: MakePortrait, make_identity: MakeIdentity
) -> None:
    swapper = MeshSwapper(Options())
    batch = make_batch()
    portrait = make_portrait(side_px=64, face_px=40)
    for number in range(MAX_ATLASES + 2):
        someone = make_identity(portrait, name=f"person {number}")
        swapper.process(replace(batch, identities=(someone,)))
    assert len(swapper.known_identities) == MAX_ATLASES
    assert "person 0" not in swapper.known_identities
    assert f"person {MAX_ATLASES + 1}" in swapper.known_identities

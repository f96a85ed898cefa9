"""The curve between HDR pictures and the networks: there and back without loss, and sensible in between."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture, PixelBox
from app.core.tone import HLG, PQ, ToneCurve, tone_curve

BOX = PixelBox(7, 5, 41, 36)


def all_codes() -> NDArray[np.float32]:
    """A lattice of colors over the whole cube."""
    steps = np.linspace(0, 255, 18, dtype=np.float32)
    return np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(18, -1, 3)


def hdr_picture(transfer: int, name: str = "yuv420p10le") -> Picture:
    pixel_format = PIXEL_FORMATS[name]
    rng = np.random.default_rng(3)
    low, high = 64 << (pixel_format.bits - 10), 940 << (pixel_format.bits - 10)
    planes = tuple(
        rng.integers(low, high, shape).astype(np.uint16)
        for shape in pixel_format.plane_shapes((64, 48))
    )
    tags = ColorTags(matrix=9, is_full_range=False, primaries=9, transfer=transfer)
    return Picture(planes, pixel_format, tags)


def test_sdr_needs_no_curve() -> None:
    assert tone_curve(1) is None
    assert tone_curve(2) is None


@pytest.mark.parametrize("transfer", [PQ, HLG], ids=["PQ", "HLG"])
def test_codes_come_back(transfer: int) -> None:
    curve, codes = ToneCurve(transfer), all_codes()
    back = curve.to_codes(curve.to_sdr(codes))
    # A quarter of a 10-bit code value.
    assert np.abs(back - codes).max() < 0.25 * 255 / 1023


@pytest.mark.parametrize(
    ("transfer", "signal", "low", "high"),
    [
        pytest.param(PQ, 0.0, 0, 0.01, id="PQ black"),
        pytest.param(PQ, 0.5807, 228, 250, id="PQ 203 cd/m2 is about white"),
        pytest.param(PQ, 0.44, 140, 170, id="PQ 50 cd/m2 is a mid grey"),
        pytest.param(PQ, 1.0, 253, 255, id="PQ 10000 cd/m2 stays below white"),
        pytest.param(HLG, 0.75, 228, 250, id="HLG 75 % is about white"),
        pytest.param(HLG, 1.0, 248, 255, id="HLG peak"),
    ],
)
def test_grey_lands_where_it_should(transfer: int, signal: float, low: float, high: float) -> None:
    grey = np.full((1, 1, 3), 255 * signal, np.float32)
    sdr = ToneCurve(transfer).to_sdr(grey)
    assert np.ptp(sdr) < 0.1
    assert low <= sdr.mean() <= high


@pytest.mark.parametrize("transfer", [PQ, HLG], ids=["PQ", "HLG"])
def test_the_quick_way_is_near_enough(transfer: int) -> None:
    curve, codes = ToneCurve(transfer), all_codes()
    error = np.abs(curve.seen(codes) - curve.to_sdr(codes))
    # The curve is steepest at black, where a color just leaves what BT.709 can show.
    assert error.mean() < 0.01
    assert np.quantile(error, 0.999) < 0.6
    assert error.max() < 6


@pytest.mark.parametrize("transfer", [PQ, HLG], ids=["PQ", "HLG"])
def test_brighter_stays_brighter(transfer: int) -> None:
    ramp = np.repeat(np.linspace(0, 255, 1024, dtype=np.float32)[None, :, None], 3, axis=2)
    assert (np.diff(ToneCurve(transfer).to_sdr(ramp)[0, :, 0]) > 0).all()


@pytest.mark.parametrize("name", ["yuv420p10le", "yuv422p10le", "yuv444p12le"])
@pytest.mark.parametrize("transfer", [PQ, HLG], ids=["PQ", "HLG"])
def test_a_patch_written_back_unchanged_changes_nothing(transfer: int, name: str) -> None:
    picture = hdr_picture(transfer, name)
    written = picture.copy()
    written.write(BOX, written.read(BOX))
    for was, now in zip(picture.planes, written.planes, strict=True):
        assert (was == now).all()


@pytest.mark.parametrize("transfer", [PQ, HLG], ids=["PQ", "HLG"])
def test_a_changed_patch_reads_back_as_it_was_written(transfer: int) -> None:
    picture = hdr_picture(transfer, "yuv444p12le")
    values = (1500, 2100, 2000)
    calm = tuple(
        np.full_like(plane, value) for plane, value in zip(picture.planes, values, strict=True)
    )
    target = Picture(calm, picture.pixel_format, picture.tags)
    patch = target.read(BOX)
    patch[8:20, 8:20] = (180, 120, 100)
    before = target.copy()
    target.write(BOX, patch)
    assert np.abs(target.read(BOX).astype(int) - patch).max() <= 1
    outside = np.ones((48, 64), bool)
    outside[BOX.y0 : BOX.y1, BOX.x0 : BOX.x1] = False
    for was, now in zip(before.planes, target.planes, strict=True):
        assert (was[outside] == now[outside]).all()
    assert (before.planes[0] != target.planes[0]).any()


def test_a_darker_patch_stays_in_range() -> None:
    target = hdr_picture(PQ)
    target.write(BOX, np.zeros((BOX.size_wh[1], BOX.size_wh[0], 3), np.uint8))
    assert all(plane.max() <= 1023 for plane in target.planes)
    assert target.read(BOX).mean() < 20

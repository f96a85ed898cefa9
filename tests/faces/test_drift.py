import cv2
import numpy as np
import pytest

from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import RgbImage
from app.faces.drift import Drift
from app.faces.landmarks import CropRegion


def moved(image: RgbImage, dx: float, dy: float) -> Picture:
    affine = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    h, w = image.shape[:2]
    return Picture.from_rgb(
        np.asarray(cv2.warpAffine(image, affine, (w, h), borderMode=cv2.BORDER_REFLECT), np.uint8)
    )


@pytest.mark.parametrize(
    "shift",
    [
        pytest.param((0, 0), id="nothing"),
        pytest.param((7, -5), id="a little"),
        pytest.param((70, 30), id="most of a face's width"),
    ],
)
def test_a_region_goes_where_the_picture_goes(
    astronaut: RgbImage, shift: tuple[float, float]
) -> None:
    drift = Drift()
    assert drift.see(3, moved(astronaut, 0, 0)) is None
    motion = drift.see(7, moved(astronaut, *shift))
    assert motion is not None
    (region,) = motion.carried([CropRegion((226, 117), 135, 0.1)])
    assert region.center_xy == pytest.approx((226 + shift[0], 117 + shift[1]), abs=6)
    assert (region.side_px, region.roll_rad) == (135, 0.1)


def test_deep_planes_are_seen_like_shallow_ones(astronaut: RgbImage) -> None:
    gray = np.asarray(astronaut[..., 1], np.uint16) * 257
    drift = Drift()
    for number, dx in ((0, 0), (4, 20)):
        deep = Picture((np.roll(gray, dx, axis=1),), PIXEL_FORMATS["gray16le"])
        motion = drift.see(number, deep)
    assert motion is not None
    (region,) = motion.carried([CropRegion((226, 117), 135, 0.0)])
    assert region.center_xy == pytest.approx((246, 117), abs=4)


def test_nothing_is_carried_over_a_cut_or_a_long_pause(astronaut: RgbImage) -> None:
    drift = Drift()
    drift.see(0, moved(astronaut, 0, 0))
    drift.forget()
    assert drift.see(4, moved(astronaut, 0, 0)) is None
    assert drift.see(60, moved(astronaut, 0, 0)) is None
    assert drift.see(64, moved(astronaut, 0, 0)) is not None


def test_a_tiny_picture_has_no_motion() -> None:
    drift = Drift()
    for number in (0, 4):
        motion = drift.see(number, Picture.from_rgb(np.zeros((4, 40, 3), np.uint8)))
    assert motion is None

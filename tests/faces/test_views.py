import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.faces.landmarks import face_from_landmarks
from app.faces.views import composure, view_of
from tests.faces.conftest import MakeLandmarks


def noise(side: int = 400) -> Picture:
    pixels = np.random.default_rng(1).integers(0, 255, (side, side, 3)).astype(np.uint8)
    return Picture.from_rgb(pixels)


@pytest.mark.parametrize(
    ("size", "side"),
    [pytest.param(60, 108, id="small"), pytest.param(220, 256, id="large")],
)
def test_a_view_is_a_square_with_the_face_in_its_middle(
    make_landmarks: MakeLandmarks, size: float, side: int
) -> None:
    face = face_from_landmarks(make_landmarks(cx=200, cy=210, size=size), 0.9)
    view = view_of(noise(), face)
    assert view.crop.shape == (side, side, 3)
    x0, y0, x1, y1 = view.face.bbox_xyxy
    assert ((x0 + x1) / 2, (y0 + y1) / 2) == pytest.approx((side / 2, side / 2), abs=1)


def test_a_view_beyond_the_border_is_still_a_square(make_landmarks: MakeLandmarks) -> None:
    view = view_of(noise(100), face_from_landmarks(make_landmarks(cx=4, cy=95, size=60), 0.9))
    assert view.crop.shape == (108, 108, 3)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_thumbnail_stands_upright(make_landmarks: MakeLandmarks, turns: int) -> None:
    landmarks = make_landmarks(cx=200, cy=200, size=100, roll_rad=turns * np.pi / 2)
    view = view_of(noise(), face_from_landmarks(landmarks, 0.9))
    assert np.array_equal(np.rot90(view.thumbnail(), -turns), view.crop)


def test_closed_eyes_and_an_open_mouth_make_the_lesser_view(make_landmarks: MakeLandmarks) -> None:
    calm = make_landmarks(size=100)

    def moved(points: dict[int, float]) -> FloatArray:
        landmarks = calm.copy()
        for index, dy in points.items():
            landmarks[index, 1] += dy
        return landmarks

    lid = {159: calm[145, 1] - calm[159, 1], 386: calm[374, 1] - calm[386, 1]}
    assert composure(moved(lid)) < composure(calm)
    assert composure(moved({14: 20.0})) < composure(calm)


def test_a_view_without_its_picture_keeps_the_rest(make_landmarks: MakeLandmarks) -> None:
    view = view_of(noise(), face_from_landmarks(make_landmarks(cx=90, cy=90), 0.9))
    empty = view.without_picture()
    assert empty.crop.size == 0
    assert empty.usefulness == view.usefulness > 0

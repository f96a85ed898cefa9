import cv2
import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.types import TrackId
from app.faces.flow import Stabilizer, View
from tests.faces.conftest import MakeLandmarks

ONE = TrackId(1)
BACKGROUND = np.asarray(
    cv2.GaussianBlur(np.random.default_rng(3).integers(0, 255, (300, 300), np.uint8), (0, 0), 3)
)
BACKGROUND = cv2.normalize(BACKGROUND, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


def crop_at(x: int, y: int) -> tuple[np.ndarray, FloatArray]:
    """A crop of the moving world and its affine from the picture, in which the crop stands still."""
    return np.ascontiguousarray(BACKGROUND[y : y + 192, x : x + 192]), np.eye(
        2, 3, dtype=np.float32
    )


def test_the_first_frame_of_a_track_is_its_measure(make_landmarks: MakeLandmarks) -> None:
    gray, affine = crop_at(50, 50)
    measure = make_landmarks(cx=96, cy=96, size=120)
    assert np.array_equal(Stabilizer().steadied(ONE, View(0, gray, affine, measure)), measure)


def test_noise_of_the_measure_hardly_shows_and_motion_is_followed(
    make_landmarks: MakeLandmarks,
) -> None:
    random = np.random.default_rng(0)
    stabilizer = Stabilizer()
    raw, steady = [], []
    for number in range(12):
        gray, affine = crop_at(60 - 2 * number, 50 + number)
        truth = make_landmarks(cx=80 + 2 * number, cy=96 - number, size=110)
        measure = truth + random.normal(0, 0.4, truth.shape).astype(np.float32)
        landmarks = stabilizer.steadied(ONE, View(number, gray, affine, measure))
        raw.append(measure[:468, :2] - truth[:468, :2])
        steady.append(landmarks[:468, :2] - truth[:468, :2])
    shake = [float(np.diff(np.array(rows[2:]), axis=0).std()) for rows in (raw, steady)]
    assert shake[1] < 0.45 * shake[0]
    assert np.abs(np.array(steady).mean((0, 1))).max() < 0.2  # of 110 px: what dense flow is off by


def test_where_flow_and_measure_disagree_the_measure_wins(make_landmarks: MakeLandmarks) -> None:
    gray, affine = crop_at(50, 50)
    stabilizer = Stabilizer()
    before = make_landmarks(cx=90, cy=90, size=120)
    after = make_landmarks(cx=98, cy=90, size=120)
    stabilizer.steadied(ONE, View(0, gray, affine, before))
    assert stabilizer.steadied(ONE, View(1, gray, affine, after)) == pytest.approx(after, abs=1e-3)


@pytest.mark.parametrize(
    ("number", "track_id"),
    [pytest.param(5, ONE, id="after a gap"), pytest.param(1, TrackId(2), id="another track")],
)
def test_nothing_is_carried_over(
    make_landmarks: MakeLandmarks, number: int, track_id: TrackId
) -> None:
    gray, affine = crop_at(50, 50)
    stabilizer = Stabilizer()
    stabilizer.steadied(ONE, View(0, gray, affine, make_landmarks(cx=96, cy=96, size=120)))
    measure = make_landmarks(cx=96.5, cy=96, size=120)
    view = View(number, gray, affine, measure)
    assert np.array_equal(stabilizer.steadied(track_id, view), measure)


def test_tracks_that_ended_are_forgotten(make_landmarks: MakeLandmarks) -> None:
    gray, affine = crop_at(50, 50)
    stabilizer = Stabilizer()
    stabilizer.steadied(ONE, View(0, gray, affine, make_landmarks(cx=96, cy=96, size=120)))
    stabilizer.forget_before(1)
    measure = make_landmarks(cx=96.5, cy=96, size=120)
    assert np.array_equal(stabilizer.steadied(ONE, View(1, gray, affine, measure)), measure)

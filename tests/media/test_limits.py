import pytest

from app.core.errors import AppError, BadDimensionsError, MediaTooLargeError
from app.media.limits import MediaLimits

LIMITS = MediaLimits(
    max_still_pixels=1000, max_side_px=100, max_duration_s=10, max_streams=2, max_frames=50
)


@pytest.mark.parametrize(
    ("size_wh", "error"),
    [
        pytest.param((0, 10), BadDimensionsError, id="no width"),
        pytest.param((10, -1), BadDimensionsError, id="negative height"),
        pytest.param((101, 1), MediaTooLargeError, id="too wide"),
        pytest.param((1, 101), MediaTooLargeError, id="too high"),
        pytest.param((50, 21), MediaTooLargeError, id="too large an area"),
    ],
)
def test_a_still_over_budget_is_refused(size_wh: tuple[int, int], error: type[AppError]) -> None:
    with pytest.raises(error):
        LIMITS.check_still(size_wh)


def test_what_just_fits_passes() -> None:
    LIMITS.check_still((50, 20))
    LIMITS.check_size((100, 100))
    LIMITS.check_length(10.0, 50)
    LIMITS.check_length(None, None)
    LIMITS.check_streams(2)


def test_length_is_bounded_in_seconds_frames_and_streams() -> None:
    with pytest.raises(MediaTooLargeError, match="11 s"):
        LIMITS.check_length(11.0, None)
    with pytest.raises(MediaTooLargeError, match="51 frames"):
        LIMITS.check_length(None, 51)
    with pytest.raises(MediaTooLargeError, match="streams"):
        LIMITS.check_streams(3)

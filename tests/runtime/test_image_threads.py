import cv2

from app.inference.cores import usable_cores
from app.runtime.image_threads import share_cores


def test_opencv_takes_no_more_threads_than_half_the_usable_cores() -> None:
    before = cv2.getNumThreads()
    try:
        threads = share_cores()
        assert 1 <= threads <= max(1, usable_cores() // 2)
        assert cv2.getNumThreads() == threads
    finally:
        cv2.setNumThreads(before)

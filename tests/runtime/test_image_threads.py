from collections.abc import Iterator

import cv2
import pytest

from app.inference.cores import usable_cores
from app.runtime import image_threads
from app.runtime.image_threads import share_cores


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = cv2.getNumThreads()
    yield
    cv2.setNumThreads(before)


def test_opencv_takes_no_more_threads_than_half_the_usable_cores() -> None:
    threads = share_cores()
    assert 1 <= threads <= max(1, usable_cores() // 2)
    assert cv2.getNumThreads() == threads


@pytest.mark.parametrize(("engines", "threads"), [(0, 8), (1, 8), (2, 4), (4, 2), (16, 1)])
def test_engines_of_one_machine_share_that_half(
    monkeypatch: pytest.MonkeyPatch, engines: int, threads: int
) -> None:
    monkeypatch.setattr(image_threads, "usable_cores", lambda: 16)
    assert share_cores(engines) == threads
    assert cv2.getNumThreads() == threads

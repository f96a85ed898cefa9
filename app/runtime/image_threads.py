"""On how many threads OpenCV works on one picture."""

import cv2

from app.inference.cores import network_threads, usable_cores


def share_cores() -> int:
    """Let OpenCV use as many threads as one network may, and no more.

    By itself it starts one for each core of the machine, 64 of them in a container that may use two. And where the
    stages of the pipeline keep all cores busy anyway, it waits for its own helpers: the flow of one face took 1.2 ms of
    processor time on two threads, 0.75 ms on one.

    Returns:
        Threads that it uses from now on.
    """
    threads = network_threads(usable_cores())
    cv2.setNumThreads(threads)
    return threads

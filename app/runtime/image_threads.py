"""On how many threads OpenCV works on one picture."""

import cv2

from app.inference.cores import network_threads, usable_cores


def share_cores(engines: int = 1) -> int:
    """Let OpenCV use as many threads as one network of this process may, and no more.

    By itself it starts one for each core of the machine, 64 of them in a container that may use two. And where the
    stages of the pipeline keep all cores busy anyway, it waits for its own helpers: the flow of one face took 1.2 ms of
    processor time on two threads, 0.75 ms on one.

    Args:
        engines: Processes that work on this machine at the same time; see `network_threads`.

    Returns:
        Threads that it uses from now on.
    """
    threads = network_threads(usable_cores(), engines)
    cv2.setNumThreads(threads)
    return threads

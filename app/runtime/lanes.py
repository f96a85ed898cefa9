"""Runs several calls side by side, or one at a time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

LANES = 4
"""As many calls of one network at once as a device has use for; on a GPU each has its own stream."""


def one_at_a_time() -> Callable[[], AbstractContextManager[object]]:
    """A gate: `with gate():` waits until nobody else is behind it."""
    lock = threading.Lock()
    return lambda: lock


def run_side_by_side(run: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Call a function for each item; results in their order, the first error raised after all have ended.

    Args:
        run: May be called by several threads at once.
        items: One needs no thread of its own.
    """
    if len(items) < 2:
        return [run(item) for item in items]
    with ThreadPoolExecutor(min(LANES, len(items)), thread_name_prefix="lane") as pool:
        return list(pool.map(run, items))

"""How busy each part of a job is: the share of the time in which it works and does not wait for its neighbors.

The part that is always busy is the one that sets the pace. Where that is the reading or the writing, a faster device
for the networks gains nothing; where it is the device, nothing else does.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from app.pipeline.progress import Busy, WorkPart

_LATELY_S = 5.0
"""Long enough for some windows of frames, short enough that a hard scene is seen while it lasts."""

Clock = Callable[[], float]


class WorkClock:
    """Adds up the time in which somebody is at work; several at once count once.

    Args:
        now: Seconds that only grow.
    """

    def __init__(self, now: Clock = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._workers = 0
        self._since_s = 0.0
        self._done_s = 0.0

    @property
    def busy_s(self) -> float:
        """Seconds of work so far, what is under way included."""
        with self._lock:
            return self._done_s + (self._now() - self._since_s if self._workers else 0.0)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count the length of a `with`."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the length of a `with` out, inside of `at_work`."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if not self._workers:
                self._since_s = self._now()
            self._workers += 1

    def _stop(self) -> None:
        with self._lock:
            self._workers -= 1
            if not self._workers:
                self._done_s += self._now() - self._since_s


class Occupancy:
    """The shares of a job's parts, over the whole job and lately; asked by one thread.

    Args:
        parts: The clock of each part, in the order in which people are told; a clock may have run before.
        now: As the clocks'.
    """

    def __init__(self, parts: Mapping[WorkPart, WorkClock], now: Clock = time.monotonic) -> None:
        self._parts = dict(parts)
        self._now = now
        self._marks = deque([self._mark()])
        self._start = self._marks[0]

    def overall(self) -> Busy:
        """Shares since the start, 0 to 1."""
        return self._shares(self._start, self._mark())

    def lately(self) -> Busy:
        """Shares of the last seconds, 0 to 1; of as many as there are when it is asked often enough."""
        mark = self._mark()
        self._marks.append(mark)
        while len(self._marks) > 2 and mark[0] - self._marks[1][0] >= _LATELY_S:
            self._marks.popleft()
        return self._shares(self._marks[0], mark)

    def _mark(self) -> tuple[float, dict[WorkPart, float]]:
        return self._now(), {part: clock.busy_s for part, clock in self._parts.items()}

    @staticmethod
    def _shares(
        before: tuple[float, dict[WorkPart, float]], after: tuple[float, dict[WorkPart, float]]
    ) -> Busy:
        took_s = after[0] - before[0]
        if took_s <= 0:
            return {}
        return {
            part: round(min(1.0, (busy_s - before[1][part]) / took_s), 3)
            for part, busy_s in after[1].items()
        }

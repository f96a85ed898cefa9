"""Whose turn it is: calls go one at a time and ahead of the job, the job lets one pass before each of its windows."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.core.errors import Cancelled

_LOOK_S = 0.1


class Turns:
    """A line of calls, and a job that gives way to the first of it.

    A call starts as soon as it is the first; what the job has begun goes on beside it, so the most that a call is
    held up by is one window of frames. The job waits for one call a window and not for the whole line: it gets on,
    however many people press keys.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: deque[object] = deque()

    @contextmanager
    def call(self, should_stop: Callable[[], bool]) -> Iterator[None]:
        """Stand in the line, and hold the turn for the length of a `with`.

        Args:
            should_stop: Asked while waiting, a few times a second.

        Raises:
            Cancelled: `should_stop` said so.
        """
        ticket = object()
        with self._changed:
            self._line.append(ticket)
        try:
            self._wait(lambda: self._line[0] is ticket, should_stop)
            if should_stop():
                raise Cancelled("called off while it waited")
            yield
        finally:
            with self._changed:
                self._line.remove(ticket)
                self._changed.notify_all()

    def give_way(self, should_stop: Callable[[], bool]) -> None:
        """The job's side: wait while the call that is under way now goes on.

        Args:
            should_stop: Once true, waiting ends.
        """
        with self._changed:
            first = self._first()
        if first is not None:
            self._wait(lambda: self._first() is not first, should_stop)

    def _first(self) -> object | None:
        return self._line[0] if self._line else None

    def _wait(self, is_over: Callable[[], bool], should_stop: Callable[[], bool]) -> None:
        with self._changed:
            while not is_over():
                self._changed.wait(_LOOK_S)
                # Asked without the lock: it may look at a connection.
                self._changed.release()
                try:
                    is_unwanted = should_stop()
                finally:
                    self._changed.acquire()
                if is_unwanted:
                    return

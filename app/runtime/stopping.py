"""How a process learns that it has to stop: by a signal, or because its parent is gone."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)

# A bit more than a clean stop takes; whoever waits for a container to stop waits for 25 s or more.
STOP_GRACE_S = 20.0


class StopFlag:
    """Once set it stays set."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask to stop."""
        self._event.set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, but not beyond the moment somebody asks to stop.

        Returns:
            Whether to stop.
        """
        return self._event.wait(timeout_s)


@contextmanager
def stop_when_asked(
    parent_fd: int | None = None, *, grace_s: float = STOP_GRACE_S
) -> Iterator[StopFlag]:
    """A flag that SIGTERM, SIGINT or the parent's death sets; for the main thread of a process.

    Args:
        parent_fd: Reading end of a pipe whose other end only the parent has. The system closes that end when the
            parent dies, however it dies, so end of file is the news.
        grace_s: Without its parent, a process that has not ended by itself after so long is ended.
    """
    flag = StopFlag()

    def on_signal(number: int, _: FrameType | None) -> None:
        flag.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)
    }
    if parent_fd is not None:
        threading.Thread(
            target=_watch_parent, args=(parent_fd, flag, grace_s), name="parent-watch", daemon=True
        ).start()
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch_parent(parent_fd: int, flag: StopFlag, grace_s: float) -> None:
    while os.read(parent_fd, 64):
        pass
    logger.warning("the parent process is gone, stopping")
    flag.set()
    threading.Event().wait(grace_s)
    # The main thread hangs in native code; nobody is left to see an exit code.
    os._exit(1)

"""The engine's private endpoint: a Unix socket in the data folder on which the web process calls.

Whatever comes over it, or goes wrong in a call, the engine lives on; only a device that is lost ends it, as it does
in a job.
"""

import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from app.core.error_table import without_paths
from app.core.errors import AppError, Cancelled, DeviceError, EngineBusyError
from app.runtime.calls import (
    Answer,
    Call,
    MessageError,
    Refused,
    Said,
    Working,
    receive_call,
    send,
)
from app.runtime.turns import Turns

logger = logging.getLogger(__name__)

# What fits the system's `sockaddr_un` everywhere, with room for the name that the socket has at first.
_LONGEST_ADDRESS = 90


class Desk(Protocol):
    """Answers calls; `app.runtime.desk` has the real one."""

    def answer(
        self, call: Call, *, on_progress: Callable[[float], None], should_stop: Callable[[], bool]
    ) -> Answer:
        """Do what is asked.

        Args:
            call: What is asked.
            on_progress: Told the share that is done, 0 to 1, as often as it likes.
            should_stop: Asked often; once true, `answer` ends soon.

        Raises:
            Cancelled: It was asked to stop.
            AppError: It is refused, or failed.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointOptions:
    """How patient the endpoint is.

    Attributes:
        max_calls: Calls under way and in line; whoever comes beyond them is told to come back.
        question_s: From the first byte of a connection to the last one of its question.
        news_s: Between two signs of life to whoever waits.
    """

    max_calls: int = 16
    question_s: float = 5.0
    news_s: float = 1.0


class Endpoint:
    """Takes calls in threads of its own; use it in a `with`."""

    def __init__(
        self, path: Path, desk: Desk, turns: Turns, options: EndpointOptions | None = None
    ) -> None:
        """Nothing is open yet.

        Args:
            path: Of the socket; what lies there is replaced.
            desk: Answers the calls.
            turns: Shared with the jobs.
            options: How patient to be.
        """
        self._path = path
        self._desk = desk
        self._turns = turns
        self._options = options or EndpointOptions()
        self._free = threading.BoundedSemaphore(self._options.max_calls)
        self._quit = threading.Event()
        self._lost_device: DeviceError | None = None

    def __enter__(self) -> Self:
        self._listening = _listening_at(self._path)
        self._thread = threading.Thread(target=self._accept, name="endpoint", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # The name stays: by now it may be the next engine's, and nobody answers under one that is left behind.
        self._quit.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def check_device(self) -> None:
        """Ask whether a call has found the device broken; what the device holds of this process stays broken.

        Raises:
            DeviceError: It has.
        """
        if self._lost_device is not None:
            raise self._lost_device

    def _accept(self) -> None:
        while not self._quit.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                # Closed by us, or out of file handles for a moment.
                self._quit.wait(0.1)
                continue
            if self._free.acquire(blocking=False):
                self._start(connection)
            else:
                self._turn_away(connection)

    def _start(self, connection: socket.socket) -> None:
        def serve() -> None:
            with closing(connection):
                try:
                    self._serve(connection)
                finally:
                    # Before the caller sees the end: who calls again at once finds room.
                    self._free.release()

        threading.Thread(target=serve, name="call", daemon=True).start()

    def _turn_away(self, connection: socket.socket) -> None:
        refusal = EngineBusyError(f"{self._options.max_calls} calls are under way already")
        with closing(connection), suppress(OSError):
            connection.settimeout(self._options.question_s)
            send(connection, _refusal(refusal))

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(self._options.question_s)
        try:
            call = receive_call(connection)
        except (MessageError, OSError) as error:
            logger.warning("a connection said nothing that makes sense: %s", type(error).__name__)
            return
        line = _Line(connection, self._options.news_s)
        try:
            said = self._said(call, line)
            send(connection, said)
        except (OSError, Cancelled):
            logger.info("a call was called off: %s", call.kind)

    def _said(self, call: Call, line: "_Line") -> Said:
        def should_stop() -> bool:
            return line.is_hung_up() or self._quit.is_set()

        try:
            with self._turns.call(should_stop):
                return self._desk.answer(call, on_progress=line.tell, should_stop=should_stop)
        except Cancelled:
            raise
        except AppError as error:
            self._lost_device = self._lost_device or lost_device(error)
            return _refusal(error)
        except Exception:
            # What it says may name files and people; it stays out of the answer.
            logger.exception("a call failed unexpectedly: %s", call.kind)
            return Refused(code=AppError.code, message="")


class _Line:
    """The connection of one call, as far as the work needs it."""

    def __init__(self, connection: socket.socket, news_s: float) -> None:
        self._connection = connection
        self._news_s = news_s
        self._share = 0.0
        self._told_at = time.monotonic()
        self._is_hung_up = False

    def tell(self, share: float) -> None:
        """Note how far the work is; it is told now and then."""
        self._share = min(1.0, max(0.0, share))
        self._tell_if_due()

    def is_hung_up(self) -> bool:
        """Whether nobody waits for the answer any more."""
        self._tell_if_due()
        if not self._is_hung_up and select.select([self._connection], [], [], 0)[0]:
            # After the question a caller says nothing: it is the end, or nonsense.
            self._is_hung_up = True
        return self._is_hung_up

    def _tell_if_due(self) -> None:
        if self._is_hung_up or time.monotonic() - self._told_at < self._news_s:
            return
        self._told_at = time.monotonic()
        try:
            send(self._connection, Working(share=self._share))
        except OSError:
            self._is_hung_up = True


def lost_device(error: BaseException | None) -> DeviceError | None:
    """The failure of the device itself behind an error; running out of its memory, or its absence, is none."""
    while error is not None:
        if type(error) is DeviceError:
            return error
        error = error.__cause__
    return None


def _refusal(error: AppError) -> Refused:
    return Refused(code=error.code, message=without_paths(error.message))


def _listening_at(path: Path) -> socket.socket:
    """A socket that only this user can reach, in place of whatever was there before."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    first = path.with_name(f".{path.name}-{os.getpid()}")
    first.unlink(missing_ok=True)
    with socket_address(first) as address:
        listening.bind(address)
    # Nobody can connect before it listens.
    first.chmod(0o600)
    listening.listen(64)
    first.rename(path)
    return listening


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """A way to name a socket that fits the system's 108 bytes, however long its path is.

    Raises:
        OSError: Its folder is not there, or the system has no other way to name it.
    """
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

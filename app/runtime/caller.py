"""The web process's side of an engine's endpoint."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.core.error_table import error_of
from app.core.errors import AppError, Cancelled, EngineBusyError, EngineNotRunningError
from app.pipeline.spec import RenderSpec
from app.runtime.calls import (
    Answer,
    Call,
    FaceKept,
    FacesSeen,
    FindFaces,
    FindPeople,
    MakePreview,
    MessageError,
    PeopleSeen,
    PreviewMade,
    Refused,
    Said,
    SaveFace,
    Working,
    receive_said,
    send,
)
from app.runtime.endpoint import socket_address

_LOOK_S = 0.2


def _never() -> bool:
    return False


class EngineCaller:
    """Asks an engine and waits for its answer; safe to use from any thread.

    Of several engines the first one that does nothing for us is asked, since it may remember the file of the last
    question; one that is not there is passed over.

    Args:
        paths: Of the engines' sockets.
        silence_s: An engine that says nothing for longer is taken for stuck.
    """

    def __init__(self, *paths: Path, silence_s: float = 30.0) -> None:
        self._silence_s = silence_s
        self._lock = threading.Lock()
        self._calls = dict.fromkeys(paths, 0)

    def find_faces(self, path: Path) -> FacesSeen:
        """Which faces a photo shows.

        Raises:
            EngineNotRunningError: There is no engine, or it died over this.
            EngineBusyError: It has too much to do.
            AppError: What the engine refuses.
        """
        answer = self.ask(FindFaces(path=path))
        assert isinstance(answer, FacesSeen)
        return answer

    def find_people(self, path: Path, *, should_stop: Callable[[], bool] = _never) -> PeopleSeen:
        """Who appears in a picture or video; of a long one this takes a while.

        Raises:
            Cancelled: `should_stop` said so.
            AppError: As `find_faces`.
        """
        answer = self.ask(FindPeople(path=path), should_stop=should_stop)
        assert isinstance(answer, PeopleSeen)
        return answer

    def make_preview(
        self, spec: RenderSpec, time_s: float, *, should_stop: Callable[[], bool] = _never
    ) -> PreviewMade:
        """How the frame at a time would come out.

        Raises:
            Cancelled: `should_stop` said so.
            AppError: As `find_faces`.
        """
        answer = self.ask(MakePreview(spec=spec, time_s=time_s), should_stop=should_stop)
        assert isinstance(answer, PreviewMade)
        return answer

    def save_face(self, call: SaveFace) -> str:
        """Make a face of photos and keep it.

        Returns:
            Its id in the face library.

        Raises:
            BadNameError: No face may be called this, or one is already.
            AppError: As `find_faces`.
        """
        answer = self.ask(call)
        assert isinstance(answer, FaceKept)
        return answer.id

    def ask(
        self,
        call: Call,
        *,
        on_progress: Callable[[float], None] = lambda _: None,
        should_stop: Callable[[], bool] = _never,
    ) -> Answer:
        """Ask anything.

        Args:
            call: The question.
            on_progress: Told about once a second how much is done, 0 to 1.
            should_stop: Asked a few times a second.

        Raises:
            Cancelled: `should_stop` said so.
            AppError: As `find_faces`.
        """
        with self._connected() as connection:
            try:
                # An engine that turns callers away does so before it has read anything.
                with suppress(BrokenPipeError):
                    send(connection, call)
                return self._heard(connection, on_progress, should_stop)
            except TimeoutError as error:
                raise EngineBusyError(
                    f"the engine said nothing for {self._silence_s:.0f} s; try again in a while"
                ) from error
            except (MessageError, OSError) as error:
                raise EngineNotRunningError(
                    "the engine ended while it worked on this; another one starts, try again"
                ) from error

    @contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        """A line to the engine that has the least to do for us.

        Raises:
            EngineBusyError: None takes a call.
            EngineNotRunningError: None is there.
        """
        with self._lock:
            nearest = sorted(self._calls, key=lambda path: self._calls[path])
        problems: list[AppError] = []
        for path in nearest:
            try:
                connection = self._line_to(path)
            except (EngineBusyError, EngineNotRunningError) as error:
                problems.append(error)
                continue
            with connection, self._counted(path):
                yield connection
            return
        raise problems[0]

    @contextmanager
    def _counted(self, path: Path) -> Iterator[None]:
        with self._lock:
            self._calls[path] += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls[path] -= 1

    def _line_to(self, path: Path) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self._silence_s)
        try:
            with socket_address(path) as address:
                connection.connect(address)
        except TimeoutError as error:
            connection.close()
            raise EngineBusyError("the engine takes no call; try again in a while") from error
        except OSError as error:
            connection.close()
            raise EngineNotRunningError(
                f"no engine answers ({os.strerror(error.errno or 0)}); it may still be starting"
            ) from error
        return connection

    def _heard(
        self,
        connection: socket.socket,
        on_progress: Callable[[float], None],
        should_stop: Callable[[], bool],
    ) -> Answer:
        while True:
            said = self._next(connection, should_stop)
            if isinstance(said, Refused):
                raise error_of(said.code, said.message)
            if not isinstance(said, Working):
                return said
            on_progress(said.share)

    def _next(self, connection: socket.socket, should_stop: Callable[[], bool]) -> Said:
        """The next message; waiting for its first byte, look up now and then."""
        until = time.monotonic() + self._silence_s
        connection.settimeout(_LOOK_S)
        while True:
            if should_stop():
                raise Cancelled("called off by whoever asked")
            try:
                connection.recv(1, socket.MSG_PEEK)
                break
            except TimeoutError:
                if time.monotonic() > until:
                    raise
        connection.settimeout(self._silence_s)
        return receive_said(connection)

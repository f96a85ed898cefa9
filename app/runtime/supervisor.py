"""The supervisor: keeps one engine process alive for as long as the web process lives."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from app.core.error_table import entry_of
from app.core.errors import AppError, DeviceError
from app.jobs.engines import EngineRegister

logger = logging.getLogger(__name__)

_DEVICE_EXIT = entry_of(DeviceError.code).exit_code
_LOOK_S = 0.2
ENGINE_COMMAND = (sys.executable, "-m", "app", "engine")


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisorOptions:
    """How patient the supervisor is.

    Attributes:
        command: Starts an engine; `--parent-fd N` is added, see `app.runtime.stopping`.
        engine_name: The engine's line in the register.
        environment: The engine's; ours without it.
        first_delay_s: Before the first restart; doubles with every quick death.
        longest_delay_s: Where doubling ends.
        steady_s: An engine that lived for so long starts with the first delay again.
        grace_s: Between the wish to stop and the end by force.
    """

    command: Sequence[str] = ENGINE_COMMAND
    engine_name: str = "engine-0"
    environment: Mapping[str, str] | None = None
    first_delay_s: float = 0.5
    longest_delay_s: float = 30.0
    steady_s: float = 60.0
    grace_s: float = 20.0


class Supervisor:
    """Starts an engine, and another one whenever it dies; use it in a `with`.

    The engine inherits the environment, and with it the settings, and the reading end of a pipe. The writing end
    is never closed but by the system: when the web process dies, however it dies, the engine reads end of file.
    """

    def __init__(
        self,
        register: EngineRegister,
        options: SupervisorOptions | None = None,
        *,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Look at the register; nothing is started yet.

        Args:
            register: Where the engine's state is kept.
            options: How patient to be.
            should_stop: Once true, the engine is told to stop and no other one is started, before `stop` is called.
        """
        self._register = register
        self._should_stop = should_stop
        self._options = options or SupervisorOptions()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._life_fds = os.pipe()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Of the engine that runs now."""
        with self._lock:
            return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the first engine; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the engine: politely, then by force; returns when it is gone."""
        self._stop.set()
        with self._lock:
            process = self._process
        if process is not None:
            _end(process, self._options.grace_s)
        self._thread.join()
        for fd in self._life_fds:
            os.close(fd)

    def _run(self) -> None:
        delay_s, restarts = self._options.first_delay_s, 0
        last_exit: int | None = None
        while True:
            self._tell("starting", last_exit, restarts)
            started_at = time.monotonic()
            last_exit = self._run_once()
            if self._is_ending():
                break
            if time.monotonic() - started_at >= self._options.steady_s:
                delay_s = self._options.first_delay_s
            logger.error("the engine ended with %d, the next starts in %.1f s", last_exit, delay_s)
            self._tell("stopped", last_exit, restarts)
            if self._stop.wait(delay_s) or self._should_stop():
                break
            delay_s, restarts = min(2 * delay_s, self._options.longest_delay_s), restarts + 1
        self._tell("stopped", last_exit, restarts)

    def _run_once(self) -> int:
        """Start an engine and wait for its end.

        Returns:
            Its exit code, negative for a signal.
        """
        command = [*self._options.command, "--parent-fd", str(self._life_fds[0])]
        with self._lock:
            if self._stop.is_set():
                return 0
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=(self._life_fds[0],),
                env=self._options.environment,
            )
        try:
            return self._watched(self._process)
        finally:
            with self._lock:
                self._process = None

    def _watched(self, process: subprocess.Popen[bytes]) -> int:
        is_told = False
        while True:
            try:
                return process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                if self._should_stop() and not is_told:
                    process.send_signal(signal.SIGTERM)
                    is_told = True

    def _is_ending(self) -> bool:
        return self._stop.is_set() or self._should_stop()

    def _tell(self, state: str, last_exit: int | None, restarts: int) -> None:
        try:
            self._register.supervised(
                self._options.engine_name,
                state=state,
                last_exit=last_exit,
                restarts=restarts,
                problem=DeviceError.code if last_exit == _DEVICE_EXIT else None,
            )
        except AppError as error:
            logger.warning("the engine's state could not be kept: %s", error.code)


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        logger.warning("the engine did not stop within %.0f s, it is killed", grace_s)
        process.kill()
        process.wait()

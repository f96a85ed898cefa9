"""The engine: takes jobs from the store, has them rendered, and hands the results in.

It may die at any moment. The store then gives its job to the next engine, and what it left in scratch is removed.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self

from app.core.error_table import without_paths
from app.core.errors import (
    AppError,
    Cancelled,
    DeviceError,
    GateUnavailableError,
    LeaseLostError,
    PolicyError,
    StorageFullError,
)
from app.core.storage import is_full, sync
from app.jobs.engines import EngineRegister
from app.jobs.folders import DataFolders, move_into_place, remove_tree
from app.jobs.job import Claim, JobFailure, JobState
from app.jobs.store import JobStore
from app.pipeline.progress import Progress, RenderResult
from app.pipeline.spec import RenderSpec
from app.runtime.endpoint import Desk, Endpoint, lost_device
from app.runtime.turns import Turns

logger = logging.getLogger(__name__)


class Executor(Protocol):
    """Renders one job; `app.runtime.executor` is the real one."""

    def render(
        self,
        spec: RenderSpec,
        *,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool],
    ) -> RenderResult:
        """Make `spec.output`, all of it or nothing.

        Args:
            spec: What to do.
            on_progress: Called as often as it likes, from any thread.
            should_stop: Asked often, from any thread; once true, `render` ends soon.

        Raises:
            Cancelled: It was asked to stop.
            AppError: It is refused, or failed.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineOptions:
    """How an engine behaves.

    Attributes:
        name: Its line in the register of engines.
        idle_s: Between two looks at an empty queue.
        tick_s: Between two looks at a running job's wishes, and so between two writes of its progress.
        beat_s: Between two signs of life while nothing else is written.
        device: Kind of device on which its networks run, for whoever asks the register.
    """

    name: str = "engine-0"
    idle_s: float = 0.2
    tick_s: float = 0.25
    beat_s: float = 3.0
    device: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineParts:
    """What an engine is wired of, in `bootstrap`.

    Attributes:
        executor: Renders jobs.
        desk: Answers the short calls of those who wait.
    """

    store: JobStore
    engines: EngineRegister
    folders: DataFolders
    executor: Executor
    desk: Desk
    options: EngineOptions = EngineOptions()


def run_engine(parts: EngineParts, *, should_stop: Callable[[], bool]) -> None:
    """Run jobs until asked to stop; a job on its way is then given back, and starts again in the next engine.

    Args:
        parts: The store, the executor, and the rest.
        should_stop: For example a `StopFlag`.
    """
    sweep_scratch(parts.store, parts.folders)
    fresh_previews(parts.folders, parts.options.name)
    turns = Turns()
    with (
        _Heart(parts, should_stop, turns) as heart,
        Endpoint(parts.folders.socket_of(parts.options.name), parts.desk, turns) as endpoint,
    ):
        logger.info("engine %s is ready", parts.options.name)
        queue = _Queue(parts)
        while not should_stop():
            endpoint.check_device()
            claim = queue.take()
            if claim is None:
                time.sleep(parts.options.idle_s)
            else:
                _run_claimed(parts, heart, claim)
                # What engines before this one have left of a job that was given up goes here, too.
                sweep_scratch(parts.store, parts.folders)
    logger.info("engine %s has stopped", parts.options.name)


def fresh_previews(folders: DataFolders, engine: str) -> None:
    """Make an engine's folder of previews, empty: what is in it is of its last life."""
    remove_tree(folders.previews_of(engine))
    folders.previews_of(engine).mkdir(parents=True, exist_ok=True)


def sweep_scratch(store: JobStore, folders: DataFolders) -> None:
    """Remove what engines that died have left of jobs that nobody will run any more."""
    unfinished = store.unfinished()
    for folder in folders.scratch.iterdir():
        if folder.name not in unfinished:
            remove_tree(folder)


class _Heart:
    """The thread that tells the store how the job is doing, and the job what the store wishes."""

    def __init__(
        self, parts: EngineParts, is_engine_stopping: Callable[[], bool], turns: Turns
    ) -> None:
        self._parts = parts
        self._turns = turns
        self.is_engine_stopping = is_engine_stopping
        self._lock = threading.Lock()
        self._claim: Claim | None = None
        self._progress: Progress | None = None
        self._is_job_unwanted = False
        self._beaten_at = 0.0
        self._quit = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine-heart", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._quit.set()
        self._thread.join()

    @contextmanager
    def beating_for(self, claim: Claim) -> Iterator[None]:
        """Keep a job's lease for the length of a `with`."""
        self._hold(claim)
        try:
            yield
        finally:
            self._hold(None)

    def on_progress(self, progress: Progress) -> None:
        """Keep the newest; it is written with the next tick."""
        self._progress = progress

    def should_stop(self) -> bool:
        """Whether the job at hand is to end: it is unwanted, or the engine has to stop."""
        return self._is_job_unwanted or self.is_engine_stopping()

    def may_go_on(self) -> bool:
        """Asked before each window of frames: whoever waits for a short call goes first."""
        self._turns.give_way(self.should_stop)
        return not self.should_stop()

    def _hold(self, claim: Claim | None) -> None:
        # Waits for a tick under way, so that no renewal of the last job falls into the next one.
        with self._lock:
            self._claim, self._progress, self._is_job_unwanted = claim, None, False
            self._beaten_at = 0.0

    def _run(self) -> None:
        while not self._quit.wait(self._parts.options.tick_s):
            try:
                with self._lock:
                    self._tick()
            except LeaseLostError:
                logger.warning("the job's lease is lost, its work is void")
                self._is_job_unwanted = True
            except AppError as error:
                # A full disk or a busy file now need not be one at the next tick.
                logger.warning("no sign of life could be given: %s", error.code)

    def _tick(self) -> None:
        progress, self._progress = self._progress, None
        is_due = time.monotonic() - self._beaten_at >= self._parts.options.beat_s
        if is_due:
            self._parts.engines.seen(
                self._parts.options.name,
                state="busy" if self._claim else "idle",
                pid=os.getpid(),
                device=self._parts.options.device,
            )
        if self._claim is not None and not self._is_job_unwanted:
            if is_due or progress is not None:
                self._parts.store.renew(self._claim, progress)
            self._is_job_unwanted = self._parts.store.is_cancel_requested(self._claim)
        if is_due:
            self._beaten_at = time.monotonic()


class _Queue:
    """Takes jobs; a store that cannot be written to is told once, not five times a second."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._told: str | None = None

    def take(self) -> Claim | None:
        """The next job, if there is one and it can be had."""
        try:
            claim = self._parts.store.claim()
        except AppError as error:
            if error.code != self._told:
                logger.warning("no job can be taken: %s", error.code)
            self._told = error.code
            return None
        self._told = None
        return claim


def _run_claimed(parts: EngineParts, heart: _Heart, claim: Claim) -> None:
    job = claim.job
    logger.info("job %s: attempt %d", job.id, job.attempt)
    scratch = parts.folders.scratch / job.id
    try:
        _settle(parts, claim, heart)
    except LeaseLostError:
        logger.warning("job %s: another engine has it", job.id)
    except DeviceError:
        # What the device holds of this process stays broken. The next process gets the job when its lease runs out,
        # and the attempts are counted, so a job that breaks every device ends too.
        logger.error("job %s: the device is lost, this engine ends", job.id)
        raise
    except AppError:
        # Nothing can be written down; the lease runs out and the job is tried again.
        logger.exception("job %s: its end could not be kept", job.id)
    finally:
        # Only this attempt's: were its lease lost meanwhile, the next attempt works beside it.
        remove_tree(scratch / claim.token)
        with suppress(OSError):
            scratch.rmdir()


def _settle(parts: EngineParts, claim: Claim, heart: _Heart) -> None:
    """Render a job and write down how it ended."""
    store, job = parts.store, claim.job
    try:
        with heart.beating_for(claim):
            result, made = _render(parts, claim, heart)
        store.finish(claim, result, publish=lambda: move_into_place(made, job.spec.output))
        logger.info("job %s: done", job.id)
    except Cancelled:
        _settle_canceled(parts.store, claim, heart)
    except LeaseLostError:
        raise
    except AppError as error:
        if (lost := lost_device(error)) is not None:
            raise lost from error
        logger.info("job %s: %s", job.id, error.code)
        store.stop(claim, _state_of(error), _failure_of(error))
    except Exception as error:
        logger.exception("job %s failed unexpectedly", job.id)
        store.stop(claim, JobState.FAILED, _failure_of(error))


def _settle_canceled(store: JobStore, claim: Claim, heart: _Heart) -> None:
    if store.is_cancel_requested(claim):
        store.stop(claim, JobState.CANCELED)
    elif heart.is_engine_stopping():
        store.release(claim)
    else:
        logger.error("job %s ended itself although nobody asked", claim.job.id)
        store.stop(claim, JobState.FAILED, JobFailure(code=AppError.code, message=""))


def _render(parts: EngineParts, claim: Claim, heart: _Heart) -> tuple[RenderResult, Path]:
    """Let the executor work in a folder of this attempt.

    Returns:
        The result as it will be when published, and the finished file that is to be renamed.
    """
    final = claim.job.spec.output
    made = _fresh_scratch(parts, claim) / final.name
    result = parts.executor.render(
        claim.job.spec.model_copy(update={"output": made}),
        on_progress=heart.on_progress,
        should_stop=lambda: not heart.may_go_on(),
    )
    # Here and not while publishing: in that transaction everybody else has to wait.
    sync(made)
    return replace(result, output=final), made


def _fresh_scratch(parts: EngineParts, claim: Claim) -> Path:
    # An attempt before this one may still write, unaware that its lease is lost: it gets no folder of ours.
    remove_tree(parts.folders.scratch / claim.job.id)
    folder = parts.folders.scratch / claim.job.id / claim.token
    folder.mkdir(parents=True)
    return folder


def _state_of(error: Exception) -> JobState:
    is_refusal = isinstance(error, PolicyError) and not isinstance(error, GateUnavailableError)
    return JobState.REFUSED if is_refusal else JobState.FAILED


def _failure_of(error: Exception) -> JobFailure:
    if isinstance(error, AppError):
        return JobFailure(code=error.code, message=without_paths(error.message))
    if isinstance(error, OSError) and is_full(error):
        return JobFailure(code=StorageFullError.code, message="the disk is full")
    # What an unexpected error says may name files and people; it stays in the log.
    return JobFailure(code=AppError.code, message="")

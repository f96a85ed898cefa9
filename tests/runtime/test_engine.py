import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import (
    Cancelled,
    DamagedMediaError,
    DeviceError,
    DeviceUnavailableError,
    GateUnavailableError,
    IntimateContentError,
    LeaseLostError,
    OutOfDeviceMemoryError,
    StorageFullError,
)
from app.jobs.job import Job, JobState
from app.jobs.lease import LeaseClock
from app.jobs.store import JobStore
from app.runtime.caller import EngineCaller
from app.runtime.engine import EngineOptions, EngineParts, run_engine
from app.runtime.stopping import StopFlag
from tests.jobs.fakes import VIDEO, FakeDesk, FakeExecutor, Volume, open_volume

QUICK = EngineOptions(idle_s=0.01, tick_s=0.02, beat_s=0.05)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    with open_volume(tmp_path / "data", clock=LeaseClock.of_this_machine()) as opened:
        yield opened


@contextmanager
def running(
    volume: Volume, executor: FakeExecutor, desk: FakeDesk | None = None
) -> Iterator[StopFlag]:
    stop = StopFlag()
    parts = EngineParts(
        store=volume.store,
        engines=volume.engines,
        folders=volume.folders,
        executor=executor,
        desk=desk or FakeDesk(),
        options=QUICK,
    )
    thread = threading.Thread(target=run_engine, args=(parts,), kwargs={"should_stop": stop})
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


def ended(volume: Volume, job: Job, within_s: float = 10) -> Job:
    until = time.monotonic() + within_s
    for snapshot in volume.studio.watch(job.id, every_s=0.01):
        assert time.monotonic() < until, snapshot
        last = snapshot
    return last


def scratch_of(volume: Volume) -> list[Path]:
    return list(volume.folders.scratch.iterdir())


def test_a_job_is_rendered_and_its_result_is_found(volume: Volume) -> None:
    job = volume.submit()
    executor = FakeExecutor()
    with running(volume, executor):
        done = ended(volume, job)
    assert (done.state, done.attempt) == (JobState.DONE, 1)
    assert done.result is not None
    assert done.result.output == job.spec.output
    result = volume.studio.result(job.id)
    assert (result.name, result.media_type) == ("party_swapped.mp4", "video/mp4")
    assert result.path.read_bytes() == VIDEO
    assert executor.rendered[0].output != job.spec.output
    assert scratch_of(volume) == []


def test_jobs_run_in_the_order_in_which_they_came(volume: Volume) -> None:
    jobs = [volume.submit() for _ in range(3)]
    executor = FakeExecutor()
    with running(volume, executor):
        ended(volume, jobs[-1])
    assert [spec.target for spec in executor.rendered] == [job.spec.target for job in jobs]


def test_a_watcher_sees_the_job_move(volume: Volume) -> None:
    job = volume.submit()
    with running(volume, FakeExecutor(steps=5, step_s=0.1)):
        seen = list(volume.studio.watch(job.id, every_s=0.01))
    states = [snapshot.state for snapshot in seen]
    assert states[0] is JobState.QUEUED
    assert JobState.RUNNING in states
    assert states[-1] is JobState.DONE
    done = [s.progress.frames_done for s in seen if s.progress]
    assert done == sorted(done)
    assert len(set(done)) >= 3


@pytest.mark.parametrize(
    ("error", "state", "code", "message"),
    [
        pytest.param(
            DamagedMediaError("/data/media/x/original: 12 of 30 frames"),
            JobState.FAILED,
            "media.damaged",
            "original: 12 of 30 frames",
            id="an error of ours, without its path",
        ),
        pytest.param(
            IntimateContentError("score 0.9"),
            JobState.REFUSED,
            "policy.intimate_content",
            "score 0.9",
            id="refused by policy",
        ),
        pytest.param(
            GateUnavailableError("no model"),
            JobState.FAILED,
            "policy.gate_unavailable",
            "no model",
            id="a gate that cannot look has refused nobody",
        ),
        pytest.param(
            ValueError("secret /data/me.png"),
            JobState.FAILED,
            "internal.unexpected",
            "",
            id="an unexpected error tells nothing",
        ),
        pytest.param(
            OSError(28, "No space left on device"),
            JobState.FAILED,
            StorageFullError.code,
            "the disk is full",
            id="a full disk",
        ),
        pytest.param(
            Cancelled("by itself"), JobState.FAILED, "internal.unexpected", "", id="unasked stop"
        ),
    ],
)
def test_a_failure_is_written_down_and_the_next_job_runs(
    volume: Volume, error: Exception, state: JobState, code: str, message: str
) -> None:
    job, after = volume.submit(), volume.submit()
    executor = FakeExecutor(error=error, on_step=lambda _: None)
    with running(volume, executor):
        failed = ended(volume, job)
        executor.error = None
        ended(volume, after)
    assert failed.state is state
    assert failed.failure is not None
    assert (failed.failure.code, failed.failure.message) == (code, message)
    assert not job.spec.output.exists()
    assert scratch_of(volume) == []


def test_an_executor_that_makes_no_file_fails(volume: Volume) -> None:
    class Forgetful(FakeExecutor):
        def render(self, spec, **rest):  # type: ignore[no-untyped-def]
            result = super().render(spec, **rest)
            spec.output.unlink()
            return result

    job = volume.submit()
    with running(volume, Forgetful()):
        assert ended(volume, job).state is JobState.FAILED


def test_a_running_job_is_canceled_within_a_second(volume: Volume) -> None:
    job = volume.submit()
    started = threading.Event()
    executor = FakeExecutor(steps=1000, step_s=0.02, on_step=lambda _: started.set())
    with running(volume, executor):
        assert started.wait(10)
        volume.studio.cancel(job.id)
        canceled = ended(volume, job, within_s=1.0)
    assert (canceled.state, canceled.failure) == (JobState.CANCELED, None)
    assert not job.spec.output.exists()
    assert scratch_of(volume) == []


def test_an_engine_that_has_to_stop_gives_its_job_back(volume: Volume) -> None:
    job = volume.submit()
    started = threading.Event()
    with running(volume, FakeExecutor(steps=1000, step_s=0.02, on_step=lambda _: started.set())):
        assert started.wait(10)
    waiting = volume.studio.job(job.id)
    assert (waiting.state, waiting.attempt, waiting.progress) == (JobState.QUEUED, 0, None)
    assert scratch_of(volume) == []
    with running(volume, FakeExecutor()):
        assert ended(volume, job).state is JobState.DONE


def test_a_long_step_does_not_cost_the_lease(volume: Volume) -> None:
    store = JobStore(volume.database, terms=replace(volume.store.terms, lease_s=1.5))
    volume.store = store
    job = volume.submit()
    with running(volume, FakeExecutor(steps=1, step_s=3.0)):
        time.sleep(2.0)
        assert store.claim() is None
        assert ended(volume, job).attempt == 1


def test_an_engine_that_lost_its_lease_publishes_nothing_and_goes_on(volume: Volume) -> None:
    job = volume.submit()
    started, go_on = threading.Event(), threading.Event()

    def on_step(step: int) -> None:
        started.set()
        go_on.wait(10)

    with running(volume, FakeExecutor(steps=1, on_step=on_step)):
        assert started.wait(10)
        # Somebody else has taken the job over, and is done.
        with volume.database.write() as db:
            db.execute("UPDATE jobs SET token = 'other', state = 'done', result = NULL")
        go_on.set()
        after = volume.submit()
        ended(volume, after)
    assert not job.spec.output.exists()


def test_the_engine_says_that_it_lives_and_what_it_does(volume: Volume) -> None:
    started = threading.Event()
    executor = FakeExecutor(steps=30, step_s=0.02, on_step=lambda _: started.set())
    with running(volume, executor):
        time.sleep(0.2)
        assert [(e.state, e.is_alive) for e in volume.engines.all()] == [("idle", True)]
        job = volume.submit()
        assert started.wait(10)
        time.sleep(0.2)
        assert volume.engines.all()[0].state == "busy"
        ended(volume, job)


def test_leftovers_of_jobs_that_nobody_runs_any_more_are_swept(volume: Volume) -> None:
    waiting = volume.submit()
    for name in ("long-gone", waiting.id):
        (volume.folders.scratch / name / "attempt").mkdir(parents=True)
    with running(volume, FakeExecutor()):
        ended(volume, waiting)
    assert scratch_of(volume) == []


def test_an_engine_whose_device_is_lost_ends_and_its_job_waits_for_the_next(volume: Volume) -> None:
    job = volume.submit()
    gate = GateUnavailableError("the gate could not look")
    gate.__cause__ = DeviceError("the device is gone")
    parts = EngineParts(
        store=volume.store,
        engines=volume.engines,
        folders=volume.folders,
        executor=FakeExecutor(error=gate),
        desk=FakeDesk(),
        options=QUICK,
    )
    with pytest.raises(DeviceError, match="gone"):
        run_engine(parts, should_stop=lambda: False)
    assert volume.studio.job(job.id).state is JobState.RUNNING
    assert scratch_of(volume) == []


@pytest.mark.parametrize(
    "error", [OutOfDeviceMemoryError("full"), DeviceUnavailableError("none")], ids=str
)
def test_a_device_without_room_ends_the_job_and_not_the_engine(
    volume: Volume, error: DeviceError
) -> None:
    job = volume.submit()
    with running(volume, FakeExecutor(error=error)):
        assert ended(volume, job).state is JobState.FAILED


def test_a_running_job_gives_way_to_a_call_and_both_end(volume: Volume) -> None:
    seen: list[tuple[float, str]] = []
    job = volume.submit()
    executor = FakeExecutor(
        steps=60, step_s=0.02, on_step=lambda _: seen.append((time.monotonic(), "window"))
    )
    desk = FakeDesk(steps=20, step_s=0.02)
    caller = EngineCaller(volume.folders.socket_of("engine-0"))
    with running(volume, executor, desk):
        wait_for(lambda: len(seen) > 3)
        began = time.monotonic()
        answer = caller.find_faces(job.spec.target)
        ended_at = time.monotonic()
        done = ended(volume, job)
    assert len(answer.faces) == 1
    assert done.state is JobState.DONE
    during = [at for at, _ in seen if began + 0.04 < at < ended_at]
    # The window that was on its way, and no other; without the turns some fifteen would fit.
    assert len(during) <= 1
    assert ended_at - began < 2


def test_a_job_gets_on_however_many_calls_come(volume: Volume) -> None:
    job = volume.submit()
    stop = threading.Event()
    caller = EngineCaller(volume.folders.socket_of("engine-0"))

    def keep_calling() -> None:
        while not stop.is_set():
            caller.find_faces(job.spec.target)

    with running(volume, FakeExecutor(steps=20), FakeDesk(step_s=0.02)):
        callers = [threading.Thread(target=keep_calling) for _ in range(4)]
        wait_for(volume.folders.socket_of("engine-0").exists)
        for each in callers:
            each.start()
        try:
            assert ended(volume, job).state is JobState.DONE
        finally:
            stop.set()
            for each in callers:
                each.join()


def test_a_call_that_finds_the_device_lost_ends_the_engine(volume: Volume) -> None:
    parts = EngineParts(
        store=volume.store,
        engines=volume.engines,
        folders=volume.folders,
        executor=FakeExecutor(),
        desk=FakeDesk(error=DeviceError("the device is gone")),
        options=QUICK,
    )
    caller = EngineCaller(volume.folders.socket_of("engine-0"))
    told: list[BaseException] = []

    def call() -> None:
        wait_for(volume.folders.socket_of("engine-0").exists)
        try:
            caller.find_faces(Path("photo.png"))
        except DeviceError as error:
            told.append(error)

    asking = threading.Thread(target=call)
    asking.start()
    with pytest.raises(DeviceError, match="gone"):
        run_engine(parts, should_stop=lambda: False)
    asking.join()
    assert len(told) == 1


def test_an_attempt_that_lost_its_lease_leaves_the_next_ones_files_alone(volume: Volume) -> None:
    job = volume.submit()
    beside = volume.folders.scratch / job.id / "another attempt"

    def another_attempt_begins(step: int) -> None:
        beside.mkdir(exist_ok=True)

    lost = FakeExecutor(steps=2, on_step=another_attempt_begins, error=LeaseLostError("lost"))
    with running(volume, lost):
        wait_for(lambda: len(lost.rendered) == 1 and beside.exists())
        wait_for(lambda: [*beside.parent.iterdir()] == [beside])


def wait_for(condition: Callable[[], bool], within_s: float = 5) -> None:
    until = time.monotonic() + within_s
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()

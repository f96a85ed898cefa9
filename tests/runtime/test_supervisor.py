import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.jobs.job import EngineStatus, JobState
from app.jobs.lease import LeaseClock
from app.runtime.stopping import stop_when_asked
from app.runtime.supervisor import Supervisor, SupervisorOptions
from tests.jobs.fakes import VIDEO, Volume, open_volume

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    with open_volume(tmp_path, clock=LeaseClock.of_this_machine()) as opened:
        yield opened


def engine_command(volume: Volume, *more: str) -> tuple[str, ...]:
    data = str(volume.folders.root)
    return (sys.executable, "-m", "tests.runtime.engine_process", "--data", data, *more)


def wait_until(condition: Callable[[], object], within_s: float = 30) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def engine_of(volume: Volume) -> EngineStatus | None:
    return next(iter(volume.engines.all()), None)


def is_alive(volume: Volume) -> bool:
    engine = engine_of(volume)
    return engine is not None and engine.is_alive


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A child of a process that was killed is a zombie until somebody collects it.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_a_real_engine_process_does_a_job_and_stops_when_told(volume: Volume) -> None:
    with Supervisor(
        volume.engines, SupervisorOptions(command=engine_command(volume))
    ) as supervisor:
        job = volume.submit()
        *_, done = volume.studio.watch(job.id)
        assert done.state is JobState.DONE
        assert volume.studio.result(job.id).path.read_bytes() == VIDEO
        pid = supervisor.pid
        assert pid is not None
        # The job may be done before the engine's first sign of life.
        wait_until(lambda: volume.studio.readiness().engines[0].pid == pid)
    assert is_gone(pid)
    engine = engine_of(volume)
    assert engine is not None
    assert (engine.state, engine.is_alive, engine.last_exit) == ("stopped", False, 0)


def test_an_engine_that_dies_is_replaced_and_its_job_is_done(volume: Volume) -> None:
    command = engine_command(volume, "--lease-s", "0.6", "--steps", "20", "--step-s", "0.05")
    options = SupervisorOptions(command=command, first_delay_s=0.05)
    with Supervisor(volume.engines, options) as supervisor:
        job = volume.submit()
        wait_until(lambda: volume.studio.job(job.id).progress)
        first = supervisor.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        *_, done = volume.studio.watch(job.id)
        assert (done.state, done.attempt) == (JobState.DONE, 2)
        assert supervisor.pid not in (None, first)
        engine = engine_of(volume)
        assert engine is not None
        assert (engine.last_exit, engine.restarts) == (-signal.SIGKILL, 1)


def test_an_engine_that_cannot_start_is_tried_ever_more_rarely(volume: Volume) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit(7)")
    options = SupervisorOptions(command=command, first_delay_s=0.1, longest_delay_s=60)
    with Supervisor(volume.engines, options):
        wait_until(lambda: (engine := engine_of(volume)) and engine.restarts >= 2)
        engine = engine_of(volume)
        assert engine is not None
        assert engine.last_exit == 7
        assert not volume.studio.readiness().is_ready
        time.sleep(0.3)
        assert engine.restarts <= 3


def test_an_engine_that_will_not_stop_is_ended_by_force(volume: Volume) -> None:
    stubborn = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        " open(sys.argv[1], 'w').close(); time.sleep(600)"
    )
    marker = volume.folders.root / "started"
    command = (sys.executable, "-c", stubborn, str(marker))
    with Supervisor(volume.engines, SupervisorOptions(command=command, grace_s=0.3)) as supervisor:
        wait_until(marker.exists)
        pid = supervisor.pid
        assert pid is not None
    assert is_gone(pid)


def test_the_engine_ends_when_the_web_process_dies_hard(volume: Volume) -> None:
    command = [sys.executable, "-m", "tests.runtime.supervisor_process", str(volume.folders.root)]
    web = subprocess.Popen(command, cwd=ROOT)
    wait_until(lambda: is_alive(volume))
    engine = engine_of(volume)
    assert engine is not None
    assert engine.pid is not None
    web.kill()
    web.wait()
    pid = engine.pid
    wait_until(lambda: is_gone(pid), within_s=10)


def test_without_its_parent_a_process_that_hangs_is_ended() -> None:
    code = (
        "import sys, time; from app.runtime.stopping import stop_when_asked\n"
        "with stop_when_asked(int(sys.argv[1]), grace_s=0.2): time.sleep(600)"
    )
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(reading)], cwd=ROOT, pass_fds=(reading,)
    )
    os.close(reading)
    os.close(writing)
    assert process.wait(30) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_flag_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_when_asked() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop.wait(5)
        assert stop()
    assert signal.getsignal(number) is before


def test_a_wish_to_stop_ends_the_engine_before_anybody_waits_for_it(volume: Volume) -> None:
    is_over = threading.Event()
    options = SupervisorOptions(command=engine_command(volume), first_delay_s=0.05)
    with Supervisor(volume.engines, options, should_stop=is_over.is_set) as supervisor:
        wait_until(lambda: is_alive(volume))
        pid = supervisor.pid
        assert pid is not None
        is_over.set()
        wait_until(lambda: is_gone(pid))
        time.sleep(0.3)
        assert supervisor.pid is None


def test_several_engines_share_the_queue_each_with_its_own_device(volume: Volume) -> None:
    told = volume.folders.root / "device"
    with ExitStack() as engines:
        for number in range(2):
            name = f"engine-{number}"
            steps = (
                "--name",
                name,
                "--steps",
                "30",
                "--step-s",
                "0.05",
                "--tell",
                f"{told}{number}",
            )
            options = SupervisorOptions(
                command=engine_command(volume, *steps),
                engine_name=name,
                environment={**os.environ, "CUDA_VISIBLE_DEVICES": f"GPU-{number}"},
            )
            engines.enter_context(Supervisor(volume.engines, options))
        wait_until(lambda: all(engine.is_alive for engine in volume.engines.all()))
        jobs = [volume.submit() for _ in range(2)]
        wait_until(lambda: all(volume.studio.job(job.id).state is JobState.RUNNING for job in jobs))
        for job in jobs:
            *_, done = volume.studio.watch(job.id)
            assert done.state is JobState.DONE
    devices = [Path(f"{told}{number}").read_text() for number in range(2)]
    assert devices == ["GPU-0", "GPU-1"]

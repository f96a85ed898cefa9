"""Engines are killed at random moments; no job may be lost, none may be published twice."""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from app.jobs.job import JobState
from app.jobs.lease import LeaseClock
from app.jobs.store import LeaseTerms
from app.runtime.engine import sweep_scratch
from tests.jobs.fakes import STILL, Volume, open_volume, tiny_job

ROOT = Path(__file__).resolve().parents[2]
JOBS = 60
KILLS = 8
# Attempts end in a failure by design; here every kill may hit the same job.
TERMS = LeaseTerms(lease_s=0.6, max_attempts=100)


def start_engine(data: Path, name: str) -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-m", "tests.runtime.engine_process", "--data", str(data)),
        *("--name", name, "--steps", "3", "--step-s", "0.04"),
        *("--lease-s", str(TERMS.lease_s), "--attempts", str(TERMS.max_attempts)),
    ]
    return subprocess.Popen(command, cwd=ROOT)


def is_at_work(volume: Volume, engine: "subprocess.Popen[bytes]") -> bool:
    return engine.pid in {status.pid for status in volume.engines.all()}


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_no_job_is_lost_and_none_is_done_twice(tmp_path: Path) -> None:
    dice = random.Random(7)
    with open_volume(tmp_path, clock=LeaseClock.of_this_machine(), terms=TERMS) as volume:
        media_id = volume.upload()
        ids = [
            volume.store.submit(tiny_job(volume.folders, media_id), max_queued=JOBS).id
            for _ in range(JOBS)
        ]
        with volume.database.write() as db:
            db.execute("CREATE TABLE ends (id TEXT)")
            db.execute(
                "CREATE TRIGGER note_end AFTER UPDATE OF state ON jobs WHEN new.state = 'done'"
                " BEGIN INSERT INTO ends VALUES (new.id); END"
            )
        engines = [start_engine(tmp_path, f"engine-{number}") for number in range(2)]
        for _ in range(KILLS):
            number = dice.randrange(2)
            wait_until(lambda: is_at_work(volume, engines[number]))  # noqa: B023
            time.sleep(dice.uniform(0, 0.15))
            engines[number].kill()
            engines[number].wait()
            engines[number] = start_engine(tmp_path, f"engine-{number}")
        wait_until(lambda: not volume.store.unfinished())
        for engine in engines:
            wait_until(lambda: is_at_work(volume, engine))  # noqa: B023
            engine.terminate()
        assert [engine.wait(30) for engine in engines] == [0, 0]

        jobs = volume.store.jobs(limit=JOBS)
        assert sorted(job.id for job in jobs) == sorted(ids)
        assert {job.state for job in jobs} == {JobState.DONE}
        assert sum(job.attempt for job in jobs) > JOBS, "no kill has hit a job"
        assert all(job.spec.output.read_bytes() == STILL for job in jobs)
        with volume.database.read() as db:
            ends = [row["id"] for row in db.execute("SELECT id FROM ends")]
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert sorted(ends) == sorted(ids)
        sweep_scratch(volume.store, volume.folders)
        assert list(volume.folders.scratch.iterdir()) == []

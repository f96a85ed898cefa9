"""Engines are killed at random moments; no job may be lost, none may be published twice."""

import random
import subprocess
import sys
import time
from pathlib import Path

from app.jobs.job import JobState
from app.jobs.lease import LeaseClock
from app.jobs.store import LeaseTerms
from tests.jobs.fakes import STILL, open_volume, tiny_job

ROOT = Path(__file__).resolve().parents[2]
JOBS = 60
KILLS = 12
# Attempts end in a failure by design; here every kill may hit the same job.
TERMS = LeaseTerms(lease_s=0.6, max_attempts=100)


def start_engine(data: Path, name: str) -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-m", "tests.runtime.engine_process", "--data", str(data)),
        *("--name", name, "--steps", "3", "--step-s", "0.02"),
        *("--lease-s", str(TERMS.lease_s), "--attempts", str(TERMS.max_attempts)),
    ]
    return subprocess.Popen(command, cwd=ROOT)


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
        until = time.monotonic() + 120
        kills = 0
        while volume.store.unfinished():
            assert time.monotonic() < until, volume.store.unfinished()
            if kills < KILLS:
                # Long enough for a process to start and do some jobs.
                time.sleep(dice.uniform(0.5, 1.2))
                victim = dice.randrange(2)
                engines[victim].kill()
                engines[victim].wait()
                engines[victim] = start_engine(tmp_path, f"engine-{victim}")
                kills += 1
            time.sleep(0.05)
        for engine in engines:
            engine.terminate()
        assert [engine.wait(30) for engine in engines] == [0, 0]

        jobs = volume.store.jobs(limit=JOBS)
        assert sorted(job.id for job in jobs) == sorted(ids)
        assert {job.state for job in jobs} == {JobState.DONE}
        assert all(job.spec.output.read_bytes() == STILL for job in jobs)
        with volume.database.read() as db:
            ends = [row["id"] for row in db.execute("SELECT id FROM ends")]
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert sorted(ends) == sorted(ids)
        assert [path for path in volume.folders.scratch.iterdir() if any(path.iterdir())] == []

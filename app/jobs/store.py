"""The job store: what the doors ask of it, and what an engine asks of it.

A job runs at least once and is published exactly once. An engine claims it with a lease and a fencing token,
renews the lease while it works, and hands in the result under the token. An engine that dies stops renewing,
so another one claims the job; one that was only slow finds its token gone and throws its work away.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.core.errors import (
    InUseError,
    JobNotFoundError,
    KeyReusedError,
    LeaseLostError,
    NotFoundError,
    QueueFullError,
    WorkerLostError,
)
from app.jobs.database import Database
from app.jobs.job import (
    Claim,
    Job,
    JobFailure,
    JobId,
    JobRequest,
    JobState,
    MediaId,
    NewJob,
)
from app.jobs.lease import LeaseClock, new_token
from app.jobs.rows import failure_json, job_of, progress_json, result_json
from app.pipeline.progress import Progress, RenderResult

# Waiting before this one: jobs that wait and came earlier.
_SELECT = """
    SELECT *, (SELECT count(*) FROM jobs AS other
               WHERE other.state = 'queued' AND other.seq < jobs.seq) AS queue_position
    FROM jobs
"""
_EXPIRED = "(state = 'running' AND (lease_boot IS NOT :boot OR lease_until <= :now))"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseTerms:
    """How long an engine may be silent, and how often a job is tried."""

    lease_s: float = 15.0
    max_attempts: int = 3


class JobStore:
    """All jobs; safe to use from any thread of any process of this machine."""

    def __init__(
        self,
        database: Database,
        *,
        terms: LeaseTerms | None = None,
        clock: LeaseClock | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self.terms = terms or LeaseTerms()
        self._clock = clock or LeaseClock.of_this_machine()
        self._wall_clock = wall_clock

    # What the doors ask.

    def submit(self, new: NewJob, *, max_queued: int) -> Job:
        """Accept a job; once this returns, it is never lost.

        Returns:
            The job, or the earlier one that came with the same idempotency key.

        Raises:
            KeyReusedError: The key belongs to a different request.
            QueueFullError: As many jobs wait as may wait.
            NotFoundError: An input is not, or no longer, there.
        """
        with self._database.write() as db:
            if new.idempotency_key is not None:
                earlier = _with_key(db, new.idempotency_key, new.request)
                if earlier is not None:
                    return earlier
            waiting: int = db.execute(
                "SELECT count(*) FROM jobs WHERE state = 'queued'"
            ).fetchone()[0]
            if waiting >= max_queued:
                raise QueueFullError(f"{waiting} jobs wait already; try again when some are done")
            self._insert(db, new)
            return _job(db, new.id)

    def earlier(self, idempotency_key: str, request: JobRequest) -> Job | None:
        """The job that came with this idempotency key before, if any.

        Raises:
            KeyReusedError: The key belongs to a different request.
        """
        with self._database.read() as db:
            return _with_key(db, idempotency_key, request)

    def job(self, job_id: JobId) -> Job:
        """A snapshot of one job.

        Raises:
            JobNotFoundError: No job has this id.
        """
        with self._database.read() as db:
            return _job(db, job_id)

    def jobs(self, *, limit: int = 100) -> tuple[Job, ...]:
        """The newest jobs, newest first."""
        with self._database.read() as db:
            rows = db.execute(_SELECT + "ORDER BY seq DESC LIMIT ?", (limit,)).fetchall()
        return tuple(job_of(row) for row in rows)

    def unfinished(self) -> frozenset[JobId]:
        """The jobs that wait or run."""
        with self._database.read() as db:
            rows = db.execute("SELECT id FROM jobs WHERE state IN ('queued', 'running')").fetchall()
        return frozenset(JobId(row["id"]) for row in rows)

    def needs_face(self, face_id: str) -> bool:
        """Whether a job that waits or runs puts a saved face on."""
        with self._database.read() as db:
            query = _SELECT + "WHERE state IN ('queued', 'running')"
            rows = db.execute(query).fetchall()
        return any(face_id in job_of(row).spec.face_map.saved_faces for row in rows)

    def is_input(self, media_id: MediaId) -> bool:
        """Whether any job, finished or not, was made with an upload."""
        with self._database.read() as db:
            query = "SELECT 1 FROM job_inputs WHERE media_id = ? LIMIT 1"
            return db.execute(query, (media_id,)).fetchone() is not None

    def cancel(self, job_id: JobId) -> Job:
        """Ask a job to stop: at once if it waits, soon if it runs; a finished one stays as it is.

        Raises:
            JobNotFoundError: No job has this id.
        """
        with self._database.write() as db:
            job = _job(db, job_id)
            if job.state is JobState.QUEUED:
                self._end(db, job_id, JobState.CANCELED)
            elif job.state is JobState.RUNNING:
                self._update(db, job_id, "cancel = 1", {})
            return _job(db, job_id)

    def delete(self, job_id: JobId) -> None:
        """Forget a finished job.

        Raises:
            JobNotFoundError: No job has this id.
            InUseError: It waits or runs; cancel it first.
        """
        with self._database.write() as db:
            if not _job(db, job_id).state.is_final:
                raise InUseError("the job is not finished; cancel it first")
            db.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    # What an engine asks.

    def claim(self) -> Claim | None:
        """Take the oldest job that waits, or whose engine fell silent; `None` when there is nothing to do.

        A job whose engine fell silent too often fails here, one that somebody canceled meanwhile ends here.
        """
        if not self._is_anything_claimable():
            return None
        with self._database.write() as db:
            self._bury_the_lost(db)
            row = db.execute(
                f"SELECT id FROM jobs WHERE state = 'queued' OR {_EXPIRED} ORDER BY seq LIMIT 1",
                self._now(),
            ).fetchone()
            return None if row is None else self._take(db, JobId(row["id"]))

    def renew(self, claim: Claim, progress: Progress | None = None) -> None:
        """Keep the lease, and tell how far the job is.

        Raises:
            LeaseLostError: The job is somebody else's by now.
        """
        change = "lease_until = :until, progress = coalesce(:progress, progress)"
        values = {
            "until": self._clock.now() + self.terms.lease_s,
            "progress": progress_json(progress) if progress else None,
        }
        with self._database.write() as db:
            _check(db, claim)
            self._update(db, claim.job.id, change, values)

    def is_cancel_requested(self, claim: Claim) -> bool:
        """Whether somebody wants this job to stop.

        Raises:
            LeaseLostError: The job is somebody else's by now.
        """
        with self._database.read() as db:
            return bool(_check(db, claim)["cancel"])

    def finish(
        self, claim: Claim, result: RenderResult, *, publish: Callable[[], None] = lambda: None
    ) -> Job:
        """Publish a result and end the job as done, both or neither.

        Args:
            claim: The right to do so.
            result: What was made.
            publish: Renames the finished file; runs inside the transaction, so only the owner of the token does it.

        Raises:
            LeaseLostError: The job is somebody else's by now; nothing was published.
        """
        with self._database.write() as db:
            _check(db, claim)
            publish()
            self._end(db, claim.job.id, JobState.DONE, result=result_json(result))
            return _job(db, claim.job.id)

    def stop(self, claim: Claim, state: JobState, failure: JobFailure | None = None) -> Job:
        """End a job without a result: failed, refused or canceled.

        Raises:
            LeaseLostError: The job is somebody else's by now.
        """
        with self._database.write() as db:
            _check(db, claim)
            self._end(db, claim.job.id, state, failure=failure_json(failure) if failure else None)
            return _job(db, claim.job.id)

    def release(self, claim: Claim) -> None:
        """Give a job back unfinished because the engine has to stop; the attempt does not count.

        A job that somebody canceled meanwhile ends.

        Raises:
            LeaseLostError: The job is somebody else's by now.
        """
        change = "state = 'queued', attempt = attempt - 1, token = NULL, progress = NULL"
        with self._database.write() as db:
            if _check(db, claim)["cancel"]:
                self._end(db, claim.job.id, JobState.CANCELED)
            else:
                self._update(db, claim.job.id, change, {})

    # Inside a transaction.

    def _now(self) -> dict[str, object]:
        return {"now": self._clock.now(), "boot": self._clock.boot}

    def _is_anything_claimable(self) -> bool:
        with self._database.read() as db:
            query = f"SELECT 1 FROM jobs WHERE state = 'queued' OR {_EXPIRED} LIMIT 1"
            return db.execute(query, self._now()).fetchone() is not None

    def _insert(self, db: sqlite3.Connection, new: NewJob) -> None:
        now = self._wall_clock()
        db.execute(
            "INSERT INTO jobs (id, state, request, spec, download_name, idempotency_key,"
            " created_at, updated_at) VALUES (?, 'queued', ?, ?, ?, ?, ?, ?)",
            (
                new.id,
                new.request.model_dump_json(),
                new.spec.model_dump_json(),
                new.download_name,
                new.idempotency_key,
                now,
                now,
            ),
        )
        for media_id in new.request.inputs:
            found = db.execute("SELECT 1 FROM media WHERE id = ?", (media_id,)).fetchone()
            if found is None:
                raise NotFoundError("an input is not there (any more); upload it again")
            db.execute("INSERT INTO job_inputs VALUES (?, ?)", (new.id, media_id))

    def _bury_the_lost(self, db: sqlite3.Connection) -> None:
        rows = db.execute(f"SELECT id, attempt, cancel FROM jobs WHERE {_EXPIRED}", self._now())
        for row in rows.fetchall():
            if row["cancel"]:
                self._end(db, JobId(row["id"]), JobState.CANCELED)
            elif row["attempt"] >= self.terms.max_attempts:
                failure = JobFailure(
                    code=WorkerLostError.code,
                    message=f"the engine died {row['attempt']} times while it ran this job",
                )
                self._end(db, JobId(row["id"]), JobState.FAILED, failure=failure_json(failure))

    def _take(self, db: sqlite3.Connection, job_id: JobId) -> Claim:
        token = new_token()
        change = (
            "state = 'running', attempt = attempt + 1, token = :token, progress = NULL,"
            " lease_boot = :boot, lease_until = :until, started_at = coalesce(started_at, :wall)"
        )
        values = {
            "token": token,
            "boot": self._clock.boot,
            "until": self._clock.now() + self.terms.lease_s,
        }
        self._update(db, job_id, change, values)
        return Claim(job=_job(db, job_id), token=token)

    def _end(
        self,
        db: sqlite3.Connection,
        job_id: JobId,
        state: JobState,
        *,
        result: str | None = None,
        failure: str | None = None,
    ) -> None:
        change = (
            "state = :state, result = :result, failure = :failure, token = NULL,"
            " finished_at = :wall"
        )
        self._update(
            db, job_id, change, {"state": state.value, "result": result, "failure": failure}
        )

    def _update(
        self, db: sqlite3.Connection, job_id: JobId, change: str, values: Mapping[str, object]
    ) -> None:
        """Apply a change to a job that is not final; final ones never change, whoever asks."""
        db.execute(
            f"UPDATE jobs SET {change}, updated_at = :wall, revision = revision + 1"
            " WHERE id = :id AND state IN ('queued', 'running')",
            {**values, "wall": self._wall_clock(), "id": job_id},
        )


def _job(db: sqlite3.Connection, job_id: JobId) -> Job:
    row = db.execute(_SELECT + "WHERE id = ?", (job_id,)).fetchone()
    if row is None:
        raise JobNotFoundError("no job has this id")
    return job_of(row)


def _check(db: sqlite3.Connection, claim: Claim) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute(
        "SELECT cancel FROM jobs WHERE id = ? AND state = 'running' AND token = ?",
        (claim.job.id, claim.token),
    ).fetchone()
    if row is None:
        raise LeaseLostError("another engine runs this job by now")
    return row


def _with_key(db: sqlite3.Connection, key: str, request: JobRequest) -> Job | None:
    row = db.execute(_SELECT + "WHERE idempotency_key = ?", (key,)).fetchone()
    if row is None:
        return None
    job = job_of(row)
    if job.request != request:
        raise KeyReusedError("this idempotency key came with another request; use a new key")
    return job

import threading
from pathlib import Path

import pytest

from app.core.errors import (
    InUseError,
    JobNotFoundError,
    KeyReusedError,
    LeaseLostError,
    NotFoundError,
    OutputError,
    QueueFullError,
)
from app.core.types import Notice
from app.jobs.database import Database
from app.jobs.job import Claim, Job, JobFailure, JobId, JobState, MediaId
from app.jobs.lease import LeaseClock
from app.jobs.store import JobStore
from app.pipeline.progress import Progress, RenderResult
from tests.jobs.fakes import Volume, open_volume, tiny_job

PROGRESS = Progress(frames_done=3, frames_total=10, fps=1.5, elapsed_s=2.0)


def result_of(job: Job) -> RenderResult:
    return RenderResult(
        output=job.spec.output,
        frames=10,
        frames_swapped=8,
        faces_swapped=9,
        notices=(Notice("media.damaged_frames", "2 frames"),),
    )


def submitted(volume: Volume, key: str | None = None) -> Job:
    new = tiny_job(volume.folders, volume.upload(), key)
    return volume.store.submit(new, max_queued=100)


def claimed(volume: Volume) -> Claim:
    claim = volume.store.claim()
    assert claim is not None
    return claim


def test_an_empty_store_has_nothing_to_claim(volume: Volume) -> None:
    assert volume.store.claim() is None
    assert volume.store.jobs() == ()


def test_a_submitted_job_waits_with_everything_that_was_asked_for(volume: Volume) -> None:
    new = tiny_job(volume.folders, volume.upload())
    job = volume.store.submit(new, max_queued=1)
    assert (job.id, job.request, job.spec) == (new.id, new.request, new.spec)
    assert (job.state, job.attempt, job.queue_position) == (JobState.QUEUED, 0, 0)
    assert volume.store.job(new.id) == job


def test_jobs_are_claimed_oldest_first_and_listed_newest_first(volume: Volume) -> None:
    ids = [submitted(volume).id for _ in range(3)]
    assert [job.id for job in volume.store.jobs()] == ids[::-1]
    assert [job.queue_position for job in volume.store.jobs()] == [2, 1, 0]
    assert [claimed(volume).job.id for _ in ids] == ids
    assert volume.store.claim() is None


def test_the_list_is_cut_at_its_limit(volume: Volume) -> None:
    ids = [submitted(volume).id for _ in range(3)]
    assert [job.id for job in volume.store.jobs(limit=2)] == ids[:0:-1]


def test_a_job_runs_tells_its_progress_and_ends(volume: Volume) -> None:
    submitted(volume)
    claim = claimed(volume)
    assert (claim.job.state, claim.job.attempt) == (JobState.RUNNING, 1)
    volume.store.renew(claim, PROGRESS)
    assert volume.store.job(claim.job.id).progress == PROGRESS
    volume.store.renew(claim)
    assert volume.store.job(claim.job.id).progress == PROGRESS
    done = volume.store.finish(claim, result_of(claim.job))
    assert (done.state, done.result) == (JobState.DONE, result_of(claim.job))
    assert done.finished_at is not None


@pytest.mark.parametrize(
    ("state", "failure"),
    [
        pytest.param(JobState.FAILED, JobFailure(code="media.damaged", message="m"), id="failed"),
        pytest.param(JobState.REFUSED, JobFailure(code="policy.refused", message=""), id="refused"),
        pytest.param(JobState.CANCELED, None, id="canceled"),
    ],
)
def test_a_job_can_end_without_a_result(
    volume: Volume, state: JobState, failure: JobFailure | None
) -> None:
    submitted(volume)
    job = volume.store.stop(claimed(volume), state, failure)
    assert (job.state, job.failure, job.result) == (state, failure, None)


def test_a_final_state_never_changes(volume: Volume) -> None:
    submitted(volume)
    claim = claimed(volume)
    done = volume.store.finish(claim, result_of(claim.job))
    for attempt in (
        lambda: volume.store.finish(claim, result_of(claim.job)),
        lambda: volume.store.stop(claim, JobState.FAILED),
        lambda: volume.store.release(claim),
        lambda: volume.store.renew(claim),
    ):
        with pytest.raises(LeaseLostError):
            attempt()
    assert volume.store.cancel(claim.job.id) == done
    volume.time.seconds += 1e6
    assert volume.store.claim() is None
    assert volume.store.job(claim.job.id) == done


def test_a_silent_engine_loses_its_job_and_its_work_is_void(volume: Volume) -> None:
    submitted(volume)
    slow = claimed(volume)
    volume.time.seconds += volume.store.terms.lease_s - 1
    assert volume.store.claim() is None
    volume.time.seconds += 2
    quick = claimed(volume)
    assert (quick.job.id, quick.job.attempt) == (slow.job.id, 2)
    published: list[str] = []
    with pytest.raises(LeaseLostError):
        volume.store.finish(slow, result_of(slow.job), publish=lambda: published.append("slow"))
    volume.store.finish(quick, result_of(quick.job), publish=lambda: published.append("quick"))
    assert published == ["quick"]


def test_a_renewed_lease_lasts(volume: Volume) -> None:
    submitted(volume)
    claim = claimed(volume)
    for _ in range(5):
        volume.time.seconds += volume.store.terms.lease_s - 1
        volume.store.renew(claim)
        assert volume.store.claim() is None


def test_a_lease_of_before_the_machine_started_anew_has_ended(volume: Volume) -> None:
    submitted(volume)
    claimed(volume)
    rebooted = JobStore(volume.database, clock=LeaseClock(now=lambda: 3.0, boot="boot-2"))
    claim = rebooted.claim()
    assert claim is not None
    assert claim.job.attempt == 2
    assert rebooted.claim() is None


def test_a_job_that_kills_its_engine_three_times_fails(volume: Volume) -> None:
    job = submitted(volume)
    behind = submitted(volume)
    for attempt in (1, 2, 3):
        claim = claimed(volume)
        assert (claim.job.id, claim.job.attempt) == (job.id, attempt)
        volume.time.seconds += volume.store.terms.lease_s
    assert claimed(volume).job.id == behind.id
    failed = volume.store.job(job.id)
    assert failed.state is JobState.FAILED
    assert failed.failure is not None
    assert failed.failure.code == "job.worker_lost"


def test_a_released_job_starts_again_and_its_attempt_does_not_count(volume: Volume) -> None:
    submitted(volume)
    for _ in range(5):
        claim = claimed(volume)
        assert claim.job.attempt == 1
        volume.store.release(claim)


def test_a_waiting_job_is_canceled_at_once(volume: Volume) -> None:
    job = submitted(volume)
    assert volume.store.cancel(job.id).state is JobState.CANCELED
    assert volume.store.claim() is None


def test_a_running_job_is_told_of_the_cancel(volume: Volume) -> None:
    submitted(volume)
    claim = claimed(volume)
    assert not volume.store.is_cancel_requested(claim)
    job = volume.store.cancel(claim.job.id)
    assert (job.state, job.is_cancel_requested) == (JobState.RUNNING, True)
    assert volume.store.is_cancel_requested(claim)
    canceled = volume.store.stop(claim, JobState.CANCELED)
    assert (canceled.state, canceled.is_cancel_requested) == (JobState.CANCELED, False)


@pytest.mark.parametrize("how", ["engine dies", "engine stops"])
def test_a_canceled_job_is_not_run_again(volume: Volume, how: str) -> None:
    submitted(volume)
    claim = claimed(volume)
    volume.store.cancel(claim.job.id)
    if how == "engine stops":
        volume.store.release(claim)
    else:
        volume.time.seconds += volume.store.terms.lease_s
    assert volume.store.claim() is None
    assert volume.store.job(claim.job.id).state is JobState.CANCELED


def test_a_result_that_cannot_be_published_leaves_the_job_running(volume: Volume) -> None:
    def publish() -> None:
        raise OSError("no")

    submitted(volume)
    claim = claimed(volume)
    with pytest.raises(OSError, match="no"):
        volume.store.finish(claim, result_of(claim.job), publish=publish)
    assert volume.store.job(claim.job.id).state is JobState.RUNNING
    assert volume.store.finish(claim, result_of(claim.job)).state is JobState.DONE


def test_the_same_key_and_request_give_the_same_job(volume: Volume) -> None:
    media_id = volume.upload()
    first = volume.store.submit(tiny_job(volume.folders, media_id, "key"), max_queued=1)
    again = volume.store.submit(tiny_job(volume.folders, media_id, "key"), max_queued=1)
    assert again == first
    assert len(volume.store.jobs()) == 1


def test_a_key_is_not_taken_for_another_request(volume: Volume) -> None:
    submitted(volume, key="key")
    with pytest.raises(KeyReusedError):
        submitted(volume, key="key")


def test_jobs_without_a_key_are_all_different(volume: Volume) -> None:
    media_id = volume.upload()
    ids = {
        volume.store.submit(tiny_job(volume.folders, media_id), max_queued=9).id for _ in range(3)
    }
    assert len(ids) == 3


def test_only_so_many_jobs_may_wait(volume: Volume) -> None:
    media_id = volume.upload()
    for _ in range(2):
        volume.store.submit(tiny_job(volume.folders, media_id), max_queued=2)
    with pytest.raises(QueueFullError):
        volume.store.submit(tiny_job(volume.folders, media_id), max_queued=2)
    claimed(volume)
    volume.store.submit(tiny_job(volume.folders, media_id), max_queued=2)


def test_a_job_over_an_unknown_upload_is_not_accepted(volume: Volume) -> None:
    with pytest.raises(NotFoundError):
        volume.store.submit(tiny_job(volume.folders, MediaId("gone")), max_queued=1)
    assert volume.store.jobs() == ()


def test_only_a_finished_job_can_be_deleted(volume: Volume) -> None:
    job = submitted(volume)
    with pytest.raises(InUseError):
        volume.store.delete(job.id)
    claim = claimed(volume)
    with pytest.raises(InUseError):
        volume.store.delete(job.id)
    volume.store.stop(claim, JobState.CANCELED)
    volume.store.delete(job.id)
    with pytest.raises(JobNotFoundError):
        volume.store.job(job.id)
    with pytest.raises(JobNotFoundError):
        volume.store.delete(job.id)


def test_unfinished_jobs_are_those_that_wait_or_run(volume: Volume) -> None:
    running, waiting, over = (submitted(volume) for _ in range(3))
    volume.store.cancel(over.id)
    claimed(volume)
    assert volume.store.unfinished() == {running.id, waiting.id}


def test_unknown_jobs_are_not_found(volume: Volume) -> None:
    for ask in (volume.store.job, volume.store.cancel, volume.store.delete):
        with pytest.raises(JobNotFoundError):
            ask(JobId("nobody"))


def test_a_job_survives_a_restart(tmp_path: Path) -> None:
    with open_volume(tmp_path / "data") as before:
        job = submitted(before)
    with open_volume(tmp_path / "data") as after:
        assert after.store.job(job.id) == job


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    with Database(path) as database, database.write() as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(OutputError, match="newer"):
        Database(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(OutputError, match="database"):
        Database(path)


def test_many_threads_share_one_store(volume: Volume) -> None:
    media_id = volume.upload()
    got: list[str] = []

    def submit_some() -> None:
        for _ in range(5):
            volume.store.submit(tiny_job(volume.folders, media_id), max_queued=1000)

    def work() -> None:
        while len(got) < 20:
            claim = volume.store.claim()
            if claim is not None:
                volume.store.renew(claim, PROGRESS)
                volume.store.finish(claim, result_of(claim.job))
                got.append(claim.job.id)

    threads = [threading.Thread(target=run) for run in [submit_some] * 4 + [work] * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(got) == len(set(got)) == 20
    assert {job.state for job in volume.store.jobs()} == {JobState.DONE}

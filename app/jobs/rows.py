"""Between rows of the database and the types of `app.jobs.job`."""

import json
import sqlite3
from dataclasses import asdict
from pathlib import Path

from app.core.types import Notice
from app.jobs.job import Job, JobFailure, JobId, JobRequest, JobState
from app.pipeline.progress import PersonCount, Progress, RenderResult
from app.pipeline.spec import RenderSpec


def job_of(row: sqlite3.Row) -> Job:
    """A row of `jobs`, with `queue_position` beside its own columns."""
    spec = RenderSpec.model_validate_json(row["spec"])
    state = JobState(row["state"])
    return Job(
        id=JobId(row["id"]),
        request=JobRequest.model_validate_json(row["request"]),
        spec=spec,
        download_name=row["download_name"],
        state=state,
        attempt=row["attempt"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        queue_position=row["queue_position"] if state is JobState.QUEUED else None,
        is_cancel_requested=bool(row["cancel"]) and not state.is_final,
        progress=Progress(**json.loads(row["progress"])) if row["progress"] else None,
        result=result_of(row["result"], spec.output) if row["result"] else None,
        failure=JobFailure(**json.loads(row["failure"])) if row["failure"] else None,
        revision=row["revision"],
    )


def progress_json(progress: Progress) -> str:
    """What `job_of` reads back."""
    return json.dumps(asdict(progress))


def failure_json(failure: JobFailure) -> str:
    """What `job_of` reads back."""
    return json.dumps(asdict(failure))


def result_json(result: RenderResult) -> str:
    """What `job_of` reads back; the output's place is the spec's and not kept twice."""
    values = asdict(result)
    del values["output"]
    return json.dumps(values)


def result_of(text: str, output: Path) -> RenderResult:
    """Reads `result_json` of this release or an earlier one."""
    values = json.loads(text)
    notices = tuple(Notice(**notice) for notice in values.pop("notices"))
    people = tuple(PersonCount(**person) for person in values.pop("people", ()))
    return RenderResult(output=output, notices=notices, people=people, **values)

"""A job's progress as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from app.api.options import ApiOptions
from app.api.schemas import JobOut
from app.core.errors import JobNotFoundError
from app.jobs.job import Job, JobId
from app.service import Studio

# Proxies cut connections that stay silent; most wait for 30 seconds or more.
_KEEP_ALIVE_S = 15.0


async def job_events(studio: Studio, job: Job, options: ApiOptions) -> AsyncIterator[str]:
    """Events until the job is final, or the server stops.

    Every event holds the whole job, so a client that lost the connection just connects again: the first event
    says how things stand. `event: job` is a change, `event: end` the last one.

    Args:
        studio: Who knows.
        job: Where to start from.
        options: How often to look, and until when.
    """
    yield _event(job)
    spoke_at = time.monotonic()
    while not job.state.is_final and not options.is_stopping():
        await asyncio.sleep(options.poll_s)
        try:
            now = await run_in_threadpool(studio.job, JobId(job.id))
        except JobNotFoundError:
            return
        if now != job:
            yield _event(now)
            spoke_at = time.monotonic()
        elif time.monotonic() - spoke_at > _KEEP_ALIVE_S:
            yield ": still here\n\n"
            spoke_at = time.monotonic()
        job = now


def is_told_already(job: Job, last_event_id: str | None) -> bool:
    """Whether a client that connects again has seen the last event already."""
    return job.state.is_final and last_event_id == str(job.revision)


def _event(job: Job) -> str:
    kind = "end" if job.state.is_final else "job"
    return f"event: {kind}\nid: {job.revision}\ndata: {JobOut.of(job).model_dump_json()}\n\n"

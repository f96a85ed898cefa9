"""Bodies of the HTTP API: what is promised to clients, apart from what the program keeps inside."""

from datetime import UTC, datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from app.catalog import ModelInfo, ProcessorInfo, Readiness
from app.core.error_table import entry_of, without_paths
from app.jobs.job import EngineStatus, Job, JobRequest, JobState
from app.jobs.library import MediaItem
from app.pipeline.progress import Progress


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, protected_namespaces=())


class ErrorOut(_Body):
    """Why a request was refused, or a job has no result."""

    code: str = Field(description="stable; what programs look at")
    message: str = Field(description="what happened, in particular")
    hint: str = Field(description="what it means in general, and what to do")
    request_id: str | None = Field(default=None, description="find the request in the log by it")

    @classmethod
    def of(cls, code: str, message: str, request_id: str | None = None) -> Self:
        """Built from a code and the error's own message, which may be empty."""
        hint = entry_of(code).en
        return cls(
            code=code, message=without_paths(message) or hint, hint=hint, request_id=request_id
        )


class ErrorBody(_Body):
    """The body of every answer that is not a success."""

    error: ErrorOut


class MediaOut(_Body):
    """An upload."""

    id: str
    name: str
    kind: str = Field(description="still or video")
    container: str
    bytes: int
    sha256: str
    info: dict[str, Any] = Field(description="size, rate, frames, duration... as far as known")
    created_at: datetime
    content_url: str
    thumbnail_url: str

    @classmethod
    def of(cls, item: MediaItem) -> Self:
        """As clients see it."""
        return cls(
            id=item.id,
            name=item.name,
            kind=item.kind,
            container=item.container,
            bytes=item.bytes,
            sha256=item.sha256,
            info=dict(item.info),
            created_at=_time(item.created_at),
            content_url=f"/api/v1/media/{item.id}/content",
            thumbnail_url=f"/api/v1/media/{item.id}/thumbnail",
        )


class ProgressOut(_Body):
    """How far a running job is."""

    frames_done: int
    frames_total: int | None
    fps: float
    elapsed_s: float
    remaining_s: float | None
    busy: dict[str, float] = Field(
        description="share of the last seconds in which each part worked, 0 to 1; the busiest sets the pace"
    )

    @classmethod
    def of(cls, progress: Progress) -> Self:
        """As clients see it."""
        return cls(
            frames_done=progress.frames_done,
            frames_total=progress.frames_total,
            fps=progress.fps,
            elapsed_s=progress.elapsed_s,
            remaining_s=progress.remaining_s,
            busy=dict(progress.busy),
        )


class NoticeOut(_Body):
    """Something to know of a result that was made all the same."""

    code: str
    message: str


class ResultOut(_Body):
    """What a job has made."""

    name: str
    url: str
    frames: int
    frames_swapped: int
    faces_swapped: int
    notices: list[NoticeOut]
    busy: dict[str, float] = Field(
        description="share of the whole time in which each part worked, 0 to 1"
    )


class JobOut(_Body):
    """A job as it stands."""

    id: str
    state: JobState
    attempt: int
    queue_position: int | None = Field(description="jobs before it while it waits")
    is_cancel_requested: bool
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    request: JobRequest
    progress: ProgressOut | None
    result: ResultOut | None
    error: ErrorOut | None
    url: str
    events_url: str

    @classmethod
    def of(cls, job: Job) -> Self:
        """As clients see it."""
        return cls(
            id=job.id,
            state=job.state,
            attempt=job.attempt,
            queue_position=job.queue_position,
            is_cancel_requested=job.is_cancel_requested,
            created_at=_time(job.created_at),
            updated_at=_time(job.updated_at),
            started_at=None if job.started_at is None else _time(job.started_at),
            finished_at=None if job.finished_at is None else _time(job.finished_at),
            request=job.request,
            progress=None if job.progress is None else ProgressOut.of(job.progress),
            result=_result(job),
            error=(
                None if job.failure is None else ErrorOut.of(job.failure.code, job.failure.message)
            ),
            url=f"/api/v1/jobs/{job.id}",
            events_url=f"/api/v1/jobs/{job.id}/events",
        )


class JobList(_Body):
    """Jobs, newest first."""

    jobs: list[JobOut]


class ProcessorOut(_Body):
    """A processing step that can be asked for."""

    id: str
    title: str
    order: int
    options_schema: dict[str, Any]

    @classmethod
    def of(cls, info: ProcessorInfo) -> Self:
        """As clients see it."""
        return cls(
            id=info.id,
            title=info.title,
            order=info.order,
            options_schema=dict(info.options_schema),
        )


class ProcessorList(_Body):
    """Processing steps in the order in which they run."""

    processors: list[ProcessorOut]


class LicenseOut(_Body):
    """The terms of a model."""

    spdx: str
    commercial: str
    origin: str
    note: str


class ModelOut(_Body):
    """A known model."""

    id: str
    title: str
    task: str
    bundle: str
    bytes: int
    license: LicenseOut
    is_installed: bool

    @classmethod
    def of(cls, info: ModelInfo) -> Self:
        """As clients see it."""
        return cls(
            id=info.id,
            title=info.title,
            task=info.task,
            bundle=info.bundle,
            bytes=info.bytes,
            license=LicenseOut(**info.license.model_dump()),
            is_installed=info.is_installed,
        )


class ModelList(_Body):
    """Known models, in the manifest's order."""

    models: list[ModelOut]


class HealthOut(_Body):
    """The process answers."""

    status: str = "ok"


class EngineOut(_Body):
    """An engine process."""

    name: str
    state: str
    is_alive: bool
    restarts: int
    last_exit: int | None
    device: str | None

    @classmethod
    def of(cls, status: EngineStatus) -> Self:
        """As clients see it."""
        return cls(
            name=status.name,
            state=status.state,
            is_alive=status.is_alive,
            restarts=status.restarts,
            last_exit=status.last_exit,
            device=status.device,
        )


class ReadyOut(_Body):
    """Whether a job handed in now would run."""

    ready: bool
    problems: list[ErrorOut]
    engines: list[EngineOut]

    @classmethod
    def of(cls, readiness: Readiness) -> Self:
        """As clients see it."""
        return cls(
            ready=readiness.is_ready,
            problems=[ErrorOut.of(code, "") for code in readiness.problems],
            engines=[EngineOut.of(engine) for engine in readiness.engines],
        )


def _result(job: Job) -> ResultOut | None:
    if job.result is None:
        return None
    return ResultOut(
        name=job.download_name,
        url=f"/api/v1/jobs/{job.id}/result",
        frames=job.result.frames,
        frames_swapped=job.result.frames_swapped,
        faces_swapped=job.result.faces_swapped,
        notices=[
            NoticeOut(code=n.code, message=without_paths(n.message)) for n in job.result.notices
        ],
        busy=dict(job.result.busy),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

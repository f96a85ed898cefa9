"""What a job is: what was asked for, how far it is, how it ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.pipeline.progress import Progress, RenderResult
from app.pipeline.spec import (
    ConsentBasis,
    FaceMap,
    OutputChoices,
    RenderSpec,
    Step,
    Timing,
    demand_sources,
)

JobId = NewType("JobId", str)
MediaId = NewType("MediaId", str)


class JobState(StrEnum):
    """Where a job stands; the last four are final and never change again.

    There is no state between running and done: the result's rename and the change to done are one transaction.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELED = "canceled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class JobRequest(BaseModel):
    """What a person asks for, in terms of uploaded media; the same at every door.

    Attributes:
        sources: Pictures of the face that everybody gets of whom `face_map` says nothing else.
        target: The picture or video to change.
        consent: On what ground the faces may be used; a job without it is refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[MediaId, ...] = Field(default=(), max_length=64)
    target: MediaId
    consent: ConsentBasis | None = None
    steps: tuple[Step, ...] = Field(
        default=(Step(processor="face_swapper"),), min_length=1, max_length=32
    )
    face_map: FaceMap[MediaId] = Field(default_factory=FaceMap[MediaId])
    encoding: OutputChoices = Field(default_factory=OutputChoices)
    timing: Timing = Field(default_factory=Timing)

    @model_validator(mode="after")
    def _has_its_sources(self) -> Self:
        demand_sources(self.sources, self.face_map)
        return self

    @property
    def inputs(self) -> tuple[MediaId, ...]:
        """Every upload that the job needs, each once."""
        return tuple(dict.fromkeys((*self.sources, *self.face_map.photos, self.target)))


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFailure:
    """Why a job has no result.

    Attributes:
        code: As in `app.core.error_table`.
        message: For people; without paths of this machine.
    """

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job about to be accepted.

    Attributes:
        download_name: What the result is called when somebody saves it.
        idempotency_key: Sent again after a lost answer, the same key gives the same job.
    """

    id: JobId
    request: JobRequest
    spec: RenderSpec
    download_name: str
    idempotency_key: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A snapshot of one job.

    Attributes:
        attempt: How often an engine has started it.
        queue_position: How many jobs run before it, while it waits; `None` otherwise.
        is_cancel_requested: Somebody asked to stop; the engine has yet to notice.
        result: Only of a job that is done.
        failure: Only of a job that failed, was refused or lost its engine too often.
        created_at: Seconds since 1970, as are the other times.
        revision: Grows with every change.
    """

    id: JobId
    request: JobRequest
    spec: RenderSpec
    download_name: str
    state: JobState
    attempt: int
    created_at: float
    updated_at: float
    started_at: float | None = None
    finished_at: float | None = None
    queue_position: int | None = None
    is_cancel_requested: bool = False
    progress: Progress | None = None
    result: RenderResult | None = None
    failure: JobFailure | None = None
    revision: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The right of one engine to run one job, for as long as it keeps renewing it.

    Attributes:
        token: Fences off whoever held the job before.
    """

    job: Job
    token: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineStatus:
    """What is known of one engine process.

    Attributes:
        state: `starting` and `stopped` are the supervisor's word, `idle` and `busy` the engine's own.
        is_alive: The engine itself was heard of a moment ago.
        last_exit: Exit code of the process that ran before, negative for a signal; `None` if none has ended.
        restarts: How often it had to be started again.
        problem: Code of the error that keeps it from working, if it named one.
        device: Kind of device on which its networks run, such as `cuda` or `cpu`; `None` before it was heard of.
    """

    name: str
    state: str
    is_alive: bool
    pid: int | None = None
    last_exit: int | None = None
    restarts: int = 0
    problem: str | None = None
    device: str | None = None

    @property
    def trouble(self) -> str | None:
        """What a living engine says of itself, or its supervisor of one that has ended."""
        is_told_now = self.is_alive or self.state in ("starting", "stopped")
        return self.problem if is_told_now else None

"""A Studio that only remembers, for the page without a browser."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from app.catalog import ProcessorInfo
from app.core.errors import AppError
from app.jobs.job import Job, JobId, JobRequest, JobState
from app.pipeline.spec import RenderSpec
from app.processors.base import model_field


class Mood(StrEnum):
    CALM = "calm"
    WILD = "wild"


class MadeUpOptions(BaseModel):
    """Every kind of field that an options class may have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    is_on: bool = Field(default=True, title="On", description="Whether it is on")
    strength: float = Field(default=0.6, ge=0, le=1, title="Strength")
    model: Literal["mesh", "other"] = Field(default="mesh", title="Model")
    passes: int = Field(default=2, ge=1, le=8, title="Passes")
    seed: int = Field(default=7, ge=0, title="Seed")
    gain: float = Field(default=1, gt=0, lt=2, multiple_of=0.25, title="Gain")
    mood: Mood = Field(default=Mood.CALM, title="Mood")
    only: Literal["one"] = Field(default="one", title="Only")
    limit: int | None = Field(default=None, ge=1, le=9, title="Limit")
    note: str = Field(default="", title="Note")
    network: str = model_field(
        "face_swap", built_in="none", title="Network", description="One that is installed"
    )


def processor(
    id: str, title: str, order: int = 10, *, networks: Sequence[str] = ()
) -> ProcessorInfo:
    """With a processor's options; `networks` are the models that are installed for it."""
    schema = MadeUpOptions.model_json_schema()
    schema["properties"]["network"]["enum"] += networks
    return ProcessorInfo(id=id, title=title, order=order, options_schema=schema)


@dataclass
class FakeStudio:
    """Takes every job, or refuses it with `error`."""

    infos: Sequence[ProcessorInfo] = (
        processor("face_swapper", "Swap faces"),
        processor("made_up", "Make up", 20),
    )
    error: Exception | None = None
    submitted: list[JobRequest] = field(default_factory=list)

    def processors(self) -> Sequence[ProcessorInfo]:
        return self.infos

    def submit(self, request: JobRequest) -> Job:
        if self.error is not None:
            raise self.error
        if request.consent is None:
            raise AppError("no consent")
        self.submitted.append(request)
        file = Path("x.png")
        spec = RenderSpec(sources=(file,), target=file, output=file, consent=request.consent)
        return Job(
            id=JobId("j1"),
            request=request,
            spec=spec,
            download_name="x.png",
            state=JobState.QUEUED,
            attempt=0,
            created_at=0,
            updated_at=0,
        )


@pytest.fixture
def studio() -> FakeStudio:
    return FakeStudio()

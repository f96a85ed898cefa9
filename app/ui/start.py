"""The Start button: the page's controls become one job request."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gradio.components import Component
from pydantic import BaseModel, ConfigDict, ValidationError

from app.catalog import ProcessorInfo
from app.core.errors import AppError, UsageError
from app.jobs.job import Job, JobRequest, MediaId
from app.pipeline.spec import FaceMap, OutputChoices, Step, Timing
from app.processors.base import told
from app.ui.controls import OptionControls

logger = logging.getLogger(__name__)


class OwnChoices(BaseModel):
    """What the page's own elements hold, as they write it into the one hidden field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: MediaId
    sources: tuple[MediaId, ...]
    face_map: FaceMap[MediaId]
    timing: Timing


class PageStudio(Protocol):
    """What the page needs of the Studio."""

    def processors(self) -> Sequence[ProcessorInfo]:
        """All processors, in the order in which they run."""
        ...

    def submit(self, request: JobRequest) -> Job:
        """Accept a job, or raise an `AppError`."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StepControls:
    """One processor on the page: a tick and its options."""

    processor: str
    enabled: Component
    options: OptionControls

    @property
    def components(self) -> tuple[Component, ...]:
        """The tick, then the options."""
        return (self.enabled, *self.options.components)


@dataclass(frozen=True, kw_only=True, slots=True)
class StartForm:
    """The page's controls, as far as they say what a job is.

    Attributes:
        own: Holds `OwnChoices` as JSON.
    """

    own: Component
    consent: Component
    encoding: OptionControls
    steps: tuple[StepControls, ...]

    @property
    def components(self) -> tuple[Component, ...]:
        """Every control, in the order in which `request` wants the values."""
        steps = [component for step in self.steps for component in step.components]
        return (self.own, self.consent, *self.encoding.components, *steps)

    def request(self, values: Sequence[Any]) -> JobRequest:
        """Read the controls' values.

        Args:
            values: One a control, in the order of `components`.

        Raises:
            UsageError: Something is missing or out of its range.
        """
        own, consent, *rest = values
        encoding, rest = rest[: len(self.encoding.names)], rest[len(self.encoding.names) :]
        try:
            chosen = OwnChoices.model_validate_json(own or "{}")
            return JobRequest(
                sources=chosen.sources,
                target=chosen.target,
                consent=consent or None,
                steps=self._steps(rest),
                face_map=chosen.face_map,
                encoding=OutputChoices(**self.encoding.read(encoding)),
                timing=chosen.timing,
            )
        except ValidationError as error:
            raise UsageError(told(error.errors())) from error

    def _steps(self, values: Sequence[Any]) -> tuple[Step, ...]:
        steps, position = [], 0
        for step in self.steps:
            is_enabled, *options = values[position : position + len(step.components)]
            position += len(step.components)
            if is_enabled:
                steps.append(Step(processor=step.processor, options=step.options.read(options)))
        return tuple(steps)


def submit(studio: PageStudio, form: StartForm, values: Sequence[Any]) -> dict[str, Any]:
    """Start a job and say what became of it.

    Returns:
        `{"job": id}`, or `{"error": {"code", "message"}}` in the words of the HTTP API.
    """
    return _answered(lambda: {"job": studio.submit(form.request(values)).id})


def describe(form: StartForm, values: Sequence[Any]) -> dict[str, Any]:
    """Say what a job of these values would be, so that the page can ask the HTTP API for a preview of it.

    Returns:
        `{"request": {...}}`, or as `submit`.
    """
    return _answered(lambda: {"request": form.request(values).model_dump(mode="json")})


def _answered(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return work()
    except AppError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except Exception as error:
        # A door: whatever it is, people get a sentence, and no path or stack leaves the server.
        logger.error("the page's choices made no job: %s", type(error).__name__)
        logger.debug("the reason", exc_info=error)
        return {"error": {"code": AppError.code, "message": ""}}

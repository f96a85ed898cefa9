"""The Start button: the page's controls become one job request."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gradio.components import Component
from pydantic import ValidationError

from app.catalog import ProcessorInfo
from app.core.errors import AppError, UsageError
from app.jobs.job import Job, JobRequest, MediaId
from app.pipeline.spec import FaceMap, OutputChoices, Step
from app.processors.base import told
from app.ui.controls import OptionControls

logger = logging.getLogger(__name__)

EVERYONE = "everyone"
ONE_PERSON = "one"


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
        sources: Holds ids of uploaded photos, with spaces between.
        target: Holds the id of the upload to change.
        whom: `everyone` or `one`.
        number: Number of the one person, from 1.
    """

    sources: Component
    target: Component
    consent: Component
    whom: Component
    number: Component
    encoding: OptionControls
    steps: tuple[StepControls, ...]

    @property
    def components(self) -> tuple[Component, ...]:
        """Every control, in the order in which `request` wants the values."""
        first = (self.sources, self.target, self.consent, self.whom, self.number)
        steps = [component for step in self.steps for component in step.components]
        return (*first, *self.encoding.components, *steps)

    def request(self, values: Sequence[Any]) -> JobRequest:
        """Read the controls' values.

        Args:
            values: One a control, in the order of `components`.

        Raises:
            UsageError: Something is missing or out of its range.
        """
        sources, target, consent, whom, number, *rest = values
        encoding, rest = rest[: len(self.encoding.names)], rest[len(self.encoding.names) :]
        try:
            return JobRequest(
                sources=tuple(MediaId(id) for id in (sources or "").split()),
                target=MediaId(target or ""),
                consent=consent or None,
                steps=self._steps(rest),
                face_map=_face_map(whom, number),
                encoding=OutputChoices(**self.encoding.read(encoding)),
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
    try:
        return {"job": studio.submit(form.request(values)).id}
    except AppError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except Exception as error:
        # A door: whatever it is, people get a sentence, and no path or stack leaves the server.
        logger.error("a job could not be submitted: %s", type(error).__name__)
        logger.debug("the reason", exc_info=error)
        return {"error": {"code": AppError.code, "message": ""}}


def _face_map(whom: str | None, number: float | None) -> FaceMap[MediaId]:
    """Everybody, or the one person of this number."""
    if whom != ONE_PERSON:
        return FaceMap()
    if number is None or number < 1 or number != int(number):
        raise UsageError("say which person: a whole number, counted from 1 at the left")
    return FaceMap.only(int(number))

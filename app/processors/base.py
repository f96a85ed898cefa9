"""What a processor is: one file with an options class, a class that works, and a `PROCESSOR`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.errors import UnknownProcessorError, UsageError
from app.core.types import CropSpec, FaceBatch
from app.inference.spec import ModelId, ModelZoo, Task

MODELS_OF = "models_of"
"""In the schema of an option that names a model: the task whose installed models are choices too."""


class ProcessorOptions(BaseModel):
    """Base of every processor's options: frozen, and unknown keys are refused.

    Fields carry `title`, `description` and bounds; page controls, command-line values, the API's schema
    and validation are all made from them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


def model_field(task: Task, *, built_in: str, title: str, description: str) -> Any:
    """A field that names what does the work: `built_in`, which needs no model, or the id of an installed model.

    Which models are installed is known only where somebody chooses; see `app.catalog`.
    """
    return Field(
        default=built_in,
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        title=title,
        description=description,
        json_schema_extra={"enum": [built_in], MODELS_OF: task},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a processor needs of others, with certain options.

    Attributes:
        crop: The crop it wants; `None` is the one of its `ProcessorSpec`.
        recognizer: The recognizer that has to describe the faces to put on.
    """

    crop: CropSpec | None = None
    recognizer: ModelId | None = None


class FaceProcessor(Protocol):
    """Works on aligned faces; never sees a video, a path, a job or a widget."""

    def process(self, batch: FaceBatch) -> FaceBatch:
        """Change the crops of a batch.

        Args:
            batch: Any number of rows, none included; never written to.

        Returns:
            As many rows in the same order; `masks` say how much of each crop is to be put back.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorSpec:
    """A processor as the rest of the program knows it.

    Attributes:
        order: Steps run from low to high, whatever order somebody ticked them in.
        crop: The crop it wants.
        options: Its options class.
        build: Makes it from validated options and the models.
        keeps_occluders: Whether, with these options, what lies in front of a face is to stay.
        needs: What it needs of others, with these options; raises `UnknownModelError` where they name no model.
    """

    id: str
    title: str
    order: int
    crop: CropSpec
    options: type[ProcessorOptions]
    build: Callable[[Any, ModelZoo], FaceProcessor]
    keeps_occluders: Callable[[Any], bool] = lambda _: False
    needs: Callable[[Any, ModelZoo], Needs] = lambda *_: Needs()


def checked_options(
    processors: Mapping[str, ProcessorSpec], name: str, raw: Mapping[str, Any]
) -> ProcessorOptions:
    """Validate what somebody chose for a processor, by the processor's own class.

    Args:
        processors: By id.
        name: The wanted one.
        raw: Option names and values; numbers and truths may come as text.

    Raises:
        UnknownProcessorError: No processor has this id.
        UsageError: An option is unknown or out of range.
    """
    spec = processors.get(name)
    if spec is None:
        known = ", ".join(sorted(processors))
        raise UnknownProcessorError(f"no processor is called {name!r}; there are: {known}")
    try:
        return spec.options.model_validate(raw)
    except ValidationError as error:
        raise UsageError(told(error.errors(), before=(name,))) from error


def told(found: Sequence[Mapping[str, Any]], *, before: Sequence[str] = ()) -> str:
    """What pydantic found wrong, in one line; values are not repeated, they may be private.

    Args:
        found: The `errors()` of a validation error.
        before: What the names belong to.
    """
    return "; ".join(
        f"{'.'.join([*before, *map(str, one['loc'])]) or 'value'}: {one['msg']}" for one in found
    )

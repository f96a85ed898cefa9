"""What a processor is: one file with an options class, a class that works, and a `PROCESSOR`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from app.core.types import CropSpec, FaceBatch
from app.inference.spec import ModelZoo


class ProcessorOptions(BaseModel):
    """Base of every processor's options: frozen, and unknown keys are refused.

    Fields carry `title`, `description` and bounds; page controls, command-line values, the API's schema
    and validation are all made from them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


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
        crop: The crop it wants, or `None` for one that works on whole pictures.
        options: Its options class.
        build: Makes it from validated options and the models.
    """

    id: str
    title: str
    order: int
    crop: CropSpec
    options: type[ProcessorOptions]
    build: Callable[[Any, ModelZoo], FaceProcessor]

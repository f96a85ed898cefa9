"""What there is, as a door shows it: processors, models, and whether work would be done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.inference.spec import License, ModelId
from app.jobs.job import EngineStatus


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorInfo:
    """A processor as a door shows it.

    Attributes:
        options_schema: JSON schema of its options, from which controls and help are made.
    """

    id: str
    title: str
    order: int
    options_schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInfo:
    """A model as a door shows it."""

    id: ModelId
    title: str
    task: str
    bundle: str
    bytes: int
    license: License
    is_installed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether a job handed in now would run.

    Attributes:
        problems: Error codes; empty when all is well.
    """

    is_ready: bool
    engines: tuple[EngineStatus, ...]
    problems: tuple[str, ...]

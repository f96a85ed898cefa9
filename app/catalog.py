"""What there is, as a door shows it: processors, models, and whether work would be done."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.errors import MissingModelError, UnknownModelError
from app.inference.inventory import how_to_get
from app.inference.spec import License, ModelId, ModelSpec
from app.jobs.job import EngineStatus
from app.processors.base import MODELS_OF, ProcessorOptions, ProcessorSpec


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


class ModelShelf:
    """The known models, and which of them lie in the models folder now: it is looked at anew each time.

    Args:
        known: In the manifest's order.
        folder: Where installed models lie.
    """

    def __init__(self, known: Iterable[ModelSpec], folder: Path) -> None:
        self.known = tuple(known)
        self._folder = folder

    def is_installed(self, spec: ModelSpec) -> bool:
        """Whether the file is there in its full length; its hash is checked by whoever loads it."""
        file = self._folder / spec.file
        if not file.is_file():
            return False
        return spec.bytes == 0 or file.stat().st_size == spec.bytes

    @property
    def installed(self) -> tuple[ModelSpec, ...]:
        """Those that are there."""
        return tuple(filter(self.is_installed, self.known))

    @property
    def is_set_up(self) -> bool:
        """Whether all are there that the set-up step installs."""
        return all(self.is_installed(spec) for spec in self.known if spec.bundle == "embedded")

    def infos(self) -> tuple[ModelInfo, ...]:
        """All as a door shows them."""
        return tuple(
            ModelInfo(
                id=spec.id,
                title=spec.title,
                task=spec.task,
                bundle=spec.bundle,
                bytes=spec.bytes,
                license=spec.license,
                is_installed=self.is_installed(spec),
            )
            for spec in self.known
        )


def processor_infos(
    processors: Iterable[ProcessorSpec], installed: Sequence[ModelSpec]
) -> tuple[ProcessorInfo, ...]:
    """Processors as a door shows them, in the order in which they run; `installed` are the models that are there."""
    return tuple(
        ProcessorInfo(
            id=spec.id,
            title=spec.title,
            order=spec.order,
            options_schema=options_schema(spec.options, installed),
        )
        for spec in sorted(processors, key=lambda spec: (spec.order, spec.id))
    )


def options_schema(
    options: type[ProcessorOptions], installed: Iterable[ModelSpec]
) -> Mapping[str, Any]:
    """The JSON schema of a processor's options, with the models that are installed among the choices.

    Args:
        options: The processor's options class.
        installed: The models that are there.
    """
    schema = options.model_json_schema()
    models = tuple(installed)
    for field in schema.get("properties", {}).values():
        if MODELS_OF in field:
            ids = [model.id for model in models if model.task == field[MODELS_OF]]
            field["enum"] = [*field["enum"], *ids]
    return schema


def require_models(
    options: ProcessorOptions,
    models: Iterable[ModelSpec],
    *,
    is_installed: Callable[[ModelSpec], bool],
) -> None:
    """Refuse options that name a model which is not there.

    Args:
        options: What somebody chose.
        models: All that are known.
        is_installed: Whether one is there.

    Raises:
        UnknownModelError: No model of the option's task has this id.
        MissingModelError: It is known, and not installed.
    """
    known = tuple(models)
    for name, field in type(options).model_json_schema().get("properties", {}).items():
        chosen = getattr(options, name)
        if MODELS_OF not in field or chosen in field["enum"]:
            continue
        usable = {model.id: model for model in known if model.task == field[MODELS_OF]}
        if chosen not in usable:
            choices = ", ".join([*field["enum"], *usable])
            raise UnknownModelError(f"{name}: there is no model of this name; there are: {choices}")
        if not is_installed(usable[chosen]):
            raise MissingModelError(
                f"{name}: {chosen} is not installed; run `{how_to_get(usable[chosen])}`"
            )
        _require_recognizer(usable[chosen], known, is_installed)


def _require_recognizer(
    model: ModelSpec, known: Iterable[ModelSpec], is_installed: Callable[[ModelSpec], bool]
) -> None:
    for each in known:
        if each.id == model.recognizer and not is_installed(each):
            raise MissingModelError(
                f"{model.id} needs {each.id}, which is not installed; run `{how_to_get(each)}`"
            )

"""Reads `models/manifest.toml`, the list of every network that FaceDock knows."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.core.errors import ModelError, UnknownModelError
from app.inference.spec import ModelId, ModelSpec


class Manifest(BaseModel):
    """The known models, in the order of the file; ids and file names are unique."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    models: tuple[ModelSpec, ...] = Field(default=(), alias="model")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and check a manifest file.

        Raises:
            ModelError: The file is missing, is not TOML, or an entry is wrong.
        """
        try:
            return cls.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise ModelError(
                f"{path.name}: the list of models is missing; set FACEDOCK_MANIFEST to where it is"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
            raise ModelError(f"{path.name}: not a valid list of models: {error}") from error

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for what in ("id", "file"):
            values = [getattr(spec, what) for spec in self.models]
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise ValueError(f"{what} used twice: {', '.join(twice)}")
        for spec in self.models:
            if Path(spec.file).name != spec.file or spec.file.startswith("."):
                raise ValueError(f"{spec.id}: file must be a plain name, got {spec.file!r}")
            if not spec.sha256 and spec.batch != "rewrite":
                raise ValueError(f"{spec.id}: only a file that is rewritten may lack its sha256")
            if spec.convert == "none" and len(spec.sources) != 1:
                raise ValueError(f"{spec.id}: without a converter there must be one source")
        return self

    def get(self, model_id: ModelId) -> ModelSpec:
        """The entry with this id.

        Raises:
            UnknownModelError: There is none.
        """
        for spec in self.models:
            if spec.id == model_id:
                return spec
        known = ", ".join(spec.id for spec in self.models)
        raise UnknownModelError(f"no model is called {model_id!r}; known are: {known}")

    def bundle(self, name: Literal["embedded", "optional"]) -> tuple[ModelSpec, ...]:
        """All models of a bundle."""
        return tuple(spec for spec in self.models if spec.bundle == name)

    def resolve(self, names: Iterable[str]) -> tuple[ModelId, ...]:
        """Turn ids and names of bundles into ids, each once, in the order given.

        Args:
            names: Ids, `embedded` or `optional`.

        Raises:
            UnknownModelError: A name is neither.
        """
        ids: list[ModelId] = []
        for name in names:
            if name in ("embedded", "optional"):
                ids += [spec.id for spec in self.models if spec.bundle == name]
            else:
                ids.append(self.get(ModelId(name)).id)
        return tuple(dict.fromkeys(ids))

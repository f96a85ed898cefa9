"""What is installed, by the manifest and the models folder; needs neither network nor runtime."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.inference.fetch.store import write_atomically
from app.inference.integrity import sha256_of
from app.inference.manifest import Manifest
from app.inference.spec import ModelId, ModelSpec

ModelState = Literal["installed", "missing", "damaged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelStatus:
    """How one model stands.

    Attributes:
        spec: The manifest's entry.
        state: `damaged` is a file that is not the pinned one, be it broken or of another release.
        bytes: On disk; 0 when missing.
        detail: What is wrong and what to do; empty when installed.
    """

    spec: ModelSpec
    state: ModelState
    bytes: int
    detail: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether the model can be opened."""
        return self.state == "installed"

    def to_json(self) -> dict[str, str | int]:
        """Plain JSON values, with what a person must know of the license."""
        return {
            "id": self.spec.id,
            "title": self.spec.title,
            "task": self.spec.task,
            "bundle": self.spec.bundle,
            "file": self.spec.file,
            "bytes": self.spec.bytes,
            "license": self.spec.license.spdx,
            "commercial_use": self.spec.license.commercial,
            "origin": self.spec.license.origin,
            "state": self.state,
            "detail": self.detail,
        }


class Inventory:
    """Looks at the models folder.

    Hashing every file at every start would cost a second. After a full look a receipt keeps the file's size and
    time of change, and as long as both are the same, the receipt is believed. `examine` believes nothing, and
    neither do sessions: they compare the bytes that they load.
    """

    def __init__(self, manifest: Manifest, models_dir: Path) -> None:
        self._manifest = manifest
        self._models_dir = models_dir

    def status(self, model_id: ModelId) -> ModelStatus:
        """How a model stands, by its receipt where there is a good one.

        Raises:
            UnknownModelError: No entry has this id.
        """
        spec = self._manifest.get(model_id)
        return self._look(spec, trusts_receipt=True)

    def statuses(self) -> tuple[ModelStatus, ...]:
        """All models of the manifest, in its order."""
        return tuple(self.status(spec.id) for spec in self._manifest.models)

    def examine(self, model_id: ModelId) -> ModelStatus:
        """How a model stands, by a hash of its whole file, about 1 GB a second.

        Raises:
            UnknownModelError: No entry has this id.
        """
        return self._look(self._manifest.get(model_id), trusts_receipt=False)

    def keep_receipt(self, spec: ModelSpec) -> None:
        """Note that the installed file was compared with the manifest; harmless where nothing can be written."""
        path = self._receipt_path(spec)
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, json.dumps(self._expected_receipt(spec)).encode())

    def _look(self, spec: ModelSpec, *, trusts_receipt: bool) -> ModelStatus:
        path = self._models_dir / spec.file
        if not path.is_file():
            return _status(spec, "missing", 0, "not installed")
        size = path.stat().st_size
        if size != spec.bytes:
            return _status(spec, "damaged", size, f"has {size} bytes, wanted {spec.bytes}")
        if trusts_receipt and self._has_receipt(spec):
            return _status(spec, "installed", size)
        got = sha256_of(path)
        if got != spec.sha256:
            return _status(
                spec, "damaged", size, f"sha256 is {got[:12]}, the manifest says {spec.sha256[:12]}"
            )
        self.keep_receipt(spec)
        return _status(spec, "installed", size)

    def _has_receipt(self, spec: ModelSpec) -> bool:
        try:
            receipt = json.loads(self._receipt_path(spec).read_bytes())
        except (OSError, ValueError):
            return False
        return bool(receipt == self._expected_receipt(spec))

    def _expected_receipt(self, spec: ModelSpec) -> dict[str, str | int]:
        facts = (self._models_dir / spec.file).stat()
        return {"sha256": spec.sha256, "bytes": facts.st_size, "mtime_ns": facts.st_mtime_ns}

    def _receipt_path(self, spec: ModelSpec) -> Path:
        return self._models_dir / ".receipts" / f"{spec.file}.json"


def _status(spec: ModelSpec, state: ModelState, size: int, why: str = "") -> ModelStatus:
    detail = f"{why}; run `python -m app models pull {spec.id}`" if why else ""
    return ModelStatus(spec=spec, state=state, bytes=size, detail=detail)

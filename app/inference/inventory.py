"""What is installed, by the manifest and the models folder; needs neither network nor runtime."""

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.inference.integrity import sha256_of
from app.inference.manifest import Manifest
from app.inference.receipts import Receipt, Receipts
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
        why_single: Why its pictures run one by one; empty for a network that takes any batch.
    """

    spec: ModelSpec
    state: ModelState
    bytes: int
    detail: str = ""
    why_single: str = ""

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
        self._receipts = Receipts(models_dir)

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

    def keep_receipt(
        self, spec: ModelSpec, sha256: str, *, why_single: str = "", unpinned: bool = False
    ) -> None:
        """Remember that the file as it is now has this hash.

        Args:
            spec: The manifest's entry.
            sha256: Of the file.
            why_single: Why its pictures run one by one.
            unpinned: The operator vouched for it.
        """
        # Without it the next start hashes again; but where the manifest has no hash, only the receipt has.
        with suppress(OSError) if spec.sha256 else nullcontext():
            path = self._models_dir / spec.file
            receipt = Receipt.of(path, sha256, why_single=why_single, unpinned=unpinned)
            self._receipts.write(spec, receipt)

    def _look(self, spec: ModelSpec, *, trusts_receipt: bool) -> ModelStatus:
        path = self._models_dir / spec.file
        if not path.is_file():
            return _status(spec, "missing", 0, "not installed")
        size = path.stat().st_size
        pin = self._receipts.pin(spec)
        if pin is None:
            return _status(spec, "damaged", size, "was not installed by FaceDock")
        if size != pin[1]:
            return _status(spec, "damaged", size, f"has {size} bytes, wanted {pin[1]}")
        receipt = self._receipts.read(spec)
        why_single = "" if receipt is None else receipt.why_single
        is_known = receipt is not None and receipt.sha256 == pin[0] and receipt.fits(path)
        if not (trusts_receipt and is_known):
            got = sha256_of(path)
            if got != pin[0]:
                told = f"sha256 is {got[:12]}, wanted {pin[0][:12]}"
                return _status(spec, "damaged", size, told)
            unpinned = receipt is not None and receipt.is_unpinned
            self.keep_receipt(spec, got, why_single=why_single, unpinned=unpinned)
        return ModelStatus(spec=spec, state="installed", bytes=size, why_single=why_single)


def _status(spec: ModelSpec, state: ModelState, size: int, why: str = "") -> ModelStatus:
    detail = f"{why}; run `{how_to_get(spec)}`" if why else ""
    return ModelStatus(spec=spec, state=state, bytes=size, detail=detail)


def how_to_get(spec: ModelSpec) -> str:
    """The command that installs a model."""
    if any(source.kind == "brought" for source in spec.sources):
        return f"python -m app models adopt FOLDER {spec.id}"
    return f"python -m app models pull {spec.id}"

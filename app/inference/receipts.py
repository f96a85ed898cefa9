"""What an installation left word of: the hash of each installed file, and what became of its batch."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from app.inference.fetch.store import write_atomically
from app.inference.spec import ModelSpec


class Receipt(BaseModel):
    """One installed file.

    Attributes:
        mtime_ns: When the file was changed last; as long as this and the length are the same, the hash is believed.
        why_single: Why its pictures run one by one; empty for a network that takes any batch.
        is_unpinned: The operator has vouched for the file, no hash in the manifest did.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sha256: str
    bytes: int
    mtime_ns: int
    why_single: str = ""
    is_unpinned: bool = False

    @classmethod
    def of(cls, path: Path, sha256: str, *, why_single: str = "", unpinned: bool = False) -> Self:
        """Of a file whose hash is known."""
        facts = path.stat()
        return cls(
            sha256=sha256,
            bytes=facts.st_size,
            mtime_ns=facts.st_mtime_ns,
            why_single=why_single,
            is_unpinned=unpinned,
        )

    def fits(self, path: Path) -> bool:
        """Whether the file is as long and as old as it was."""
        facts = path.stat()
        return (facts.st_size, facts.st_mtime_ns) == (self.bytes, self.mtime_ns)


class Receipts:
    """The receipts of a models folder.

    Args:
        models_dir: Where the installed files are.
    """

    def __init__(self, models_dir: Path) -> None:
        self._folder = models_dir / ".receipts"

    def read(self, spec: ModelSpec) -> Receipt | None:
        """The model's receipt, if there is a readable one."""
        try:
            return Receipt.model_validate_json(self._path(spec).read_bytes())
        except (OSError, ValidationError):
            return None

    def write(self, spec: ModelSpec, receipt: Receipt) -> None:
        """Keep a receipt; raises `OSError` where the folder is closed to us."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(spec), receipt.model_dump_json().encode())

    def pin(self, spec: ModelSpec) -> tuple[str, int] | None:
        """Hash and length that the installed file must have: the manifest's, or else those it was installed with."""
        if spec.sha256:
            return spec.sha256, spec.bytes
        receipt = self.read(spec)
        return None if receipt is None else (receipt.sha256, receipt.bytes)

    def _path(self, spec: ModelSpec) -> Path:
        return self._folder / f"{spec.file}.json"

"""Finds the sources of a model among files that an operator has."""

import hashlib
from pathlib import Path

from app.core.errors import ModelIntegrityError
from app.inference.fetch.store import source_name
from app.inference.spec import ModelSpec, Source


def has_sources(spec: ModelSpec, folder: Path) -> bool:
    """Whether the folder has a file under the name of each of the model's sources."""
    return all((folder / source_name(source)).is_file() for source in spec.sources)


def found_sources(spec: ModelSpec, folder: Path, *, unpinned: bool) -> dict[str, bytes] | None:
    """The content of a model's sources by name, or `None` where the folder has not all of them.

    Args:
        spec: The manifest's entry.
        folder: Holds files under the sources' names.
        unpinned: Whether a file may be another one than the manifest pins, or one that it does not.

    Raises:
        ModelIntegrityError: It may not, and a file is.
    """
    if not has_sources(spec, folder):
        return None
    names = [source_name(source) for source in spec.sources]
    content = {name: (folder / name).read_bytes() for name in names}
    if not unpinned:
        for source in spec.sources:
            _check(spec, source, content[source_name(source)])
    return content


def _check(spec: ModelSpec, source: Source, content: bytes) -> None:
    got = hashlib.sha256(content).hexdigest()
    if got == source.sha256:
        return
    wanted = f"the manifest says {source.sha256[:12]}" if source.sha256 else "the manifest has none"
    raise ModelIntegrityError(
        f"{spec.id}: sha256 of {source_name(source)} is {got[:12]}, {wanted}; "
        "if you trust the file, adopt it with --unpinned"
    )

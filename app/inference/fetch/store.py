"""Verified source files, kept by hash from their download until their model is installed."""

import os
from pathlib import Path

from app.core.errors import ModelIntegrityError
from app.inference.integrity import check_bytes
from app.inference.spec import Source


class SourceStore:
    """A folder of files named by their SHA-256; a file that is there is complete and right."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __contains__(self, source: Source) -> bool:
        path = self._path(source)
        return path.is_file() and path.stat().st_size == source.bytes

    def part_path(self, source: Source) -> Path:
        """Where an unfinished download grows."""
        return self.folder / f"{source.sha256}.part"

    def read(self, source: Source) -> bytes:
        """The content.

        Raises:
            ModelIntegrityError: The file was changed since it was put here; it is gone now.
        """
        content = self._path(source).read_bytes()
        try:
            self._check(source, content)
        except ModelIntegrityError:
            self.drop(source)
            raise
        return content

    def put(self, source: Source, content: bytes) -> None:
        """Keep a source's content.

        Raises:
            ModelIntegrityError: It is not what the manifest pins; nothing is kept.
        """
        self._check(source, content)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(source), content)

    def drop(self, source: Source) -> None:
        """Forget a source and its unfinished download."""
        self._path(source).unlink(missing_ok=True)
        self.part_path(source).unlink(missing_ok=True)

    def _path(self, source: Source) -> Path:
        return self.folder / source.sha256

    @staticmethod
    def _check(source: Source, content: bytes) -> None:
        check_bytes(
            source_name(source),
            content,
            sha256=source.sha256,
            size=source.bytes,
            advice="it is not the file that was checked when this release was made",
        )


def source_name(source: Source) -> str:
    """The source's own file name, by which converters find it."""
    if source.kind == "wheel":
        return source.member.rsplit("/", 1)[-1]
    if source.kind == "https":
        return source.urls[0].rsplit("/", 1)[-1]
    return source.name if source.kind == "brought" else Path(source.path).name


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, even after a power cut."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

"""Where the data volume keeps what; everything durable lies under one root."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from app.core.storage import publish, sync


@dataclass(frozen=True, slots=True)
class DataFolders:
    """The layout of the data volume.

    Attributes:
        root: The volume, made absolute, as jobs keep paths below it; scratch lies in it, too, so that a finished file
            is only renamed, never copied.
    """

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.absolute())

    @property
    def database(self) -> Path:
        """Jobs, uploads and engines: one file."""
        return self.root / "jobs.sqlite3"

    @property
    def media(self) -> Path:
        """One folder an upload."""
        return self.root / "media"

    @property
    def results(self) -> Path:
        """One folder a finished job."""
        return self.root / "results"

    @property
    def faces(self) -> Path:
        """One folder a saved face."""
        return self.root / "faces"

    @property
    def scratch(self) -> Path:
        """One folder a running job; nothing in it outlives the attempt."""
        return self.root / "scratch"

    @property
    def previews(self) -> Path:
        """Frames that somebody wants to see, for the moment until they are sent."""
        return self.root / "previews"

    def previews_of(self, engine: str) -> Path:
        """Those that an engine makes, which clears up after its own last life only."""
        return self.previews / engine

    def socket_of(self, engine: str) -> Path:
        """Where an engine takes short calls."""
        return self.root / f"{engine}.sock"

    def create(self) -> None:
        """Make what is missing.

        Raises:
            OSError: The volume is closed to us.
        """
        for folder in (self.media, self.results, self.scratch, self.previews):
            folder.mkdir(parents=True, exist_ok=True)


def move_into_place(finished: Path, final: Path) -> None:
    """Rename a finished file to where everybody looks for it, durably; either all of it is there or nothing.

    Raises:
        OSError: The two lie on different file systems, or the folder is closed to us.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    publish(finished, final)
    sync(final.parent.parent)


def remove_tree(folder: Path) -> None:
    """Delete a folder with all that is in it; one that is already gone is fine."""
    shutil.rmtree(folder, ignore_errors=True)

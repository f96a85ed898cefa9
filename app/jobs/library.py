"""Uploads: received beside their place, looked at, and only then known to anybody."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from app.core.errors import (
    AppError,
    InUseError,
    NotFoundError,
    RequestTooLargeError,
    UnwritableOutputError,
)
from app.core.storage import storage_refusals
from app.jobs.database import Database
from app.jobs.folders import move_into_place, remove_tree
from app.jobs.job import MediaId
from app.jobs.lease import new_token
from app.jobs.names import display_name

ORIGINAL = "original"
_PART = ".part"


class ProbedMedia(Protocol):
    """What the library wants to know of a file; `app.media.probe.MediaInfo` is one."""

    @property
    def kind(self) -> str:
        """`still` or `video`."""
        ...

    @property
    def container(self) -> str:
        """The kind of file."""
        ...

    def to_json(self) -> Mapping[str, object]:
        """All that is known, for clients."""
        ...


Probe = Callable[[Path], ProbedMedia]


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaItem:
    """One upload.

    Attributes:
        name: What its owner calls it; never a path.
        kind: `still` or `video`.
        container: The kind of file, by its bytes.
        info: What the probe says: size, rate, duration...
        created_at: Seconds since 1970.
    """

    id: MediaId
    name: str
    kind: str
    container: str
    bytes: int
    sha256: str
    info: Mapping[str, object]
    created_at: float


class Upload:
    """A file while it is being received; made by `MediaLibrary.receive`, and left with its `with`.

    Left without `keep`, nothing of it stays.
    """

    def __init__(
        self, part: Path, *, max_bytes: int, register: Callable[["Upload"], MediaItem]
    ) -> None:
        self.part = part
        self._register = register
        self._max_bytes = max_bytes
        self._digest = hashlib.sha256()
        self._is_kept = False
        self.received_bytes = 0
        with storage_errors_told():
            part.parent.mkdir(parents=True)
            self._file = part.open("xb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A full disk may refuse the last held-back bytes once more; the folder goes all the same.
        with suppress(OSError):
            self._file.close()
        if not self._is_kept:
            remove_tree(self.part.parent)

    @property
    def sha256(self) -> str:
        """Of what was received so far, in hexadecimal."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            RequestTooLargeError: More than may be uploaded; the chunk is not kept.
            StorageFullError: The disk is full.
        """
        self.received_bytes += len(chunk)
        if self.received_bytes > self._max_bytes:
            raise RequestTooLargeError(
                f"the file is larger than the {self._max_bytes} bytes that may be uploaded here"
            )
        with storage_errors_told():
            self._file.write(chunk)
        self._digest.update(chunk)

    def keep(self) -> MediaItem:
        """All bytes are there: look at them, and make the upload known.

        Raises:
            MediaError: No picture or video that can be used.
            StorageFullError: The disk is full.
        """
        with storage_errors_told():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        item = self._register(self)
        self._is_kept = True
        return item


class MediaLibrary:
    """All uploads; safe to use from any thread of any process of this machine."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        *,
        probe: Probe,
        max_bytes: int,
    ) -> None:
        """Look at the uploads.

        Args:
            database: Where they are listed.
            folder: Where they lie, each in a folder of its own.
            probe: Says what a file is, or refuses it.
            max_bytes: Largest upload.
        """
        self._database = database
        self._folder = folder
        self._probe = probe
        self._max_bytes = max_bytes

    def receive(self, name: str) -> Upload:
        """Begin an upload, to be used in a `with`.

        Raises:
            BadNameError: No file may be called this.
            StorageFullError: The disk is full.
        """
        shown = display_name(name)
        media_id = MediaId(new_token())
        return Upload(
            self._folder / media_id / (ORIGINAL + _PART),
            max_bytes=self._max_bytes,
            register=lambda upload: self._register(media_id, shown, upload),
        )

    def item(self, media_id: MediaId) -> MediaItem:
        """What is known of an upload.

        Raises:
            NotFoundError: No upload has this id.
        """
        with self._database.read() as db:
            return _item(db, media_id)

    def path(self, media_id: MediaId) -> Path:
        """Where an upload lies.

        Raises:
            NotFoundError: No upload has this id.
        """
        self.item(media_id)
        return self._folder / media_id / ORIGINAL

    def companion(self, media_id: MediaId, name: str) -> Path:
        """A place for a file made from an upload, which goes when the upload goes.

        Raises:
            NotFoundError: No upload has this id.
        """
        return self.path(media_id).with_name(name)

    def delete(self, media_id: MediaId) -> None:
        """Forget an upload: the row first, so that nobody is offered half of it.

        Raises:
            NotFoundError: No upload has this id.
            InUseError: A job that waits or runs needs it.
        """
        with self._database.write() as db:
            _item(db, media_id)
            needed = db.execute(
                "SELECT 1 FROM job_inputs JOIN jobs ON jobs.id = job_inputs.job_id"
                " WHERE media_id = ? AND state IN ('queued', 'running')",
                (media_id,),
            ).fetchone()
            if needed is not None:
                raise InUseError("a job that is not finished needs this upload; cancel it first")
            db.execute("DELETE FROM media WHERE id = ?", (media_id,))
        remove_tree(self._folder / media_id)

    def _register(self, media_id: MediaId, name: str, upload: Upload) -> MediaItem:
        probed = self._look_at(upload.part, name)
        item = MediaItem(
            id=media_id,
            name=name,
            kind=str(probed.kind),
            container=str(probed.container),
            bytes=upload.received_bytes,
            sha256=upload.sha256,
            info=probed.to_json(),
            created_at=time.time(),
        )
        with storage_errors_told():
            move_into_place(upload.part, upload.part.with_name(ORIGINAL))
        self._insert(item)
        return item

    def _look_at(self, part: Path, name: str) -> ProbedMedia:
        try:
            return self._probe(part)
        except AppError as error:
            # Whoever uploaded it knows it by its own name, not by ours.
            raise type(error)(error.message.replace(part.name, name)) from error

    def _insert(self, item: MediaItem) -> None:
        with self._database.write() as db:
            db.execute(
                "INSERT INTO media VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    item.id,
                    item.name,
                    item.kind,
                    item.container,
                    item.bytes,
                    item.sha256,
                    json.dumps(item.info),
                    item.created_at,
                ),
            )


@contextmanager
def storage_errors_told() -> Iterator[None]:
    """Turn the system's word on the data volume into ours.

    Raises:
        StorageFullError: No room is left.
        UnwritableOutputError: Anything else that the system says.
    """
    with storage_refusals(_data_volume_refusal):
        yield


def _data_volume_refusal(error: OSError) -> UnwritableOutputError:
    return UnwritableOutputError(
        f"the data volume cannot be written to: {error.strerror}; check its mount and owner"
    )


def _item(db: sqlite3.Connection, media_id: MediaId) -> MediaItem:
    row = db.execute("SELECT * FROM media WHERE id = ?", (media_id,)).fetchone()
    if row is None:
        raise NotFoundError("no upload has this id")
    return MediaItem(**{**dict(row), "info": json.loads(row["info"])})

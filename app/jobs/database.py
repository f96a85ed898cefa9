"""The one database file: connections, transactions, schema.

Many threads and processes use it at once. Nobody shares a connection: whoever needs one borrows it for one
transaction. `synchronous=FULL` makes a commit survive a power cut, so nothing that was accepted is ever lost.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from app.core.errors import OutputError, StorageFullError

BUSY_TIMEOUT_S = 20.0

# Step n brings a file of version n to version n + 1; steps are only ever appended.
_MIGRATIONS = (
    """
    CREATE TABLE media (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, container TEXT NOT NULL,
        bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, info TEXT NOT NULL, created_at REAL NOT NULL
    ) STRICT;
    CREATE TABLE jobs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, state TEXT NOT NULL,
        request TEXT NOT NULL, spec TEXT NOT NULL, download_name TEXT NOT NULL,
        idempotency_key TEXT UNIQUE, attempt INTEGER NOT NULL DEFAULT 0,
        cancel INTEGER NOT NULL DEFAULT 0, token TEXT, lease_boot TEXT, lease_until REAL,
        progress TEXT, result TEXT, failure TEXT,
        created_at REAL NOT NULL, updated_at REAL NOT NULL, started_at REAL, finished_at REAL,
        revision INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX jobs_by_state ON jobs (state, seq);
    CREATE TABLE job_inputs (
        job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, media_id TEXT NOT NULL,
        PRIMARY KEY (job_id, media_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX job_inputs_by_media ON job_inputs (media_id);
    CREATE TABLE engines (
        name TEXT PRIMARY KEY, state TEXT NOT NULL, pid INTEGER, seen_boot TEXT, seen_at REAL,
        last_exit INTEGER, restarts INTEGER NOT NULL DEFAULT 0, problem TEXT
    ) STRICT, WITHOUT ROWID;
    """,
    "ALTER TABLE engines ADD COLUMN device TEXT;",
)


class Database:
    """A file of SQLite in WAL mode, opened and brought up to date; close it, or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            StorageFullError: There is no room for it.
            OutputError: The file is closed to us, no database, or of a newer FaceDock.
        """
        self._path = path
        # append and pop of a list are atomic, so this is a pool without a lock.
        self._idle: list[sqlite3.Connection] = []
        with _sqlite_errors_told():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with self._borrowed() as connection:
                    connection.execute("PRAGMA journal_mode = WAL")
                self._migrate()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection that nobody is using."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for one or more SELECTs that see one state of the file."""
        with _sqlite_errors_told(), self._borrowed() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else can write beside; durable when the `with` ends, void on an exception.

        Raises:
            StorageFullError: The disk is full; the file is intact and unchanged.
        """
        with _sqlite_errors_told(), self._borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk rolls back by itself, and a second ROLLBACK is an error.
                with suppress(sqlite3.OperationalError):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except sqlite3.Error:
            connection.close()
            raise
        except BaseException:
            self._idle.append(connection)
            raise
        else:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self) -> None:
        with self.write() as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(_MIGRATIONS):
                raise OutputError(
                    f"{self._path.name}: schema {version} is newer than this FaceDock knows"
                    f" ({len(_MIGRATIONS)}); run the newer FaceDock again"
                )
            for step in _MIGRATIONS[version:]:
                for statement in step.split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")


@contextmanager
def _sqlite_errors_told() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise StorageFullError("the disk is full; free some space and try again") from error
        raise OutputError(f"the job database failed: {error}") from error

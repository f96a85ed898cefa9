"""Writing finished bytes to disk: all of them, or an error of ours and no file."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import OutputError, UnwritableOutputError
from app.core.storage import storage_refusals

_CLOSED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn the operating system's refusals to write into errors of ours.

    Raises:
        StorageFullError: The disk or the quota is full.
        UnwritableOutputError: The folder is missing or closed to us.
        OutputError: Anything else.
    """
    with storage_refusals(_refusal):
        yield


def _refusal(error: OSError) -> OutputError:
    if error.errno in _CLOSED:
        return UnwritableOutputError(
            f"the output folder cannot be written to: {error.strerror}; name another one"
        )
    return OutputError(f"the output could not be written: {error.strerror}")


def write_file(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk has it; nothing is left behind when that fails.

    Raises:
        StorageFullError: The disk or the quota is full.
        UnwritableOutputError: The folder is missing or closed to us.
        OutputError: Anything else.
    """
    with storage_errors():
        try:
            with path.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise

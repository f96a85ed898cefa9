"""What is written survives a power cut and is seen whole or not at all; a disk that refuses is told in our words."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from app.core.errors import AppError, StorageFullError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_full(error: OSError) -> bool:
    """Whether there is no room: on the disk, in the quota, or for a file of that size."""
    return error.errno in _FULL


@contextmanager
def storage_refusals(
    otherwise: Callable[[OSError], AppError] | None = None,
    *,
    full: str = "the disk is full; free some space and try again",
) -> Iterator[None]:
    """Turn the system's refusals to write into errors of ours.

    Args:
        otherwise: Gives the error for every reason but a lack of room; without it those go on as they are.
        full: What to say of a lack of room.

    Raises:
        StorageFullError: There is no room.
        AppError: What `otherwise` gave.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise StorageFullError(full) from error
        if otherwise is None:
            raise
        raise otherwise(error) from error


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk.

    Raises:
        OSError: The disk is full or broken.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(finished: Path, final: Path) -> None:
    """Rename a finished, synced file to where everybody looks for it, durably; what was there is replaced.

    Raises:
        OSError: The two lie on different file systems, or the folder is closed to us.
    """
    finished.replace(final)
    sync(final.parent)

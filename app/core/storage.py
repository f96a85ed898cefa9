"""Making what was written survive a power cut, and seen as a whole or not at all."""

import os
from pathlib import Path


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

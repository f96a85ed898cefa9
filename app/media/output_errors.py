"""What goes wrong while FFmpeg writes a file, as errors of ours."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import av

from app.media.storage import storage_errors

_STORAGE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF}
)


def is_storage_error(error: av.FFmpegError) -> bool:
    """True when the disk, and not what was written, is the reason."""
    return error.errno in _STORAGE


@contextmanager
def output_errors() -> Iterator[None]:
    """Turn the refusals of FFmpeg and of the operating system to write into errors of ours.

    Raises:
        StorageFullError: The disk or the quota is full.
        UnwritableOutputError: The folder is missing or closed to us.
        OutputError: Anything else.
    """
    with storage_errors():
        try:
            yield
        except av.FFmpegError as error:
            raise OSError(error.errno, error.strerror) from error

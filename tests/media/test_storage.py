import errno
from pathlib import Path

import pytest

from app.core.errors import OutputError, StorageFullError, UnwritableOutputError
from app.media.storage import storage_errors, write_file


@pytest.mark.parametrize(
    ("number", "error"),
    [
        pytest.param(errno.ENOSPC, StorageFullError, id="disk full"),
        pytest.param(errno.EDQUOT, StorageFullError, id="quota full"),
        pytest.param(errno.EACCES, UnwritableOutputError, id="no right"),
        pytest.param(errno.EROFS, UnwritableOutputError, id="read only"),
        pytest.param(errno.EIO, OutputError, id="broken disk"),
    ],
)
def test_refusals_of_the_system_get_names(number: int, error: type[OutputError]) -> None:
    with pytest.raises(error) as caught, storage_errors():
        raise OSError(number, "why")
    assert type(caught.value) is error


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_file(path, b"abc")
    write_file(path, b"de")
    assert path.read_bytes() == b"de"


def test_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    """`/dev/full` is a disk that is full; a link to it stands for the output."""
    path = tmp_path / "x"
    path.symlink_to("/dev/full")
    with pytest.raises(StorageFullError):
        write_file(path, b"abc")
    assert not path.is_symlink()

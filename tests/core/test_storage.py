"""What the system says of a disk, in our words."""

import errno

import pytest

from app.core.errors import OutputError, StorageFullError, UnwritableOutputError
from app.core.storage import is_full, storage_refusals


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_every_lack_of_room_is_a_full_disk(number: int) -> None:
    assert is_full(OSError(number, "why"))
    with pytest.raises(StorageFullError, match="free some space") as told, storage_refusals():
        raise OSError(number, "why")
    assert isinstance(told.value.__cause__, OSError)


def test_another_reason_is_told_by_whoever_knows_the_folder() -> None:
    def otherwise(error: OSError) -> OutputError:
        return UnwritableOutputError(f"the cellar: {error.strerror}")

    with pytest.raises(UnwritableOutputError, match="the cellar: why"), storage_refusals(otherwise):
        raise OSError(errno.EACCES, "why")
    with pytest.raises(StorageFullError, match="dig"), storage_refusals(otherwise, full="dig"):
        raise OSError(errno.ENOSPC, "why")


def test_where_nobody_knows_better_the_systems_word_goes_on() -> None:
    with pytest.raises(PermissionError), storage_refusals():
        raise PermissionError(errno.EACCES, "why")


def test_what_is_no_refusal_passes() -> None:
    with pytest.raises(KeyError), storage_refusals():
        raise KeyError
    with storage_refusals():
        pass

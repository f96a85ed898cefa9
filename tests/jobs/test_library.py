import hashlib
import io
from pathlib import Path

import pytest

from app.core.errors import (
    BadNameError,
    EmptyMediaError,
    InUseError,
    NotFoundError,
    RequestTooLargeError,
    StorageFullError,
    UnsupportedTypeError,
    UnwritableOutputError,
)
from app.jobs.job import JobState, MediaId
from app.jobs.library import storage_errors_told
from tests.jobs.fakes import STILL, VIDEO, Volume, open_volume, tiny_job


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_an_upload_is_kept_under_a_random_id_and_described(volume: Volume) -> None:
    item = volume.studio.add_media(io.BytesIO(STILL), "../../me.png")
    assert (item.name, item.kind, item.container) == ("me.png", "still", "png")
    assert (item.bytes, item.sha256) == (len(STILL), hashlib.sha256(STILL).hexdigest())
    assert item.info == {"kind": "still", "size_wh": [64, 48]}
    assert volume.library.path(item.id) == volume.folders.media / item.id / "original"
    assert volume.library.path(item.id).read_bytes() == STILL
    assert volume.library.item(item.id) == item


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [
        pytest.param(b"", "me.png", EmptyMediaError, id="empty"),
        pytest.param(b"some text", "me.png", UnsupportedTypeError, id="text"),
        pytest.param(STILL * 100_000, "me.png", RequestTooLargeError, id="too large"),
        pytest.param(STILL, "a\0b", BadNameError, id="bad name"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    volume: Volume, content: bytes, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        volume.upload(content, name)
    assert names_in(volume.folders.media) == []


def test_a_refusal_names_the_file_as_its_owner_does(volume: Volume) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"^notes\.jpg: no picture or video$"):
        volume.upload(b"some text", "notes.jpg")


def test_a_file_of_the_largest_size_is_taken(tmp_path: Path) -> None:
    with open_volume(tmp_path / "data", max_bytes=len(STILL)) as volume:
        volume.upload(STILL)
        with pytest.raises(RequestTooLargeError):
            volume.upload(STILL + b"!")


def test_an_upload_broken_off_leaves_nothing_behind(volume: Volume) -> None:
    with pytest.raises(ConnectionError), volume.studio.receive_media("me.png") as upload:
        upload.write(STILL)
        raise ConnectionError
    with volume.studio.receive_media("me.png") as upload:
        upload.write(STILL)
    assert names_in(volume.folders.media) == []


def test_nobody_sees_an_upload_before_it_is_whole(volume: Volume) -> None:
    with volume.studio.receive_media("me.png") as upload:
        upload.write(STILL)
        assert names_in(volume.folders.media)[-1] == "original.part"
        media_id = MediaId(upload.part.parent.name)
        with pytest.raises(NotFoundError):
            volume.library.item(media_id)
        upload.keep()
    assert volume.library.item(media_id).bytes == len(STILL)


def test_unknown_uploads_are_not_found(volume: Volume) -> None:
    for ask in (volume.library.item, volume.library.path, volume.library.delete):
        with pytest.raises(NotFoundError):
            ask(MediaId("../jobs.sqlite3"))


def test_a_deleted_upload_is_gone_from_disk(volume: Volume) -> None:
    media_id = volume.upload()
    volume.studio.thumbnail(media_id)
    volume.library.delete(media_id)
    assert names_in(volume.folders.media) == []
    with pytest.raises(NotFoundError):
        volume.library.item(media_id)


def test_an_unfinished_job_owns_its_inputs(volume: Volume) -> None:
    media_id = volume.upload()
    job = volume.store.submit(tiny_job(volume.folders, media_id), max_queued=1)
    with pytest.raises(InUseError):
        volume.library.delete(media_id)
    claim = volume.store.claim()
    assert claim is not None
    with pytest.raises(InUseError):
        volume.library.delete(media_id)
    assert volume.library.path(media_id).exists()
    volume.store.stop(claim, JobState.CANCELED)
    volume.library.delete(media_id)
    assert volume.store.job(job.id).state is JobState.CANCELED


def test_a_thumbnail_is_made_once(volume: Volume) -> None:
    media_id = volume.upload(VIDEO)
    assert volume.studio.thumbnail(media_id, side_px=64) == b"JPEG 64"
    assert volume.studio.thumbnail(media_id, side_px=64) == b"JPEG 64"
    assert volume.studio.thumbnail(media_id, side_px=32) == b"JPEG 32"
    assert len(volume.thumbnails_made) == 2


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(OSError(28, "No space left on device"), StorageFullError, id="full"),
        pytest.param(PermissionError(13, "Permission denied"), UnwritableOutputError, id="closed"),
    ],
)
def test_the_systems_word_on_the_volume_is_turned_into_ours(
    error: OSError, told: type[Exception]
) -> None:
    with pytest.raises(told), storage_errors_told():
        raise error

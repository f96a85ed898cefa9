import os
from pathlib import Path

from app.jobs.sweep import sweep_orphans
from tests.jobs.fakes import Volume


def make(folder: Path, *, is_old: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "file"
    file.write_bytes(b"half")
    if is_old:
        os.utime(file, (0, 0))
        os.utime(folder, (0, 0))
    return folder


def test_only_old_folders_that_nothing_knows_are_removed(volume: Volume) -> None:
    job = volume.submit()
    folders = volume.folders
    kept = [
        make(folders.results / job.id, is_old=True),
        make(folders.scratch / job.id, is_old=True),
        make(folders.media / "on-its-way", is_old=False),
        *(folders.media / media_id for media_id in job.request.inputs),
    ]
    for folder in kept[3:]:
        make(folder, is_old=True)
    gone = [make(parent / "orphan", is_old=True) for parent in (folders.media, folders.results)]
    assert sweep_orphans(volume.database, folders) == 2
    assert all(folder.is_dir() for folder in kept)
    assert not any(folder.exists() for folder in gone)


def test_an_upload_of_which_bytes_still_arrive_is_left_alone(volume: Volume) -> None:
    folder = make(volume.folders.media / "slow", is_old=True)
    (folder / "file").write_bytes(b"more")
    os.utime(folder, (0, 0))
    assert sweep_orphans(volume.database, volume.folders) == 0


def test_a_clean_volume_stays_as_it_is(volume: Volume) -> None:
    volume.submit()
    assert sweep_orphans(volume.database, volume.folders, min_age_s=0) == 0

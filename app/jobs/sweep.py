"""What a kill or a power cut has left on the data volume, and no row of the database knows."""

import time
from pathlib import Path

from app.jobs.database import Database
from app.jobs.folders import DataFolders, remove_tree

# Longer than any upload is on its way without a byte arriving.
ORPHAN_AGE_S = 3600.0


def sweep_orphans(
    database: Database, folders: DataFolders, *, min_age_s: float = ORPHAN_AGE_S
) -> int:
    """Remove uploads, results, scratch and half saved faces that belong to nothing.

    Args:
        database: Knows what belongs to something.
        folders: The volume.
        min_age_s: Younger ones may be on their way.

    Returns:
        How many folders were removed.
    """
    with database.read() as db:
        media = {row["id"] for row in db.execute("SELECT id FROM media")}
        jobs = {row["id"] for row in db.execute("SELECT id FROM jobs")}
    orphans = [
        folder
        for parent, known in (
            (folders.media, media),
            (folders.results, jobs),
            (folders.scratch, jobs),
        )
        for folder in parent.iterdir()
        if folder.name not in known and _age_s(folder) > min_age_s
    ]
    if folders.faces.is_dir():
        # A face that is being saved or deleted has a name with a dot before it.
        orphans += [f for f in folders.faces.glob(".*") if _age_s(f) > min_age_s]
    for folder in orphans:
        remove_tree(folder)
    return len(orphans)


def _age_s(folder: Path) -> float:
    """Since the newest change of the folder or of a file in it."""
    try:
        newest = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except FileNotFoundError:
        return 0.0
    return time.time() - newest

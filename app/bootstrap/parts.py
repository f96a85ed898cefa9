"""What every process is wired of."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.config import Settings
from app.inference.inventory import Inventory
from app.inference.manifest import Manifest
from app.media.limits import MediaLimits

if TYPE_CHECKING:
    from app.inference.install import Installer
    from app.jobs.database import Database
    from app.jobs.face_library import FaceLibrary
    from app.runtime.doctor import Diagnosis


def manifest(settings: Settings) -> Manifest:
    """The list of known models."""
    return Manifest.load(settings.manifest)


def inventory(settings: Settings) -> Inventory:
    """What of it is installed."""
    return Inventory(manifest(settings), settings.models_path)


def installer(settings: Settings) -> "Installer":
    """Installs models."""
    from app.inference.install import Installer

    return Installer(manifest(settings), settings.models_path)


def limits(settings: Settings) -> MediaLimits:
    """How large a file may be."""
    return MediaLimits(
        max_still_pixels=settings.max_still_pixels,
        max_side_px=settings.max_side_px,
        max_duration_s=settings.max_duration_s,
        max_streams=settings.max_streams,
        max_animation_frames=settings.max_animation_frames,
    )


def face_library(settings: Settings) -> "FaceLibrary":
    """The saved faces."""
    from app.jobs.face_library import FaceLibrary
    from app.jobs.folders import DataFolders

    return FaceLibrary(DataFolders(settings.data_dir).faces)


@contextmanager
def open_database(settings: Settings) -> Iterator["Database"]:
    """The database of the data folder, which is made where it is missing.

    Raises:
        StorageFullError: The disk is full.
        UnwritableOutputError: The folder is closed to us.
    """
    from app.jobs.database import Database
    from app.jobs.folders import DataFolders
    from app.jobs.library import storage_errors_told

    folders = DataFolders(settings.data_dir)
    with storage_errors_told():
        folders.create()
    with Database(folders.database) as database:
        yield database


def examine(settings: Settings) -> "Diagnosis":
    """Look at this machine."""
    from app.runtime.doctor import examine

    return examine(inventory(settings), settings.data_dir)


def check_devices(settings: Settings) -> None:
    """Keep to `require_gpu`.

    Raises:
        DeviceUnavailableError: Only the CPU works here, and the operator wants more.
    """
    if settings.require_gpu:
        check_device_works(settings)


def check_device_works(settings: Settings) -> None:
    """Try the device that the settings name.

    Raises:
        DeviceUnavailableError: It does not really work.
    """
    from app.inference.session import choose

    choose(settings.device, requires_gpu=settings.require_gpu)


def delete_saved_face(settings: Settings, face_id: str) -> None:
    """Remove a saved face, unless a job that waits or runs needs it.

    Raises:
        InUseError: One does.
        NotFoundError: No saved face has this id.
    """
    from app.core.errors import InUseError
    from app.jobs.folders import DataFolders
    from app.jobs.store import JobStore

    # Where no job was ever handed in there is no database, and none need be made.
    if DataFolders(settings.data_dir).database.exists():
        with open_database(settings) as database:
            if JobStore(database).needs_face(face_id):
                raise InUseError("a job that is not finished needs this face; cancel it first")
    face_library(settings).delete(face_id)

"""Faces that are kept under a name, to be put on again without their photos."""

from collections.abc import Callable
from dataclasses import dataclass

from app.core.errors import ConsentRequiredError, InUseError, UnsupportedTypeError
from app.jobs.face_library import FaceLibrary, SavedFace
from app.jobs.job import MediaId
from app.jobs.library import MediaLibrary
from app.lookout import Engine
from app.pipeline.spec import ConsentBasis
from app.runtime.calls import SaveFace


@dataclass(frozen=True, kw_only=True, slots=True)
class FaceToSave:
    """A face to be made of uploads.

    Attributes:
        name: What it is to be called.
        photos: One or more, of one person.
        face: Which face of each photo, from 1, left to right; `None` is the one that is clearly meant.
        consent: On what ground it may be used; a face without it is refused.
    """

    name: str
    photos: tuple[MediaId, ...]
    face: int | None = None
    consent: ConsentBasis | None = None


class SavedFaces:
    """All saved faces; safe to use from any thread.

    Args:
        faces: Where they lie.
        media: The uploads.
        engine: Makes a face of photos.
        is_needed: Whether a job that is not finished puts the face with this id on.
    """

    def __init__(
        self,
        faces: FaceLibrary,
        media: MediaLibrary,
        engine: Engine,
        *,
        is_needed: Callable[[str], bool],
    ) -> None:
        self._faces = faces
        self._media = media
        self._engine = engine
        self._is_needed = is_needed

    def all(self) -> tuple[SavedFace, ...]:
        """All of them, by name."""
        return self._faces.faces()

    def face(self, face_id: str) -> SavedFace:
        """What is known of one.

        Raises:
            NotFoundError: No saved face has this id.
        """
        return self._faces.face(face_id)

    def save(self, wanted: FaceToSave) -> SavedFace:
        """Make a face of uploads and keep it; the uploads may go then.

        Raises:
            ConsentRequiredError: The ground for using the face is missing.
            NotFoundError: No upload has one of the ids.
            UnsupportedTypeError: One of them is no photo.
            BadNameError: No face may be called this, or one is already.
            EngineNotRunningError: There is no engine, or it died over this.
            EngineBusyError: It has too much to do.
            AppError: A photo cannot be used.
        """
        if wanted.consent is None:
            raise ConsentRequiredError(
                "consent: missing; say self, permission, fictional or public-domain"
            )
        if any(self._media.item(photo).kind != "still" for photo in wanted.photos):
            raise UnsupportedTypeError("a face is made of photos, and this is a video")
        call = SaveFace(
            name=wanted.name,
            photos=tuple(self._media.path(photo) for photo in wanted.photos),
            face=wanted.face,
            consent=wanted.consent,
        )
        return self._faces.face(self._engine.save_face(call))

    def thumbnail(self, face_id: str) -> bytes:
        """A small JPEG.

        Raises:
            NotFoundError: No saved face has this id.
        """
        return self._faces.thumbnail(face_id)

    def rename(self, face_id: str, name: str) -> SavedFace:
        """Call a face something else.

        Raises:
            NotFoundError: No saved face has this id.
            BadNameError: No face may be called this, or another one is already.
        """
        return self._faces.rename(face_id, name)

    def delete(self, face_id: str) -> None:
        """Remove a face with all that was kept of it.

        Raises:
            NotFoundError: No saved face has this id.
            InUseError: A job that waits or runs needs it.
        """
        if self._is_needed(face_id):
            raise InUseError("a job that is not finished needs this face; cancel it first")
        self._faces.delete(face_id)

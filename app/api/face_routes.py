"""Saved faces: list, save, look at, rename, delete."""

from datetime import UTC, datetime
from typing import Self

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from app.jobs.face_library import SavedFace
from app.jobs.job import MediaId
from app.pipeline.spec import ConsentBasis
from app.saved_faces import FaceToSave
from app.service import Studio


class SaveFaceRequest(BaseModel):
    """A face to be made of uploads, and kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    photos: tuple[MediaId, ...] = Field(min_length=1, max_length=64, description="of one person")
    face: int | None = Field(
        default=None, ge=1, description="which face of each photo, from 1, left to right"
    )
    consent: ConsentBasis | None = None


class RenameFaceRequest(BaseModel):
    """What a saved face is to be called."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=200)


class SavedFaceOut(BaseModel):
    """A saved face."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="what `saved` of a face map means")
    name: str
    photos: int
    consent: ConsentBasis
    created_at: datetime
    thumbnail_url: str

    @classmethod
    def of(cls, face: SavedFace) -> Self:
        """As clients see it."""
        return cls(
            id=face.id,
            name=face.name,
            photos=face.photos,
            consent=face.consent,
            created_at=datetime.fromtimestamp(face.created_at, UTC),
            thumbnail_url=f"/api/v1/faces/{face.id}/thumbnail",
        )


class SavedFaceList(BaseModel):
    """Saved faces, by name."""

    faces: list[SavedFaceOut]


def add_face_routes(router: APIRouter, studio: Studio) -> None:
    """The face library."""

    @router.get("/faces")
    def list_saved_faces() -> SavedFaceList:
        """All saved faces, by name."""
        return SavedFaceList(faces=[SavedFaceOut.of(face) for face in studio.saved_faces.all()])

    @router.post("/faces", status_code=201)
    def save_face(body: SaveFaceRequest) -> SavedFaceOut:
        """Make a face of uploads and keep it; the uploads may go then."""
        wanted = FaceToSave(
            name=body.name, photos=body.photos, face=body.face, consent=body.consent
        )
        return SavedFaceOut.of(studio.saved_faces.save(wanted))

    @router.get("/faces/{face_id}/thumbnail", response_class=Response)
    def get_saved_face_thumbnail(face_id: str) -> Response:
        """A saved face, as a small JPEG."""
        return Response(studio.saved_faces.thumbnail(face_id), media_type="image/jpeg")

    @router.patch("/faces/{face_id}")
    def rename_saved_face(face_id: str, body: RenameFaceRequest) -> SavedFaceOut:
        """Call a saved face something else; its id stays."""
        return SavedFaceOut.of(studio.saved_faces.rename(face_id, body.name))

    @router.delete("/faces/{face_id}", status_code=204)
    def delete_saved_face(face_id: str) -> None:
        """Remove a saved face with all that was kept of it; refused while a job that is not finished needs it."""
        studio.saved_faces.delete(face_id)

"""Bodies of the routes that look at uploads."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.job import JobRequest, MediaId
from app.runtime.calls import Box, FacesSeen, PeopleSeen


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True)


class PhotoFaceOut(_Body):
    """One face of a photo."""

    number: int = Field(description="from 1, left to right; what `face` of a source face means")
    bbox_xyxy: Box
    thumbnail_url: str


class PhotoFacesOut(_Body):
    """The faces of a photo."""

    size_wh: tuple[int, int]
    faces: list[PhotoFaceOut]
    meant: int | None = Field(
        description="the face that a job takes when none is chosen; null when one has to be, or there is none"
    )

    @classmethod
    def of(cls, seen: FacesSeen, media_id: MediaId) -> Self:
        """As clients see it."""
        root = f"/api/v1/media/{media_id}/faces"
        return cls(
            size_wh=seen.size_wh,
            faces=[
                PhotoFaceOut(
                    number=face.number,
                    bbox_xyxy=face.bbox_xyxy,
                    thumbnail_url=f"{root}/{face.number}/thumbnail",
                )
                for face in seen.faces
            ],
            meant=seen.meant,
        )


class PlaceOut(_Body):
    """Where a person was at a time."""

    time_s: float
    bbox_xyxy: Box


class PersonOut(_Body):
    """One person of a picture or video."""

    number: int = Field(description="from 1; what `person` of a face map means")
    thumbnail_url: str
    first_s: float
    last_s: float
    share: float = Field(description="of the frames that were looked at, 0 to 1")
    size_range_px: tuple[float, float] = Field(description="widths of smallest and largest face")
    places: list[PlaceOut]


class PeopleOut(_Body):
    """Everybody of a picture or video."""

    size_wh: tuple[int, int]
    duration_s: float | None
    people: list[PersonOut]
    likeness: list[list[float]] = Field(
        description="row and column a person each: cosine of their most similar views; "
        "on the diagonal of a person's own least similar ones"
    )

    @classmethod
    def of(cls, seen: PeopleSeen, media_id: MediaId) -> Self:
        """As clients see it."""
        root = f"/api/v1/media/{media_id}/people"
        return cls(
            size_wh=seen.size_wh,
            duration_s=seen.duration_s,
            people=[
                PersonOut(
                    number=person.number,
                    thumbnail_url=f"{root}/{person.number}/thumbnail",
                    first_s=person.first_s,
                    last_s=person.last_s,
                    share=person.share,
                    size_range_px=person.size_range_px,
                    places=[
                        PlaceOut(time_s=place.time_s, bbox_xyxy=place.bbox_xyxy)
                        for place in person.places
                    ],
                )
                for person in seen.people
            ],
            likeness=[list(row) for row in seen.likeness],
        )


class PreviewRequest(JobRequest):
    """A job's request, and which frame is to be seen."""

    time_s: float = Field(
        default=0, ge=0, allow_inf_nan=False, description="seconds of the whole file"
    )

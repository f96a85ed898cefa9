"""What a person asked for: frozen, validated at the door, kept as JSON."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.faces.recognizer import SAME_PERSON_COSINE
from app.media.choices import CodecChoice

Preset = Literal["ultrafast", "veryfast", "medium", "slow"]
ConsentBasis = Literal["self", "permission", "fictional", "public-domain"]
Action = Literal["source", "leave", "blur"]
PersonOrder = Literal["leftmost", "rightmost", "topmost", "bottommost", "largest", "smallest"]

PhotoT = TypeVar("PhotoT")
"""How a photo is named: a path here, the id of an upload at the doors."""
OtherT = TypeVar("OtherT")


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """What a schema and an error call it: how photos are named is of no interest to whoever reads them."""
        return cls.__name__


class Step(_Asked):
    """One processor with its options; the options are validated by the processor's own class."""

    processor: str
    options: dict[str, Any] = Field(default_factory=dict)


class SourceFace(_Asked, Generic[PhotoT]):
    """The face that somebody gets.

    Attributes:
        photos: One or more photos of one person.
        face: Which face, from 1, left to right (ties top to bottom), where the one photo shows several; `None` is the
            one that is clearly meant.
        saved: Id in the face library, instead of photos.
    """

    photos: tuple[PhotoT, ...] = Field(default=(), max_length=64)
    face: int | None = Field(default=None, ge=1)
    saved: str | None = Field(default=None, min_length=1, max_length=64)

    @model_validator(mode="after")
    def _is_one_face(self) -> Self:
        if bool(self.photos) == (self.saved is not None):
            raise ValueError("wanted either photos or the id of a saved face")
        if self.face is not None and len(self.photos) != 1:
            raise ValueError("face: only of one photo can a face be chosen")
        return self


class PersonChoice(_Asked, Generic[PhotoT]):
    """What happens to one person of the target.

    Attributes:
        person: The person's number from 1, as `find_people` gives it.
        reference: A photo of the person, instead.
        reference_face: Which face of that photo, from 1, left to right; `None` is the one that is clearly meant.
        order: A place among the target's people, instead.
        rank: From 1: 2 with `largest` is the second largest.
        action: A face to put on, `source` for the request's own sources, `leave` or `blur`.
    """

    person: int | None = Field(default=None, ge=1)
    reference: PhotoT | None = None
    reference_face: int | None = Field(default=None, ge=1)
    order: PersonOrder | None = None
    rank: int = Field(default=1, ge=1)
    action: SourceFace[PhotoT] | Action

    @model_validator(mode="after")
    def _is_one_person(self) -> Self:
        if [self.person, self.reference, self.order].count(None) != 2:
            raise ValueError("wanted exactly one of person, reference and order")
        if self.reference is None and self.reference_face is not None:
            raise ValueError("reference_face: there is no reference photo")
        if self.order is None and self.rank != 1:
            raise ValueError("rank: only within an order")
        return self


class FaceMap(_Asked, Generic[PhotoT]):
    """Who of the target gets which face.

    `{"person": 2}` of earlier releases is still read: the third person gets the request's sources, nobody else
    anything.

    Attributes:
        choices: Person by person.
        others: What happens to everybody else.
        threshold: Least likeness (cosine of embeddings) at which a face is taken for a chosen person.
    """

    choices: tuple[PersonChoice[PhotoT], ...] = Field(default=(), max_length=64)
    others: Action = "source"
    threshold: float = Field(default=SAME_PERSON_COSINE, ge=0, le=1)

    @classmethod
    def only(cls, person: int) -> Self:
        """The request's sources for one person, from 1, and nothing for anybody else."""
        choice = PersonChoice[PhotoT](person=person, action="source")
        return cls(choices=(choice,), others="leave")

    @model_validator(mode="before")
    @classmethod
    def _read_earlier_release(cls, value: Any) -> Any:
        if not (isinstance(value, dict) and value.keys() == {"person"}):
            return value
        if value["person"] is None:
            return {}
        if type(value["person"]) is not int:
            return value
        choice = {"person": value["person"] + 1, "action": "source"}
        return {"choices": [choice], "others": "leave"}

    @model_validator(mode="after")
    def _says_each_thing_once(self) -> Self:
        named = [(c.person, c.reference, c.reference_face, c.order, c.rank) for c in self.choices]
        if len(set(named)) < len(named):
            raise ValueError("choices: somebody is named twice")
        return self

    @property
    def needs_sources(self) -> bool:
        """Whether somebody gets the request's own sources."""
        return "source" in (self.others, *(choice.action for choice in self.choices))

    @property
    def photos(self) -> tuple[PhotoT, ...]:
        """Every photo that the map names, sources and references, each once."""
        named: list[PhotoT] = []
        for choice in self.choices:
            named += [] if choice.reference is None else [choice.reference]
            named += choice.action.photos if isinstance(choice.action, SourceFace) else ()
        return tuple(dict.fromkeys(named))

    @property
    def saved_faces(self) -> tuple[str, ...]:
        """Ids of the saved faces that the map names, each once."""
        faces = (c.action.saved for c in self.choices if isinstance(c.action, SourceFace))
        return tuple(dict.fromkeys(saved for saved in faces if saved is not None))

    def with_photos(self, resolve: Callable[[PhotoT], OtherT]) -> "FaceMap[OtherT]":
        """The same map with every photo named in another way, as an upload by the path where it lies."""
        choices = tuple(_renamed(choice, resolve) for choice in self.choices)
        return FaceMap[OtherT](choices=choices, others=self.others, threshold=self.threshold)


def _renamed(
    choice: PersonChoice[PhotoT], resolve: Callable[[PhotoT], OtherT]
) -> PersonChoice[OtherT]:
    action = choice.action
    return PersonChoice[OtherT](
        person=choice.person,
        reference=None if choice.reference is None else resolve(choice.reference),
        reference_face=choice.reference_face,
        order=choice.order,
        rank=choice.rank,
        action=SourceFace[OtherT](
            photos=tuple(resolve(photo) for photo in action.photos),
            face=action.face,
            saved=action.saved,
        )
        if isinstance(action, SourceFace)
        else action,
    )


class OutputChoices(_Asked):
    """How the result is encoded.

    Attributes:
        quality: 0 to 100, mapped to each encoder's own scale.
        preset: Speed of a video encoder.
        codec: `auto` plays everywhere unless the input needs more; `like-input` is the input's own where
            possible, and then at about the input's quality, whatever `quality` says.
        encoder: Who encodes; hardware only where it works, and it decodes, too, where it gives the same frames.
        dynamic_range: `sdr` makes 8-bit BT.709 of HDR video; SDR video is left alone by both.
    """

    quality: int = Field(default=80, ge=0, le=100, title="Quality")
    preset: Preset = Field(default="veryfast", title="Encoder speed")
    codec: CodecChoice = Field(default="auto", title="Video codec")
    encoder: Literal["software", "hardware"] = Field(default="software", title="Encoder")
    dynamic_range: Literal["keep", "sdr"] = Field(default="keep", title="HDR video")


class Timing(_Asked):
    """Which part of a video is made, and how many frames a second it gets.

    Attributes:
        start_s: The first frame shown at or after it becomes the first one.
        end_s: Frames from here on are left out; `None` is the end.
        fps: A steady rate; `None` keeps every frame and its time.
    """

    start_s: float = Field(default=0, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    fps: float | None = Field(default=None, gt=0, le=240, allow_inf_nan=False)

    @model_validator(mode="after")
    def _ends_behind_its_start(self) -> "Timing":
        if self.end_s is not None and self.end_s <= self.start_s:
            raise ValueError("end_s must be behind start_s")
        return self


class RenderSpec(_Asked):
    """One job: these faces, on that target, with these steps, into that file.

    Attributes:
        sources: Photos of the one person whose face everybody gets of whom `face_map` says nothing else.
    """

    sources: tuple[Path, ...] = ()
    target: Path
    output: Path
    consent: ConsentBasis
    steps: tuple[Step, ...] = Field(default=(Step(processor="face_swapper"),), min_length=1)
    face_map: FaceMap[Path] = Field(default_factory=FaceMap[Path])
    encoding: OutputChoices = Field(default_factory=OutputChoices)
    timing: Timing = Field(default_factory=Timing)

    @model_validator(mode="after")
    def _has_its_sources(self) -> Self:
        demand_sources(self.sources, self.face_map)
        return self


def demand_sources(sources: Sequence[PhotoT], face_map: FaceMap[PhotoT]) -> None:
    """Refuse a request whose face is missing, or would be given to nobody.

    Raises:
        ValueError: As pydantic wants it.
    """
    if face_map.needs_sources and not sources:
        raise ValueError(
            "sources: wanted at least one photo, or face_map.others must be leave or blur"
        )
    if sources and not face_map.needs_sources:
        raise ValueError("sources: nobody gets them; name them in face_map, or leave them out")

"""What the web process asks of an engine while somebody waits, and how it travels between the two.

A message is its length, four bytes, and its JSON. One connection carries one call: a question, any number of
`Working`, and one answer. Whoever asked hangs up to call it off.
"""

import socket
import struct
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.pipeline.spec import ConsentBasis, RenderSpec

MAX_CALL_BYTES = 1 << 20
MAX_ANSWER_BYTES = 64 << 20
_LENGTH = struct.Struct("!I")
_RECEIVE_BYTES = 1 << 20

T = TypeVar("T")

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels of the upright picture."""


class MessageError(Exception):
    """The other end does not speak this protocol, or stopped in mid-message."""


class _Message(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )


class FindFaces(_Message):
    """Which faces a photo shows."""

    kind: Literal["find_faces"] = "find_faces"
    path: Path


class FindPeople(_Message):
    """Who appears in a picture or video."""

    kind: Literal["find_people"] = "find_people"
    path: Path


class MakePreview(_Message):
    """How one frame would come out; the spec's output and its start, end and rate mean nothing here."""

    kind: Literal["make_preview"] = "make_preview"
    spec: RenderSpec
    time_s: float = Field(ge=0, allow_inf_nan=False)


class SaveFace(_Message):
    """Make a face of photos of one person and keep it under a name.

    Attributes:
        face: Which face of each photo, from 1, left to right; `None` is the one that is clearly meant.
    """

    kind: Literal["save_face"] = "save_face"
    name: str
    photos: tuple[Path, ...] = Field(min_length=1, max_length=64)
    face: int | None = Field(default=None, ge=1)
    consent: ConsentBasis


class FaceSeen(_Message):
    """One face of a photo.

    Attributes:
        number: From 1, left to right, ties top to bottom.
        thumbnail: A JPEG.
    """

    number: int
    bbox_xyxy: Box
    thumbnail: bytes


class FacesSeen(_Message):
    """The faces of a photo.

    Attributes:
        meant: The one that a job takes when nobody chooses; `None` where nobody can know, or there is none.
    """

    kind: Literal["faces_seen"] = "faces_seen"
    size_wh: tuple[int, int]
    faces: tuple[FaceSeen, ...]
    meant: int | None


class PlaceSeen(_Message):
    """Where a person was at a time."""

    time_s: float
    bbox_xyxy: Box


class PersonSeen(_Message):
    """One person of a picture or video; as `app.faces.person.Person`, the thumbnail as a JPEG."""

    number: int
    thumbnail: bytes
    first_s: float
    last_s: float
    share: float
    size_range_px: tuple[float, float]
    places: tuple[PlaceSeen, ...]


class PeopleSeen(_Message):
    """Everybody who was found.

    Attributes:
        likeness: Row and column a person each: the cosine of their two most similar views; on the diagonal that of a
            person's two least similar ones, 1 where there is only one.
    """

    kind: Literal["people_seen"] = "people_seen"
    size_wh: tuple[int, int]
    duration_s: float | None
    people: tuple[PersonSeen, ...]
    likeness: tuple[tuple[float, ...], ...]


class PreviewMade(_Message):
    """One frame as it would come out, labeled like every result.

    Attributes:
        picture: A JPEG.
        time_s: Of the frame that was taken.
    """

    kind: Literal["preview_made"] = "preview_made"
    picture: bytes
    time_s: float
    faces_swapped: int


class FaceKept(_Message):
    """The face is in the library."""

    kind: Literal["face_kept"] = "face_kept"
    id: str


class Working(_Message):
    """The engine is at it, or waits for its turn."""

    kind: Literal["working"] = "working"
    share: float


class Refused(_Message):
    """The call has failed."""

    kind: Literal["refused"] = "refused"
    code: str
    message: str


Call = FindFaces | FindPeople | MakePreview | SaveFace
Answer = FacesSeen | PeopleSeen | PreviewMade | FaceKept
Said = Answer | Working | Refused

_CALLS: TypeAdapter[Call] = TypeAdapter(Annotated[Call, Field(discriminator="kind")])
_SAID: TypeAdapter[Said] = TypeAdapter(Annotated[Said, Field(discriminator="kind")])


def send(connection: socket.socket, message: Call | Said) -> None:
    """Send one message.

    Raises:
        OSError: The other end is gone, or takes nothing within the socket's timeout.
    """
    body = message.model_dump_json().encode()
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive_call(connection: socket.socket) -> Call:
    """Receive what is asked.

    Raises:
        MessageError: It is no call.
        OSError: Nothing comes within the socket's timeout.
    """
    return _parsed(_CALLS, _received(connection, MAX_CALL_BYTES))


def receive_said(connection: socket.socket) -> Said:
    """Receive what an engine says.

    Raises:
        MessageError: It is nothing that an engine says, or the engine is gone.
        OSError: Nothing comes within the socket's timeout.
    """
    return _parsed(_SAID, _received(connection, MAX_ANSWER_BYTES))


def _parsed(kind: TypeAdapter[T], body: bytes) -> T:
    try:
        return kind.validate_json(body)
    except ValidationError as error:
        raise MessageError("the message is none of those that are known here") from error


def _received(connection: socket.socket, max_bytes: int) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > max_bytes:
        raise MessageError(f"the message has {length} bytes, at most {max_bytes} are taken")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    got = bytearray()
    while len(got) < length:
        part = connection.recv(min(_RECEIVE_BYTES, length - len(got)))
        if not part:
            raise MessageError(f"the other end is gone after {len(got)} of {length} bytes")
        got += part
    return bytes(got)

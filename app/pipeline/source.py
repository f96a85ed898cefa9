"""Photos become the face to put on; the content gate sees them first."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import MediaError
from app.core.picture import Picture
from app.faces.people import IdentityBuilder
from app.media.still import read_still
from app.pipeline.recent import MadeFace
from app.pipeline.tools import Tools
from app.safety.gate import LOOK_SIDE_PX, GateWatch


def source_identity(
    photos: tuple[Path, ...], tools: Tools, *, label: str = "source", face: int | None = None
) -> MadeFace:
    """Read the photos of the face to put on, let the gate look at them, and make an identity.

    The same photos, asked for again soon, are not looked at again.

    Args:
        photos: One or more, of one person.
        tools: The networks.
        label: What errors and notices call the face.
        face: Which face of each photo, from 1, left to right; `None` is the one that is clearly meant.

    Raises:
        MediaError: A photo cannot be read.
        IntimateContentError: The gate refuses a photo.
        FaceError: A photo shows no face, or several; or the photos show different people.
    """

    def make() -> MadeFace:
        builder = IdentityBuilder(tools.still_detector, tools.landmarker, tools.recognizer)
        return builder.build(_gated_photos(photos, tools, label), label=label, face=face)

    return tools.recent_faces.get(photos, label, face, make)


def _gated_photos(photos: tuple[Path, ...], tools: Tools, label: str) -> Iterator[Picture]:
    """One photo after the other: large ones need not lie in memory together."""
    watch = GateWatch(tools.gate, "source")
    for number, photo in enumerate(photos, start=1):
        with role_told(f"photo {number} of the {label}"):
            picture = read_still(photo, tools.limits).picture
        watch.add(picture.thumbnail(LOOK_SIDE_PX)[0])
        yield picture
    watch.finish()


@contextmanager
def role_told(role: str) -> Iterator[None]:
    """Say which of a job's files an error is about; a path would say too much.

    Raises:
        MediaError: The same, with the file's role before its message.
    """
    try:
        yield
    except MediaError as error:
        raise type(error)(f"{role}: {error.message}") from error

"""Answers short calls with the tools of this process, as `app.runtime.executor` renders jobs with them."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from app.core.errors import Cancelled, MediaNotFoundError
from app.core.picture import Picture, PixelBox
from app.core.types import Face, FloatArray
from app.faces.people import IdentityBuilder
from app.faces.person import Person
from app.jobs.face_library import FaceLibrary
from app.media.preview import jpeg_of
from app.media.still import read_still
from app.pipeline.people import PeopleFound, find_people
from app.pipeline.plan import open_plan
from app.pipeline.preview import SUFFIX, FrameTarget, opened_frame
from app.pipeline.source import source_identity
from app.pipeline.spec import RenderSpec
from app.pipeline.tools import Tools
from app.runtime.calls import (
    Answer,
    Box,
    Call,
    FaceKept,
    FaceSeen,
    FacesSeen,
    FindFaces,
    FindPeople,
    PeopleSeen,
    PersonSeen,
    PlaceSeen,
    PreviewMade,
    SaveFace,
)
from app.runtime.runner import run_serial

_THUMBNAIL_PX = 192
_THUMBNAIL_MARGIN = 0.35


class LocalDesk:
    """Answers one call after the other.

    Args:
        tools: Networks, processors and limits; shared with the jobs of this process.
        scratch: Where previews lie for the moment between their label and their answer.
        library: Where faces are kept.
    """

    def __init__(self, tools: Tools, scratch: Path, library: FaceLibrary) -> None:
        self._tools = tools
        self._scratch = scratch
        self._library = library
        # Of the last file only: whoever looks at one frame looks at the next one of it.
        self._found: tuple[_Version, PeopleFound] | None = None

    def answer(
        self, call: Call, *, on_progress: Callable[[float], None], should_stop: Callable[[], bool]
    ) -> Answer:
        """Do what is asked; see `app.runtime.endpoint.Desk`."""

        def on_share(share: float) -> None:
            on_progress(share)
            if should_stop():
                raise Cancelled("called off")

        if isinstance(call, FindFaces):
            return self._faces(call.path)
        if isinstance(call, FindPeople):
            return self._people(call.path, on_share)
        if isinstance(call, SaveFace):
            return self._save(call, on_share)
        return self._preview(call.spec, call.time_s, on_share)

    def _faces(self, path: Path) -> FacesSeen:
        tools = self._tools
        picture = read_still(path, tools.limits).picture
        builder = IdentityBuilder(tools.still_detector, tools.landmarker, tools.recognizer)
        faces, meant = builder.faces(picture)
        seen = tuple(
            FaceSeen(number=number, bbox_xyxy=_box(face.bbox_xyxy), thumbnail=_cut(picture, face))
            for number, face in enumerate(faces, start=1)
        )
        number = next((n for n, face in enumerate(faces, start=1) if face is meant), None)
        return FacesSeen(size_wh=picture.size_wh, faces=seen, meant=number)

    def _people(self, path: Path, on_share: Callable[[float], None]) -> PeopleSeen:
        found = self._people_of(path, self._tools, on_share=on_share)
        return PeopleSeen(
            size_wh=found.size_wh,
            duration_s=found.duration_s or None,
            people=tuple(_person_seen(person) for person in found.people),
            likeness=likeness([person.normed_embeddings for person in found.people]),
        )

    def _people_of(
        self, path: Path, tools: Tools, *, on_share: Callable[[float], None]
    ) -> PeopleFound:
        version = _version_of(path)
        if self._found is None or self._found[0] != version:
            self._found = version, find_people(path, tools, on_progress=on_share)
        return self._found[1]

    def _save(self, call: SaveFace, on_share: Callable[[float], None]) -> FaceKept:
        identity, _ = source_identity(call.photos, self._tools, label="face", face=call.face)
        # Nobody who has hung up finds a face saved that they do not know of.
        on_share(0.9)
        return FaceKept(id=self._library.add(call.name, identity, consent=call.consent).id)

    def _preview(
        self, spec: RenderSpec, time_s: float, on_share: Callable[[float], None]
    ) -> PreviewMade:
        on_share(0.0)
        with tempfile.TemporaryDirectory(prefix="preview-", dir=self._scratch) as folder:
            output = Path(folder) / f"preview{SUFFIX}"
            asked = spec.model_copy(update={"output": output})
            opened: list[FrameTarget] = []
            opens = partial(opened_frame, time_s=time_s, on_open=opened.append)
            faces_swapped = 0
            finds_people = partial(self._people_of, on_share=on_share)
            with open_plan(
                asked, self._tools, opens_target=opens, finds_people=finds_people
            ) as plan:
                for window in run_serial(plan.windows(), plan.stages):
                    on_share(0.9)
                    for frame in window:
                        faces_swapped += frame.faces_swapped
                        plan.sink.write(frame)
            return PreviewMade(
                picture=output.read_bytes(),
                time_s=opened[0].time_s,
                faces_swapped=faces_swapped,
            )


_Version = tuple[Path, int, int]


def _version_of(path: Path) -> _Version:
    """Names a file and what is in it."""
    try:
        status = path.stat()
    except OSError as error:
        raise MediaNotFoundError("the file is not there (any more)") from error
    return path, status.st_mtime_ns, status.st_size


def likeness(people: Sequence[FloatArray]) -> tuple[tuple[float, ...], ...]:
    """How much people look like each other.

    Args:
        people: For each person the embeddings of some views, `(k, 128)`, rows of unit length.

    Returns:
        A row and a column a person: the cosine of their two most similar views; on the diagonal that of the person's
        own two least similar ones.
    """
    return tuple(
        tuple(_cosine(a, b, is_same=i == j) for j, b in enumerate(people))
        for i, a in enumerate(people)
    )


def _cosine(a: FloatArray, b: FloatArray, *, is_same: bool) -> float:
    cosines = a @ b.T
    return round(float(np.min(cosines) if is_same else np.max(cosines)), 4)


def _person_seen(person: Person) -> PersonSeen:
    return PersonSeen(
        number=person.number,
        thumbnail=jpeg_of(person.thumbnail),
        first_s=round(person.first_s, 3),
        last_s=round(person.last_s, 3),
        share=round(person.share, 4),
        size_range_px=person.size_range_px,
        places=tuple(
            PlaceSeen(time_s=round(place.time_s, 3), bbox_xyxy=_box(place.bbox_xyxy))
            for place in person.places
        ),
    )


def _box(bbox_xyxy: FloatArray) -> Box:
    x0, y0, x1, y1 = (round(float(value), 1) for value in bbox_xyxy)
    return x0, y0, x1, y1


def _cut(picture: Picture, face: Face) -> bytes:
    """A square around a face, as far as the picture goes."""
    x0, y0, x1, y1 = (float(value) for value in face.bbox_xyxy)
    half = max(x1 - x0, y1 - y0) * (0.5 + _THUMBNAIL_MARGIN)
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    box = PixelBox(round(x - half), round(y - half), round(x + half), round(y + half))
    box = box.clipped_to(picture.size_wh)
    scale = min(1.0, _THUMBNAIL_PX / max(box.size_wh))
    w, h = (max(1, round(side * scale)) for side in box.size_wh)
    return jpeg_of(picture.read(box, (w, h)))

"""Workbench: the same work here and now, on files of this machine, without a queue.

`Studio` is the facade of the page and the API, whose jobs survive restarts; this one is that of the command line and
of scripts, where whoever asked waits for the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import UnwritableOutputError
from app.core.types import Face, Identity, Notice
from app.media.info import MediaInfo
from app.media.preview import first_picture, jpeg_of
from app.media.probe import probe
from app.pipeline.people import OnShare, PeopleFound, find_people_of_all
from app.pipeline.progress import Progress, RenderResult
from app.pipeline.source import source_identity
from app.pipeline.spec import RenderSpec
from app.pipeline.tools import Tools
from app.runtime.executor import LocalExecutor
from app.runtime.occupancy import WorkClock


@dataclass(frozen=True, kw_only=True, slots=True)
class FacesFound:
    """The faces of one picture, left to right, ties top to bottom.

    Attributes:
        size_wh: Of the upright picture; boxes and points are in its pixels.
    """

    size_wh: tuple[int, int]
    faces: tuple[Face, ...]

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "size_wh": list(self.size_wh),
            "faces": [
                {
                    "bbox_xyxy": [round(float(value), 2) for value in face.bbox_xyxy],
                    "det_score": round(face.det_score, 4),
                    "kps": [[round(float(x), 2), round(float(y), 2)] for x, y in face.kps],
                }
                for face in self.faces
            ],
        }


class Workbench:
    """Works on files at once.

    Args:
        tools: Networks, processors and limits.
        device: Counts the time in which the networks run.
    """

    def __init__(self, tools: Tools, device: WorkClock | None = None) -> None:
        self._tools = tools
        self._executor = LocalExecutor(tools, device)

    def render(
        self,
        spec: RenderSpec,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> RenderResult:
        """Make the output of a spec and wait for it.

        Raises:
            AppError: Whatever is wrong; nothing is left behind.
        """
        return self._executor.render(spec, on_progress=on_progress, should_stop=should_stop)

    def probe(self, path: Path) -> MediaInfo:
        """What a file is.

        Raises:
            MediaError: It is none of the kinds that we read.
        """
        return probe(path, self._tools.limits)

    def make_face(
        self, photos: Sequence[Path], *, face: int | None = None
    ) -> tuple[Identity, tuple[Notice, ...]]:
        """Make a face to put on, or to save, of photos of one person; the content gate sees them first.

        Args:
            photos: One or more.
            face: Which face of each photo, from 1, left to right; `None` is the one that is clearly meant.

        Raises:
            AppError: A photo cannot be used.
        """
        return source_identity(tuple(photos), self._tools, label="face", face=face)

    def find_faces(self, path: Path) -> FacesFound:
        """Find the faces of a picture, or of a video's first frame.

        Raises:
            MediaError: The file cannot be read.
        """
        picture = first_picture(path, self._tools.limits)
        return FacesFound(size_wh=picture.size_wh, faces=self._tools.faces_of(picture))

    def find_people(self, *paths: Path, on_progress: OnShare = lambda _: None) -> PeopleFound:
        """Find the people of a still or a video, or of several files, each person once.

        Raises:
            MediaError: A file cannot be read.
        """
        return find_people_of_all(paths, self._tools, on_progress=on_progress)

    def write_cards(self, found: PeopleFound, folder: Path) -> tuple[Path, ...]:
        """Write a small picture of each person, `person_1.jpg` and so on.

        Raises:
            UnwritableOutputError: The folder is closed to us.
        """
        names = [folder / f"person_{person.number}.jpg" for person in found.people]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, person in zip(names, found.people, strict=True):
                name.write_bytes(jpeg_of(person.thumbnail))
        except OSError as error:
            raise UnwritableOutputError(
                f"the folder for the cards cannot be written: {error.strerror}; name another one"
            ) from error
        return tuple(names)

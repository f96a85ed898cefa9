"""What uploads show: the faces of a photo, the people of a picture or video; asked of an engine once, then kept."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from app import __version__
from app.core.errors import NotFoundError, OutputError, UnsupportedTypeError
from app.jobs.job import MediaId
from app.jobs.lease import new_token
from app.jobs.library import MediaLibrary, storage_errors_told
from app.pipeline.spec import RenderSpec
from app.runtime.calls import FacesSeen, PeopleSeen, PreviewMade, SaveFace

logger = logging.getLogger(__name__)

SeenT = TypeVar("SeenT", bound=BaseModel)


def never() -> bool:
    """Nobody calls it off."""
    return False


class Engine(Protocol):
    """Answers short calls; `app.runtime.caller.EngineCaller` is the real one."""

    def find_faces(self, path: Path) -> FacesSeen:
        """Which faces a photo shows."""
        ...

    def find_people(self, path: Path, *, should_stop: Callable[[], bool]) -> PeopleSeen:
        """Who appears in a picture or video."""
        ...

    def make_preview(
        self, spec: RenderSpec, time_s: float, *, should_stop: Callable[[], bool]
    ) -> PreviewMade:
        """How one frame would come out."""
        ...

    def save_face(self, call: SaveFace) -> str:
        """Make a face of photos and keep it; gives its id."""
        ...


class Lookout:
    """Looks at uploads; safe to use from any thread.

    What was seen lies beside the upload and goes with it. It holds small pictures and places, and no embedding.
    """

    def __init__(self, library: MediaLibrary, engine: Engine) -> None:
        self._library = library
        self._engine = engine

    def find_faces(self, media_id: MediaId) -> FacesSeen:
        """Look which faces a photo shows, unless that is known.

        Raises:
            NotFoundError: No upload has this id.
            UnsupportedTypeError: It is a video.
            EngineNotRunningError: There is no engine, or it died over this.
            EngineBusyError: It has too much to do.
            MediaError: It cannot be read after all.
        """
        if self._library.item(media_id).kind != "still":
            raise UnsupportedTypeError("faces are counted in photos, and this is a video")
        return self._kept(media_id, FacesSeen) or self._keep(
            media_id, self._engine.find_faces(self._library.path(media_id))
        )

    def find_people(
        self, media_id: MediaId, *, should_stop: Callable[[], bool] = never
    ) -> PeopleSeen:
        """Look who appears in a picture or video, unless that is known; of a long video this takes a while.

        Args:
            media_id: The upload.
            should_stop: Asked a few times a second.

        Raises:
            Cancelled: `should_stop` said so.
            AppError: As `find_faces`; videos are welcome.
        """
        path = self._library.path(media_id)
        return self._kept(media_id, PeopleSeen) or self._keep(
            media_id, self._engine.find_people(path, should_stop=should_stop)
        )

    def known_faces(self, media_id: MediaId) -> FacesSeen:
        """What `find_faces` has found.

        Raises:
            NotFoundError: No upload has this id, or nobody has looked yet.
        """
        return self._known(media_id, FacesSeen)

    def known_people(self, media_id: MediaId) -> PeopleSeen:
        """What `find_people` has found.

        Raises:
            NotFoundError: No upload has this id, or nobody has looked yet.
        """
        return self._known(media_id, PeopleSeen)

    def preview(
        self, spec: RenderSpec, time_s: float, *, should_stop: Callable[[], bool] = never
    ) -> PreviewMade:
        """How the frame at a time would come out, labeled; nothing of it is kept.

        Raises:
            Cancelled: `should_stop` said so.
            AppError: What a job of this spec would end with, or as `find_faces`.
        """
        return self._engine.make_preview(spec, time_s, should_stop=should_stop)

    def _known(self, media_id: MediaId, kind: type[SeenT]) -> SeenT:
        seen = self._kept(media_id, kind)
        if seen is None:
            raise NotFoundError("nobody has looked at this upload yet; ask with POST")
        return seen

    def _kept(self, media_id: MediaId, kind: type[SeenT]) -> SeenT | None:
        try:
            return kind.model_validate_json(self._place(media_id, kind).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def _keep(self, media_id: MediaId, seen: SeenT) -> SeenT:
        kept = self._place(media_id, type(seen))
        part = kept.with_name(f"{new_token()}.part")
        try:
            with storage_errors_told():
                part.write_text(seen.model_dump_json())
                part.replace(kept)
        except OutputError as error:
            # Whoever asked gets the answer all the same; the next one has to ask again.
            logger.warning("what was seen of an upload could not be kept: %s", error.code)
        return seen

    def _place(self, media_id: MediaId, kind: type[BaseModel]) -> Path:
        # Another release may see more people, and its jobs count them in its own way.
        return self._library.companion(media_id, f"{kind.__name__}-{__version__}.json")

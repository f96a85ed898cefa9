"""Studio: everything that a door may ask for, in about a dozen methods.

Nothing in here or below it loads a network; jobs are only written down, an engine process runs them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path
from typing import BinaryIO

from app.catalog import ModelInfo, ModelShelf, ProcessorInfo, Readiness, processor_infos
from app.core.errors import (
    EngineNotRunningError,
    InUseError,
    JobNotFinishedError,
    MissingModelError,
    NotFoundError,
    UsageError,
)
from app.jobs.engines import EngineRegister
from app.jobs.face_library import FaceLibrary
from app.jobs.folders import DataFolders, remove_tree
from app.jobs.job import (
    Job,
    JobId,
    JobRequest,
    JobState,
    MediaId,
)
from app.jobs.lease import new_token
from app.jobs.library import MediaItem, MediaLibrary, Upload, storage_errors_told
from app.jobs.names import NamedFile, media_type, suffix_for
from app.jobs.store import JobStore
from app.lookout import Engine, Lookout, never
from app.ordering import OrderDesk, require_consent
from app.processors.base import ProcessorSpec
from app.runtime.calls import PreviewMade
from app.saved_faces import SavedFaces

_CHUNK_BYTES = 1 << 20
_MAX_KEY_LENGTH = 200

MakeThumbnail = Callable[[Path, int], bytes]
"""From a file and the longest side in pixels to a JPEG; of a video, something within its first second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StudioParts:
    """What a Studio is wired of, in `bootstrap`.

    Attributes:
        processors: By id.
        models: Known and installed ones.
        thumbnail: Makes small pictures of uploads.
        engine: Answers short calls.
        max_queued_jobs: Jobs that may wait.
    """

    folders: DataFolders
    store: JobStore
    library: MediaLibrary
    engines: EngineRegister
    processors: Mapping[str, ProcessorSpec]
    models: ModelShelf
    thumbnail: MakeThumbnail
    engine: Engine
    max_queued_jobs: int = 100


class Studio:
    """The facade; safe to call from any thread."""

    def __init__(self, parts: StudioParts) -> None:
        self._parts = parts
        self._lookout = Lookout(parts.library, parts.engine)
        faces = FaceLibrary(parts.folders.faces)
        self._saved_faces = SavedFaces(
            faces, parts.library, parts.engine, is_needed=parts.store.needs_face
        )
        self._orders = OrderDesk(
            parts.folders,
            parts.library,
            self._saved_faces,
            processors=parts.processors,
            models=parts.models,
        )

    @property
    def lookout(self) -> Lookout:
        """Sees who is on uploads."""
        return self._lookout

    @property
    def saved_faces(self) -> SavedFaces:
        """Faces that are kept to be put on again."""
        return self._saved_faces

    # What there is.

    def processors(self) -> tuple[ProcessorInfo, ...]:
        """All processors, in the order in which they run."""
        return processor_infos(self._parts.processors.values(), self._parts.models.installed)

    def models(self) -> tuple[ModelInfo, ...]:
        """All known models, in the manifest's order, and whether each is installed."""
        return self._parts.models.infos()

    def readiness(self) -> Readiness:
        """Whether a job handed in now would run, and if not, why."""
        engines = self._parts.engines.all()
        problems = []
        if not any(engine.is_alive and not engine.problem for engine in engines):
            problems = [engine.trouble for engine in engines if engine.trouble]
        if not any(engine.is_alive for engine in engines):
            problems.append(EngineNotRunningError.code)
        if not self._parts.models.is_set_up:
            problems.append(MissingModelError.code)
        return Readiness(
            is_ready=not problems, engines=engines, problems=tuple(dict.fromkeys(problems))
        )

    # Uploads.

    def add_media(self, stream: BinaryIO, name: str) -> MediaItem:
        """Receive a picture or video and look at it.

        Args:
            stream: Its bytes; read to the end, not closed.
            name: What its owner calls it.

        Raises:
            BadNameError: No file may be called this.
            RequestTooLargeError: Larger than may be uploaded.
            MediaError: No picture or video that can be used; nothing is kept.
            StorageFullError: The disk is full.
        """
        with self.receive_media(name) as upload:
            while chunk := stream.read(_CHUNK_BYTES):
                upload.write(chunk)
            return upload.keep()

    def receive_media(self, name: str) -> Upload:
        """Begin an upload whose bytes come piece by piece: `with` it, `write` them, then `keep` it.

        Raises:
            BadNameError: No file may be called this.
            StorageFullError: The disk is full.
        """
        return self._parts.library.receive(name)

    def media(self, media_id: MediaId) -> MediaItem:
        """What is known of an upload.

        Raises:
            NotFoundError: No upload has this id.
        """
        return self._parts.library.item(media_id)

    def media_file(self, media_id: MediaId) -> NamedFile:
        """An upload as a file to hand out.

        Raises:
            NotFoundError: No upload has this id.
        """
        item = self.media(media_id)
        return NamedFile(
            path=self._parts.library.path(media_id),
            name=item.name,
            media_type=media_type(suffix_for(item.container, item.name)),
        )

    def media_path(self, media_id: MediaId) -> Path:
        """Where an upload lies on this machine.

        Raises:
            NotFoundError: No upload has this id.
        """
        return self._parts.library.path(media_id)

    def thumbnail(self, media_id: MediaId, *, side_px: int = 320) -> bytes:
        """A small JPEG of an upload; of a video, something within its first second.

        Made on first request, and kept beside the upload.

        Raises:
            NotFoundError: No upload has this id.
            MediaError: It cannot be decoded after all.
        """
        kept = self._parts.library.companion(media_id, f"thumbnail_{side_px}.jpg")
        if kept.exists():
            return kept.read_bytes()
        jpeg = self._parts.thumbnail(self.media_path(media_id), side_px)
        part = kept.with_name(f"{new_token()}.part")
        with storage_errors_told():
            part.write_bytes(jpeg)
            part.replace(kept)
        return jpeg

    def delete_media(self, media_id: MediaId) -> None:
        """Forget an upload and all that was made from it, results excepted.

        Raises:
            NotFoundError: No upload has this id.
            InUseError: A job that waits or runs needs it.
        """
        self._parts.library.delete(media_id)

    # Jobs.

    def submit(self, request: JobRequest, *, idempotency_key: str | None = None) -> Job:
        """Accept a job; once this returns, it is never lost.

        Args:
            request: What to do; options are checked by each processor's own class, and what was left open is
                filled in, so that a later release does not change a waiting job.
            idempotency_key: Any text of the caller's; sent again with the same request, it gives the same job.

        Raises:
            ConsentRequiredError: The ground for using the faces is missing.
            UnknownProcessorError: No processor has this id.
            UsageError: An option is unknown or out of bounds.
            KeyReusedError: The key belongs to a different request.
            NotFoundError: No upload or saved face has one of the ids.
            UnsupportedTypeError: A source is no photo.
            QueueFullError: As many jobs wait as may wait.
        """
        require_consent(request)
        if idempotency_key is not None:
            if not 0 < len(idempotency_key) <= _MAX_KEY_LENGTH:
                raise UsageError(f"idempotency key: 1 to {_MAX_KEY_LENGTH} characters are taken")
            earlier = self.submitted_before(request, idempotency_key)
            if earlier is not None:
                return earlier
        new = self._orders.job(request, idempotency_key=idempotency_key)
        return self._parts.store.submit(new, max_queued=self._parts.max_queued_jobs)

    def submitted_before(self, request: JobRequest, idempotency_key: str) -> Job | None:
        """The job that this key and request gave before, if they did.

        Raises:
            KeyReusedError: The key belongs to a different request.
        """
        return self._parts.store.earlier(idempotency_key, request)

    def job(self, job_id: JobId) -> Job:
        """A snapshot of one job.

        Raises:
            JobNotFoundError: No job has this id.
        """
        return self._parts.store.job(job_id)

    def jobs(self, *, limit: int = 100) -> tuple[Job, ...]:
        """The newest jobs, newest first."""
        return self._parts.store.jobs(limit=limit)

    def watch(self, job_id: JobId, *, every_s: float = 0.25) -> Iterator[Job]:
        """Follow a job: a snapshot at once, one after every change, the final one last.

        Walking away stops nothing; watching again goes on from how things stand then.

        Raises:
            JobNotFoundError: No job has this id, or it was deleted meanwhile.
        """
        last: Job | None = None
        while last is None or not last.state.is_final:
            job = self.job(job_id)
            if job != last:
                yield job
            last = job
            if not job.state.is_final:
                time.sleep(every_s)

    def cancel(self, job_id: JobId) -> Job:
        """Ask a job to stop; a finished one stays as it is.

        Raises:
            JobNotFoundError: No job has this id.
        """
        return self._parts.store.cancel(job_id)

    def result(self, job_id: JobId) -> NamedFile:
        """The file that a job has made.

        Raises:
            JobNotFoundError: No job has this id.
            JobNotFinishedError: It has no result, or not yet.
        """
        job = self.job(job_id)
        if job.state is not JobState.DONE:
            raise JobNotFinishedError(
                f"the job is {job.state.value}; only a job that is done has a result"
            )
        return NamedFile(
            path=job.spec.output,
            name=job.download_name,
            media_type=media_type(job.spec.output.suffix),
        )

    def delete_job(self, job_id: JobId, *, with_uploads: bool = False) -> None:
        """Forget a finished job and its result.

        Args:
            job_id: The job.
            with_uploads: Forget its uploads, too, those excepted that another job was made with.

        Raises:
            JobNotFoundError: No job has this id.
            InUseError: It waits or runs; cancel it first.
        """
        uploads = self._parts.store.job(job_id).request.inputs if with_uploads else ()
        self._parts.store.delete(job_id)
        remove_tree(self._parts.folders.results / job_id)
        for media_id in filterfalse(self._parts.store.is_input, uploads):
            # Somebody may have been quicker, or has just made the next job with it.
            with suppress(NotFoundError, InUseError):
                self._parts.library.delete(media_id)

    def preview(
        self, request: JobRequest, time_s: float, *, should_stop: Callable[[], bool] = never
    ) -> PreviewMade:
        """One frame of a job of this request; raises as `submit` and as `Lookout.preview`."""
        spec = self._orders.spec(request, self._parts.folders.scratch)
        return self._lookout.preview(spec, time_s, should_stop=should_stop)

"""What somebody asks for, checked and written out as a job: ids become files, options become complete."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog import ModelShelf, require_models
from app.core.errors import ConsentRequiredError, UnsupportedTypeError
from app.jobs.folders import DataFolders
from app.jobs.job import JobId, JobRequest, MediaId, NewJob
from app.jobs.lease import new_token
from app.jobs.library import MediaLibrary
from app.jobs.names import result_suffix, swapped_name
from app.pipeline.spec import ConsentBasis, RenderSpec, Step
from app.processors.base import ProcessorSpec, checked_options
from app.saved_faces import SavedFaces


class OrderDesk:
    """Turns requests into jobs.

    Args:
        folders: Where results go.
        library: Has the uploads.
        saved_faces: Has the faces that are kept.
        processors: By id.
        models: Known and installed ones.
    """

    def __init__(
        self,
        folders: DataFolders,
        library: MediaLibrary,
        saved_faces: SavedFaces,
        *,
        processors: Mapping[str, ProcessorSpec],
        models: ModelShelf,
    ) -> None:
        self._folders = folders
        self._library = library
        self._saved_faces = saved_faces
        self._processors = processors
        self._models = models

    def job(self, request: JobRequest, *, idempotency_key: str | None) -> NewJob:
        """A job of this request; raises as `spec`."""
        job_id = JobId(new_token())
        target = self._library.item(request.target)
        suffix = result_suffix(target.container, target.name, target.info)
        return NewJob(
            id=job_id,
            request=request,
            spec=self.spec(request, self._folders.results / job_id / f"result{suffix}"),
            download_name=swapped_name(target.name, suffix),
            idempotency_key=idempotency_key,
        )

    def spec(self, request: JobRequest, output: Path) -> RenderSpec:
        """What is to be made of a request.

        Args:
            request: What somebody asks for.
            output: Where it goes.

        Raises:
            ConsentRequiredError: The ground for using the faces is missing.
            UnknownProcessorError: No processor has this id.
            UsageError: An option is unknown or out of bounds.
            UnknownModelError: No model of the option's task has this id.
            MissingModelError: A model that is named is not installed.
            NotFoundError: No upload or saved face has one of the ids.
            UnsupportedTypeError: A source is no photo.
        """
        consent = require_consent(request)
        for face_id in request.face_map.saved_faces:
            self._saved_faces.face(face_id)
        return RenderSpec(
            sources=tuple(self._photo(source) for source in request.sources),
            target=self._library.path(request.target),
            output=output,
            consent=consent,
            steps=tuple(self._checked(step) for step in request.steps),
            face_map=request.face_map.with_photos(self._photo),
            encoding=request.encoding,
            timing=request.timing,
        )

    def _photo(self, media_id: MediaId) -> Path:
        if self._library.item(media_id).kind != "still":
            raise UnsupportedTypeError("the face to put on comes from photos, and this is a video")
        return self._library.path(media_id)

    def _checked(self, step: Step) -> Step:
        options = checked_options(self._processors, step.processor, step.options)
        require_models(options, self._models.known, is_installed=self._models.is_installed)
        return Step(processor=step.processor, options=options.model_dump(mode="json"))


def require_consent(request: JobRequest) -> ConsentBasis:
    """The ground on which the faces may be used.

    Raises:
        ConsentRequiredError: It is missing.
    """
    if request.consent is None:
        raise ConsentRequiredError(
            "consent: missing; say self, permission, fictional or public-domain"
        )
    return request.consent

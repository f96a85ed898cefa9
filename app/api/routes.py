"""The routes: each parses, asks Studio, shows."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse

from app.api.events import is_told_already, job_events
from app.api.face_routes import add_face_routes
from app.api.lookout_routes import add_lookout_routes
from app.api.options import ApiOptions
from app.api.schemas import (
    ErrorBody,
    HealthOut,
    JobList,
    JobOut,
    MediaOut,
    ModelList,
    ModelOut,
    ProcessorList,
    ProcessorOut,
    ReadyOut,
)
from app.api.uploads import receive_media
from app.core.errors import NotFoundError
from app.jobs.job import JobId, JobRequest, MediaId
from app.jobs.names import NamedFile
from app.service import Studio

_UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def api_routes(studio: Studio, options: ApiOptions) -> APIRouter:
    """Everything under `/api/v1`, behind one authorization."""
    router = APIRouter(
        prefix="/api/v1",
        dependencies=[Depends(options.authorize)],
        responses={"default": {"model": ErrorBody, "description": "Refused"}},
    )
    _add_media_routes(router, studio)
    add_lookout_routes(router, studio)
    add_face_routes(router, studio)
    _add_catalog_routes(router, studio)
    _add_job_routes(router, studio)
    _add_job_output_routes(router, studio, options)
    return router


def health_routes(studio: Studio) -> APIRouter:
    """For whoever keeps the process alive; they tell nothing private and need no login."""
    router = APIRouter()

    @router.get("/healthz")
    async def health() -> HealthOut:
        """The process answers."""
        return HealthOut()

    @router.get("/readyz", responses={503: {"model": ReadyOut}})
    def ready() -> Response:
        """Whether a job handed in now would run, and if not, why."""
        readiness = studio.readiness()
        body = ReadyOut.of(readiness).model_dump(mode="json")
        return JSONResponse(body, status_code=200 if readiness.is_ready else 503)

    return router


def _add_media_routes(router: APIRouter, studio: Studio) -> None:
    @router.post("/media", status_code=201, openapi_extra=_UPLOAD_BODY)
    async def upload_media(
        request: Request, name: Annotated[str, Query(description="of a raw body")] = "file"
    ) -> MediaOut:
        """Upload a picture or video: a form with one file, or the file as the body."""
        return MediaOut.of(await receive_media(request, studio, name=name))

    @router.get("/media/{media_id}")
    def get_media(media_id: MediaId) -> MediaOut:
        """What is known of an upload."""
        return MediaOut.of(studio.media(media_id))

    @router.head("/media/{media_id}/content", include_in_schema=False)
    @router.get("/media/{media_id}/content", response_class=FileResponse)
    def get_media_content(media_id: MediaId) -> FileResponse:
        """The upload itself; ranges are served."""
        return _file(studio.media_file(media_id))

    @router.get("/media/{media_id}/thumbnail", response_class=Response)
    def get_media_thumbnail(
        media_id: MediaId,
        side_px: Annotated[int, Query(ge=16, le=1024, description="longest side")] = 320,
    ) -> Response:
        """A small JPEG; of a video, something within its first second."""
        return Response(studio.thumbnail(media_id, side_px=side_px), media_type="image/jpeg")

    @router.delete("/media/{media_id}", status_code=204)
    def delete_media(media_id: MediaId) -> None:
        """Forget an upload; one that a job still needs is kept."""
        studio.delete_media(media_id)


def _add_catalog_routes(router: APIRouter, studio: Studio) -> None:
    @router.get("/processors")
    def list_processors() -> ProcessorList:
        """What can be done to a face, with the schema of each step's options."""
        return ProcessorList(processors=[ProcessorOut.of(info) for info in studio.processors()])

    @router.get("/models")
    def list_models() -> ModelList:
        """Known models, their terms, and whether each is installed."""
        return ModelList(models=[ModelOut.of(info) for info in studio.models()])


def _add_job_routes(router: APIRouter, studio: Studio) -> None:
    @router.post("/jobs", status_code=202, responses={200: {"model": JobOut}})
    def submit_job(
        body: JobRequest,
        response: Response,
        idempotency_key: Annotated[str | None, Header()] = None,
    ) -> JobOut:
        """Hand in a job; with an `Idempotency-Key`, sending it again gives the same job and 200."""
        if idempotency_key and studio.submitted_before(body, idempotency_key) is not None:
            response.status_code = 200
        job = JobOut.of(studio.submit(body, idempotency_key=idempotency_key))
        response.headers["Location"] = job.url
        return job

    @router.get("/jobs")
    def list_jobs(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> JobList:
        """The newest jobs, newest first."""
        return JobList(jobs=[JobOut.of(job) for job in studio.jobs(limit=limit)])

    @router.get("/jobs/{job_id}")
    def get_job(job_id: JobId) -> JobOut:
        """How a job stands."""
        return JobOut.of(studio.job(job_id))

    @router.post("/jobs/{job_id}/cancel", status_code=202)
    def cancel_job(job_id: JobId) -> JobOut:
        """Ask a job to stop; a finished one stays as it is."""
        return JobOut.of(studio.cancel(job_id))

    @router.delete("/jobs/{job_id}", status_code=204)
    def delete_job(
        job_id: JobId,
        uploads: Annotated[
            bool, Query(description="with its uploads, but for those of other jobs")
        ] = False,
    ) -> None:
        """Forget a finished job and its result."""
        studio.delete_job(job_id, with_uploads=uploads)


def _add_job_output_routes(router: APIRouter, studio: Studio, options: ApiOptions) -> None:
    @router.get("/jobs/{job_id}/events", response_class=StreamingResponse)
    def follow_job(
        job_id: JobId, last_event_id: Annotated[str | None, Header()] = None
    ) -> Response:
        """Server-sent events, each the whole job; connect again at any time."""
        job = studio.job(job_id)
        if is_told_already(job, last_event_id):
            # The one answer that stops a browser's EventSource from connecting again.
            return Response(status_code=204)
        return StreamingResponse(
            job_events(studio, job, options),
            media_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )

    @router.head("/jobs/{job_id}/result", include_in_schema=False)
    @router.get("/jobs/{job_id}/result", response_class=FileResponse)
    def get_job_result(job_id: JobId) -> FileResponse:
        """The finished file; ranges are served, so a cut download can be resumed."""
        return _file(studio.result(job_id))


def _file(file: NamedFile) -> FileResponse:
    """Always an attachment: pictures and videos of a page show all the same, and nothing else opens by itself."""
    if not file.path.is_file():
        raise NotFoundError("the file is no longer there")
    return FileResponse(
        file.path,
        media_type=file.media_type,
        filename=file.name,
        content_disposition_type="attachment",
    )

"""Who is on an upload, and how a frame would come out: short calls that wait for the engine."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.lookout_schemas import PeopleOut, PhotoFacesOut, PreviewRequest
from app.core.errors import NotFoundError
from app.jobs.job import JobRequest, MediaId
from app.runtime.stopping import StopFlag
from app.service import Studio

_LOOK_S = 0.25
_JPEG = "image/jpeg"

T = TypeVar("T")


def add_lookout_routes(router: APIRouter, studio: Studio) -> None:
    """Faces, people and previews."""
    _add_face_routes(router, studio)
    _add_people_routes(router, studio)
    _add_preview_route(router, studio)


def _add_face_routes(router: APIRouter, studio: Studio) -> None:
    @router.post("/media/{media_id}/faces")
    def find_faces(media_id: MediaId) -> PhotoFacesOut:
        """Look which faces a photo shows; asked again, the answer is there at once."""
        return PhotoFacesOut.of(studio.lookout.find_faces(media_id), media_id)

    @router.get("/media/{media_id}/faces")
    def get_faces(media_id: MediaId) -> PhotoFacesOut:
        """What an earlier look has found."""
        return PhotoFacesOut.of(studio.lookout.known_faces(media_id), media_id)

    @router.get("/media/{media_id}/faces/{number}/thumbnail", response_class=Response)
    def get_face_thumbnail(media_id: MediaId, number: int) -> Response:
        """One face of a photo, as a small JPEG."""
        return _thumbnail(studio.lookout.known_faces(media_id).faces, number)


def _add_people_routes(router: APIRouter, studio: Studio) -> None:
    @router.post("/media/{media_id}/people")
    async def find_people(media_id: MediaId, request: Request) -> PeopleOut:
        """Look who appears in a picture or video; hang up to call it off. Asked again, the answer is there at once."""
        seen = await _while_connected(
            request, lambda gone: studio.lookout.find_people(media_id, should_stop=gone)
        )
        return PeopleOut.of(seen, media_id)

    @router.get("/media/{media_id}/people")
    def get_people(media_id: MediaId) -> PeopleOut:
        """What an earlier look has found."""
        return PeopleOut.of(studio.lookout.known_people(media_id), media_id)

    @router.get("/media/{media_id}/people/{number}/thumbnail", response_class=Response)
    def get_person_thumbnail(media_id: MediaId, number: int) -> Response:
        """One person's best view, as a small JPEG."""
        return _thumbnail(studio.lookout.known_people(media_id).people, number)


def _add_preview_route(router: APIRouter, studio: Studio) -> None:
    @router.post("/preview", response_class=Response, responses={200: {"content": {_JPEG: {}}}})
    async def make_preview(body: PreviewRequest, request: Request) -> Response:
        """One frame as it would come out, a labeled JPEG; start, end and rate of the request mean nothing here."""
        asked = JobRequest(**{name: getattr(body, name) for name in JobRequest.model_fields})
        made = await _while_connected(
            request, lambda gone: studio.preview(asked, body.time_s, should_stop=gone)
        )
        headers = {
            "X-Faces-Swapped": str(made.faces_swapped),
            "X-Frame-Time": f"{made.time_s:.6f}",
        }
        return Response(made.picture, media_type=_JPEG, headers=headers)


class _Shown(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def thumbnail(self) -> bytes: ...


def _thumbnail(shown: Sequence[_Shown], number: int) -> Response:
    found = next((one for one in shown if one.number == number), None)
    if found is None:
        raise NotFoundError(f"there is no number {number} here, only 1 to {len(shown)}")
    return Response(found.thumbnail, media_type=_JPEG)


async def _while_connected(request: Request, work: Callable[[StopFlag], T]) -> T:
    """Work in a thread, and tell it when nobody waits for it any more."""
    gone = StopFlag()

    async def watch() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(_LOOK_S)
        gone.set()

    watching = asyncio.create_task(watch())
    try:
        return await run_in_threadpool(work, gone)
    finally:
        watching.cancel()

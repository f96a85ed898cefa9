"""Gradio brings routes that read, write and forward files; the page needs none of them, so nobody gets at them."""

from fastapi import FastAPI
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.errors import NotFoundError

# Uploads, files, proxy, streams, custom components, deep links, monitoring: nearly all of Gradio's published
# holes were in what this list leaves out.
_NEEDED = frozenset(
    {
        "/",
        "/config",
        "/theme.css",
        "/favicon.ico",
        "/robots.txt",
        "/gradio_api/queue/join",
        "/gradio_api/queue/data",
        "/gradio_api/cancel",
        "/gradio_api/reset",
    }
)
_NEEDED_FOLDERS = ("/assets/", "/static/", "/gradio_api/heartbeat/")


class NeededRoutesOnly:
    """Stands before the Gradio application and answers 404 for whatever the page does not ask for."""

    def __init__(self, gradio_app: ASGIApp) -> None:
        self._gradio_app = gradio_app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] == "http" and not is_needed(path):
            body = {"error": {"code": NotFoundError.code, "message": "there is nothing here"}}
            await JSONResponse(body, status_code=404)(scope, receive, send)
            return
        await self._gradio_app(scope, receive, send)


def is_needed(path: str) -> bool:
    """Whether the page asks for this path."""
    return path in _NEEDED or path.startswith(_NEEDED_FOLDERS)


def guard_mounted_gradio(app: FastAPI) -> None:
    """Put the guard before the Gradio application that was mounted last."""
    mount = app.routes[-1]
    if not isinstance(mount, Mount):
        raise TypeError(f"expected the mounted page as the last route, got {type(mount).__name__}")
    mount.app = NeededRoutesOnly(mount.app)

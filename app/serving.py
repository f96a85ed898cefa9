"""The web process: the API and the page on it."""

import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from app.api.app import create_app
from app.api.options import ApiOptions
from app.config import Settings
from app.runtime.stopping import StopFlag
from app.service import Studio
from app.ui.page import mount_page

_DRAIN_S = 5


class _Server(uvicorn.Server):
    """Tells the rest of the process of a signal at once, not after the last open stream has ended."""

    def __init__(self, config: uvicorn.Config, stopping: StopFlag) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called on SIGTERM and SIGINT."""
        self._stopping.set()
        super().handle_exit(sig, frame)


def serve_page(
    settings: Settings,
    studio: Studio,
    listening: socket.socket,
    stopping: StopFlag,
    *,
    announce: Callable[[str], None],
) -> None:
    """Serve until somebody stops the process.

    Args:
        settings: Limits and names.
        studio: What page and API ask.
        listening: The address, already taken.
        stopping: Set on a signal.
        announce: Told what to open in a browser.
    """
    options = ApiOptions(
        max_upload_bytes=settings.max_upload_bytes,
        allowed_hosts=settings.answered_hosts,
        is_stopping=stopping,
    )
    app = mount_page(create_app(studio, options), studio)
    config = uvicorn.Config(
        app,
        # Request lines hold ids of people's media; our own log says what matters.
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    announce(
        f"Open http://{_name_of(settings.host)}:{settings.port} in a browser; Ctrl+C stops FaceDock"
    )
    _Server(config, stopping).run(sockets=[listening])


def _name_of(host: str) -> str:
    """What to type into a browser for an address."""
    return "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host

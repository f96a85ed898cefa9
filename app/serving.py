"""Starts the web process: the API, the page on it, and the engine beside it."""

import logging
import socket

import uvicorn

from app import bootstrap
from app.api.app import create_app
from app.api.options import ApiOptions
from app.config import Settings
from app.core.errors import UsageError
from app.runtime.stopping import stop_when_asked
from app.ui.page import mount_page

logger = logging.getLogger(__name__)

_DRAIN_S = 5


def serve_page(settings: Settings) -> None:
    """Serve until somebody stops the process.

    Raises:
        UsageError: The address cannot be listened on.
    """
    listening = _listen(settings.host, settings.port)
    # The server raises the signal that ended it once more; unhandled, it would end us before the engine is told.
    with stop_when_asked(), bootstrap.studio(settings) as studio:
        app = create_app(
            studio,
            ApiOptions(
                max_upload_bytes=settings.max_upload_bytes, allowed_hosts=settings.answered_hosts
            ),
        )
        mount_page(app, studio)
        config = uvicorn.Config(
            app,
            # Request lines hold ids of people's media; our own log says what matters.
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        logger.warning("FaceDock is at http://%s:%d", _name_of(settings.host), settings.port)
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {host} port {port} ({error.strerror}); "
            "stop what uses it, or choose another one with --port"
        ) from error
    return listening


def _name_of(host: str) -> str:
    """What to type into a browser for an address."""
    return "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host

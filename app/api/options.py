"""What the HTTP API can be told by whoever starts it."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request


def allow_everyone(request: Request) -> None:
    """The authorization of a server that only its own machine can reach."""


def never() -> bool:
    """The server has no end that anybody knows of."""
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiOptions:
    """Limits and permissions of the HTTP API.

    Attributes:
        max_upload_bytes: Largest upload.
        max_body_bytes: Largest body of every other request.
        allowed_hosts: Host names that the server answers to, without port, in lower case; empty is any. A list stops
            DNS rebinding: a foreign page whose name suddenly points here.
        authorize: Runs before every route under `/api/v1`; raises an `AppError` to refuse. This is the one place where
            tokens and logins come in.
        poll_s: How often a stream of events looks for news.
        is_stopping: Asked by streams of events; once true, they end, so that the server need not wait for them.
    """

    max_upload_bytes: int = 4 << 30
    max_body_bytes: int = 1 << 20
    allowed_hosts: tuple[str, ...] = ()
    authorize: Callable[[Request], None] = allow_everyone
    poll_s: float = 0.25
    is_stopping: Callable[[], bool] = never

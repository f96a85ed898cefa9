"""What every request goes through before any route, the page's own routes included.

Written as plain ASGI: a stream of events or a large download passes untouched and unbuffered.
"""

import logging
import re
import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.options import ApiOptions
from app.api.problems import problem, problem_of
from app.core.errors import AppError, BadHostError, CrossSiteError

logger = logging.getLogger(__name__)

API_PREFIX = "/api/"
UPLOAD_PATH = "/api/v1/media"

# Around the file, a form has its boundaries and headers.
_FORM_ROOM_BYTES = 1 << 20

# The page sends ids and choices. What does not fit them is printed by its framework, whole.
_PAGE_BODY_BYTES = 64 << 10

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

# No script, no frame, no plugin runs from an answer of the API, even where somebody opens an upload in a tab.
_API_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cache-Control": "no-store",
}

# `same-origin`, not `no-referrer`: under the latter browsers send `Origin: null` with our own page's requests.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ResponseGuard:
    """Gives every request an id, every answer its security headers, and every surprise one form.

    The outermost guard. A request id of the client's is taken over when it is short and plain.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        defaults = _HEADERS | (_API_HEADERS if scope["path"].startswith(API_PREFIX) else {})
        is_started = False

        async def send_guarded(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in defaults.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_guarded)
        except ClientDisconnect:
            logger.debug("request %s: the client left", request_id)
        except Exception:
            logger.exception("request %s failed", request_id)
            if is_started:
                raise
            await problem(scope, AppError.code)(scope, receive, send_guarded)


class OriginGuard:
    """Refuses host names that are not ours, and changes asked for by another site's page."""

    def __init__(self, app: ASGIApp, options: ApiOptions) -> None:
        self._app = app
        self._allowed_hosts = frozenset(options.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] in ("http", "websocket"):
            try:
                self._check(scope)
            except AppError as error:
                await problem_of(scope, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._allowed_hosts and _host_name(host) not in self._allowed_hosts:
            raise BadHostError("the host name of this request is not on the list of allowed ones")
        if scope.get("method", "POST") not in _SAFE_METHODS and not _is_same_site(headers, host):
            raise CrossSiteError("another site's page asked for a change")


class BodyLimit:
    """Cuts a body off at the limit, while it arrives, whether or not its length was announced."""

    def __init__(self, app: ASGIApp, options: ApiOptions) -> None:
        self._app = app
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, its body watched."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope["path"])
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            await problem(scope, "request.too_large")(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # The one exception that body parsing does not turn into something else.
                raise HTTPException(413, f"the body is longer than {limit} bytes")
            return message

        await self._app(scope, receive_limited, send)

    def _limit(self, path: str) -> int:
        if path.rstrip("/") == UPLOAD_PATH:
            return self._options.max_upload_bytes + _FORM_ROOM_BYTES
        if path.startswith(API_PREFIX):
            return self._options.max_body_bytes
        return min(_PAGE_BODY_BYTES, self._options.max_body_bytes)


def _request_id(offered: str | None) -> str:
    if offered and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", offered):
        return offered
    return secrets.token_hex(8)


def _host_name(host: str) -> str:
    """A Host header without its port; an IPv6 address keeps its brackets."""
    return re.sub(r":\d+$", "", host).lower()


def _is_same_site(headers: Headers, host: str) -> bool:
    """Whether the request comes from our own page, or from no page at all.

    Browsers say so in `Sec-Fetch-Site` over https and on localhost; elsewhere only `Origin` tells.
    """
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == host.lower()

"""A client whose body never ends; the usual test client would collect all of it first."""

import asyncio

from starlette.types import ASGIApp, Message, Scope

MOST_CHUNKS = 1000


def ask_endlessly(
    app: ASGIApp, path: str, chunk: bytes, *, leave_after: int = MOST_CHUNKS
) -> tuple[int | None, int]:
    """POST the same chunk again and again, without saying how often.

    Returns:
        The status, `None` if no answer came, and how many bytes were taken.
    """
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
    taken, status = 0, None

    async def receive() -> Message:
        nonlocal taken
        if taken >= leave_after * len(chunk):
            return {"type": "http.disconnect"}
        taken += len(chunk)
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    asyncio.run(app(scope, receive, send))
    return status, taken

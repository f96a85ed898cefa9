"""The API on a real port, and a client that hangs up in mid-request."""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from app.api.app import create_app
from app.service import Studio


@contextmanager
def served(studio: Studio) -> Iterator[Callable[..., None]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(create_app(studio), host="127.0.0.1", port=port, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)

    def leave_after(path: str, *, seconds: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
        connection.request("POST", path)
        with suppress(TimeoutError):
            connection.getresponse()
        connection.close()

    try:
        yield leave_after
    finally:
        server.should_exit = True
        thread.join()

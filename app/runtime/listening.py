"""The address that the web process listens on, taken before anything costly starts."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.errors import UsageError


@contextmanager
def taken_address(host: str, port: int) -> Iterator[socket.socket]:
    """Bind an address, and let go of it in the end.

    Args:
        host: Name or address, of IPv4 or IPv6.
        port: 1 to 65535.

    Raises:
        UsageError: The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, port))
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host} port {port} ({error.strerror}); "
                "stop what uses it, or choose another one with --port (make run PORT=...)"
            ) from error
        yield taken

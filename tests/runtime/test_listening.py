import socket

import pytest

from app.core.errors import UsageError
from app.runtime.listening import taken_address


def test_an_address_is_taken_and_let_go() -> None:
    with taken_address("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        first.listen()
        with pytest.raises(UsageError, match=f"port {port}"), taken_address("127.0.0.1", port):
            pytest.fail("took a taken address")
    with taken_address("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_address_of_ipv6_is_taken_too() -> None:
    with taken_address("::1", 0) as taken:
        assert taken.family == socket.AF_INET6


def test_a_foreign_address_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="cannot listen"), taken_address("203.0.113.1", 80):
        pytest.fail("took an address of another machine")

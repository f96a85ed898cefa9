"""Settings come from the environment, and decide which host names are answered to."""

import pytest

from app.config import Settings

OWN = ("localhost", "127.0.0.1", "[::1]")


@pytest.mark.parametrize(
    ("host", "allowed", "answered"),
    [
        pytest.param("127.0.0.1", None, OWN, id="loopback answers to its own names"),
        pytest.param("::1", None, OWN, id="loopback of IPv6 too"),
        pytest.param("0.0.0.0", None, (), id="beyond loopback names are unknown"),
        pytest.param("0.0.0.0", "localhost, Studio.lan", ("localhost", "studio.lan"), id="a list"),
        pytest.param("127.0.0.1", "*", (), id="any"),
    ],
)
def test_host_names_are_answered_as_the_operator_says(
    host: str, allowed: str | None, answered: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if allowed is not None:
        monkeypatch.setenv("FACEDOCK_ALLOWED_HOSTS", allowed)
    assert Settings(host=host).answered_hosts == answered

"""A stranger's first minutes: clone, `make run`, a page; then the same again, quickly and without the network."""

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST_START_S = 900
SECOND_START_S = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("stranger") / "facedock"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def served(clone: Path, *, within_s: float, **environment: str) -> Iterator[str]:
    """Run the README's command until its page answers; stop it the way a terminal does."""
    port = free_port()
    command = ["make", "run", f"PORT={port}"]
    process = subprocess.Popen(
        command, cwd=clone, env={**os.environ, **environment}, start_new_session=True
    )
    try:
        yield wait_for_page(process, f"http://localhost:{port}", within_s)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)


def wait_for_page(process: subprocess.Popen[bytes], address: str, within_s: float) -> str:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        assert process.poll() is None, "`make run` ended by itself"
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5):
                return address
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"no page after {within_s} s")


def page_title(address: str) -> bool:
    with urllib.request.urlopen(address, timeout=30) as page:
        return b"FaceDock" in page.read()


@pytest.mark.slow
def test_make_run_serves_the_page_from_a_fresh_clone(clone: Path) -> None:
    with served(clone, within_s=FIRST_START_S) as address:
        assert page_title(address)


@pytest.mark.slow
def test_the_second_start_needs_no_package_index(clone: Path) -> None:
    offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    with served(clone, within_s=SECOND_START_S, **offline) as address:
        assert page_title(address)

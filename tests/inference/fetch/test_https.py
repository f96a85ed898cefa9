"""Downloads resume, are checked, and move on to the next address."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app.core.errors import DownloadError
from app.inference.fetch.https import HttpsDownloader
from app.inference.fetch.store import SourceStore
from app.inference.progress import PullProgress, ignore_progress
from app.inference.spec import HttpsSource

CONTENT = bytes(range(256)) * 4000


class Shelf(ThreadingHTTPServer):
    """Serves `CONTENT` in several ways, chosen by the path, and notes what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str | None]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Shelf

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.requests.append((self.path, asked))
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        match self.path:
            case "/whole":
                self._send(CONTENT[start:], start)
            case "/no-ranges":
                self._send(CONTENT, 0)
            case "/breaks-off":
                self._send(CONTENT[start:], start, sends=400_000)
            case "/always-stops":
                self._send(CONTENT[start:], start, sends=max(0, 400_000 - start))
            case "/changed":
                self._send(CONTENT[::-1][start:], start)
            case "/longer":
                self._send(CONTENT + b"!", 0)
            case "/elsewhere":
                self.send_response(302)
                self.send_header("Location", "ftp://127.0.0.1/whole")
                self.end_headers()
            case _:
                self.send_error(404)

    def _send(self, body: bytes, start: int, sends: int | None = None) -> None:
        self.send_response(206 if start else 200)
        if start:
            last = start + len(body) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{last + 1}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sends])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(tmp_path: Path) -> SourceStore:
    return SourceStore(tmp_path)


def source_at(*urls: str) -> HttpsSource:
    return HttpsSource(
        kind="https", urls=urls, sha256=hashlib.sha256(CONTENT).hexdigest(), bytes=len(CONTENT)
    )


def downloader(store: SourceStore) -> HttpsDownloader:
    return HttpsDownloader(store, schemes=("http",))


@pytest.mark.parametrize("path", ["whole", "no-ranges", "breaks-off"])
def test_a_download_ends_complete_and_checked(shelf: Shelf, store: SourceStore, path: str) -> None:
    source = source_at(shelf.url(path))
    downloader(store).fetch(source, ignore_progress)
    assert store.read(source) == CONTENT
    assert not store.part_path(source).exists()


def test_a_broken_download_goes_on_where_it_stopped(shelf: Shelf, store: SourceStore) -> None:
    downloader(store).fetch(source_at(shelf.url("breaks-off")), ignore_progress)
    assert [asked for _, asked in shelf.requests] == [None, "bytes=400000-", "bytes=800000-"]


@pytest.mark.parametrize(
    "path", ["whole", "no-ranges"], ids=["with ranges", "without ranges it begins anew"]
)
def test_what_an_earlier_process_left_is_used(shelf: Shelf, store: SourceStore, path: str) -> None:
    source = source_at(shelf.url(path))
    store.part_path(source).write_bytes(CONTENT[:1000])
    downloader(store).fetch(source, ignore_progress)
    assert shelf.requests == [(f"/{path}", "bytes=1000-")]
    assert store.read(source) == CONTENT


@pytest.mark.parametrize("bad", ["absent", "changed", "longer", "elsewhere"])
def test_the_next_address_is_tried(shelf: Shelf, store: SourceStore, bad: str) -> None:
    source = source_at(shelf.url(bad), shelf.url("whole"))
    downloader(store).fetch(source, ignore_progress)
    assert store.read(source) == CONTENT


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        pytest.param("absent", "404", id="absent"),
        pytest.param("changed", "sha256", id="wrong hash"),
        pytest.param("longer", "more than", id="too long"),
        pytest.param("always-stops", "ended 3 times after 400000", id="truncated for good"),
        pytest.param("elsewhere", "away from https", id="redirect to another scheme"),
    ],
)
def test_a_download_that_cannot_be_right_keeps_nothing(
    shelf: Shelf, store: SourceStore, path: str, complaint: str
) -> None:
    source = source_at(shelf.url(path))
    with pytest.raises(DownloadError, match=complaint):
        downloader(store).fetch(source, ignore_progress)
    assert source not in store


def test_progress_counts_up_to_the_whole(shelf: Shelf, store: SourceStore) -> None:
    told: list[PullProgress] = []
    downloader(store).fetch(source_at(shelf.url("whole")), told.append)
    done = [step.bytes_done for step in told]
    assert done == sorted(done)
    assert (done[-1], told[-1].bytes_total, told[-1].what) == (len(CONTENT), len(CONTENT), "whole")


def test_an_address_without_encryption_is_refused(shelf: Shelf, store: SourceStore) -> None:
    with pytest.raises(DownloadError, match="must begin with https"):
        HttpsDownloader(store).fetch(source_at(shelf.url("whole")), ignore_progress)
    assert shelf.requests == []


def test_nobody_at_home_is_a_download_error(store: SourceStore) -> None:
    with pytest.raises(DownloadError, match="no address gave it"):
        downloader(store).fetch(source_at("http://127.0.0.1:1/whole"), ignore_progress)

"""Downloads a file from an https address; an interrupted download goes on where it stopped."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from app.core.errors import DownloadError, ModelIntegrityError
from app.core.storage import is_full
from app.inference.fetch.store import SourceStore, source_name
from app.inference.progress import OnProgress, PullProgress
from app.inference.spec import HttpsSource

_BLOCK_BYTES = 1 << 18
_TIMEOUT_S = 30.0
_TRIES = 3


class _SameSchemeRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect that leaves https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if newurl.split(":", 1)[0] != req.type:
            raise urllib.error.HTTPError(newurl, code, "redirects away from https", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class HttpsDownloader:
    """Tries a source's addresses in turn."""

    def __init__(self, store: SourceStore, schemes: Sequence[str] = ("https",)) -> None:
        """Remember where to keep files.

        Args:
            store: Where finished files go and unfinished ones grow.
            schemes: What addresses may begin with.
        """
        self._store = store
        self._schemes = schemes
        self._opener = urllib.request.build_opener(_SameSchemeRedirect)

    def fetch(self, source: HttpsSource, on_progress: OnProgress) -> None:
        """Bring one file into the store.

        Raises:
            DownloadError: No address gave the right file; tells what each said.
        """
        complaints = []
        for url in source.urls:
            try:
                self._fetch_from(url, source, on_progress)
            except (
                OSError,
                http.client.HTTPException,
                ModelIntegrityError,
                DownloadError,
            ) as error:
                if isinstance(error, OSError) and is_full(error):
                    # No other address helps against a full disk.
                    raise
                complaints.append(f"{_host(url)}: {error}")
            else:
                return
        raise DownloadError(
            f"{source_name(source)}: no address gave it ({'; '.join(complaints)}); "
            "run the same command again when the network is back, it goes on where it stopped"
        )

    def _fetch_from(self, url: str, source: HttpsSource, on_progress: OnProgress) -> None:
        if url.split(":", 1)[0] not in self._schemes:
            raise DownloadError(f"address must begin with {self._schemes[0]}://")
        part = self._store.part_path(source)
        part.parent.mkdir(parents=True, exist_ok=True)
        tries = 0
        while _size(part) < source.bytes:
            before = _size(part)
            if tries == _TRIES:
                raise DownloadError(f"ended {tries} times after {before} of {source.bytes} bytes")
            self._append(url, part, source, on_progress)
            tries = 0 if _size(part) > before else tries + 1
        try:
            self._store.put(source, part.read_bytes())
        finally:
            part.unlink()

    def _append(self, url: str, part: Path, source: HttpsSource, on_progress: OnProgress) -> None:
        """Let the unfinished file grow by what one request gives."""
        start = _size(part)
        request = urllib.request.Request(url, headers={"User-Agent": "facedock"})
        if start:
            request.add_header("Range", f"bytes={start}-")
        with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
            resumes = answer.status == http.client.PARTIAL_CONTENT and _begins_at(answer, start)
            done = start if resumes else 0
            with part.open("ab" if resumes else "wb") as file:
                while block := answer.read(_BLOCK_BYTES):
                    done += len(block)
                    if done > source.bytes:
                        file.truncate(0)
                        raise DownloadError(f"gives more than the {source.bytes} bytes wanted")
                    file.write(block)
                    on_progress(_progress(source, done))


def _progress(source: HttpsSource, done: int) -> PullProgress:
    return PullProgress(
        phase="download", what=source_name(source), bytes_done=done, bytes_total=source.bytes
    )


def _begins_at(answer: http.client.HTTPResponse, start: int) -> bool:
    return (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _host(url: str) -> str:
    return url.split("://", 1)[-1].split("/", 1)[0]

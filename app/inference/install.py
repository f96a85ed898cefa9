"""Installs models: fetch, rewrite, prove, and only then put in place."""

import fcntl
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import (
    ConversionError,
    DownloadError,
    MissingModelError,
    ModelError,
    ModelIntegrityError,
    UnwritableOutputError,
)
from app.core.storage import storage_refusals
from app.inference.adopt import found_sources, has_sources
from app.inference.convert.build import Built, build
from app.inference.fetch.fetcher import Fetcher
from app.inference.fetch.store import SourceStore, source_name, write_atomically
from app.inference.inventory import Inventory, ModelStatus, how_to_get
from app.inference.manifest import Manifest
from app.inference.progress import OnProgress, PullProgress, ignore_progress
from app.inference.spec import ModelId, ModelSpec

_LOCK_POLL_S = 0.2

Build = Callable[[ModelSpec, Mapping[str, bytes]], Built]


class Installer:
    """Brings the models folder to what the manifest says."""

    def __init__(
        self,
        manifest: Manifest,
        models_dir: Path,
        *,
        fetcher: Fetcher | None = None,
        build: Build = build,
    ) -> None:
        """Remember where to install; nothing is touched yet.

        Args:
            manifest: The known models.
            models_dir: Where installed files go; sources wait in its folder `.sources`.
            fetcher: What brings the sources; it must keep them in that folder.
            build: Makes and proves an installed file of its sources.
        """
        self._manifest = manifest
        self._models_dir = models_dir
        self._inventory = Inventory(manifest, models_dir)
        self._store = SourceStore(models_dir / ".sources")
        self._fetcher = fetcher or Fetcher(self._store)
        self._build = build

    def status(self, model_id: ModelId) -> ModelStatus:
        """How a model stands; see `Inventory.status`."""
        return self._inventory.status(model_id)

    def statuses(self) -> tuple[ModelStatus, ...]:
        """All models of the manifest, in its order."""
        return self._inventory.statuses()

    def verify(self, ids: Iterable[ModelId] | None = None) -> tuple[ModelId, ...]:
        """Compare installed files with the manifest, byte for byte.

        Args:
            ids: Models to compare; all that have a file without it.

        Returns:
            The models that are right, in the order asked for.

        Raises:
            UnknownModelError: No entry has one of the ids.
            MissingModelError: One of the ids is not installed.
            ModelIntegrityError: Files are not the pinned ones; names them all.
        """
        wanted = self._present() if ids is None else list(ids)
        found = [self._inventory.examine(model_id) for model_id in wanted]
        if missing := [item.spec.id for item in found if item.state == "missing"]:
            names = " ".join(missing)
            raise MissingModelError(
                f"not installed: {names}; run `python -m app models pull {names}`"
            )
        if damaged := [item for item in found if item.state == "damaged"]:
            raise ModelIntegrityError("; ".join(f"{i.spec.file}: {i.detail}" for i in damaged))
        return tuple(wanted)

    def pull(
        self, ids: Iterable[ModelId], on_progress: OnProgress = ignore_progress
    ) -> tuple[ModelId, ...]:
        """Install what is missing or damaged; without network when nothing is.

        Two processes may pull at once: the second waits, and then has nothing left to do. A failure of one
        model does not keep the others from being installed.

        Args:
            ids: Models to install.
            on_progress: Called whenever there is something new to tell.

        Returns:
            The models that this call installed.

        Raises:
            UnknownModelError: No entry has one of the ids.
            DownloadError: A source could not be fetched; what was fetched is kept for the next try.
            ModelIntegrityError: A source is not the pinned one.
            ConversionError: A rewrite or its proof failed; that model is not installed.
            StorageFullError: The disk is full.
            UnwritableOutputError: The models folder is closed to us.
        """
        specs = [self._manifest.get(model_id) for model_id in dict.fromkeys(ids)]
        if not self._missing(specs):
            return ()
        with _storage_errors(), self._locked(on_progress):
            missing = self._missing(specs)
            self._install_all(missing, on_progress)
        return tuple(spec.id for spec in missing)

    def adoptable(self, folder: Path, ids: Iterable[ModelId]) -> tuple[ModelId, ...]:
        """Those of the models whose files, of whatever content, are in a folder.

        Raises:
            UnknownModelError: No entry has one of the ids.
        """
        specs = [self._manifest.get(model_id) for model_id in ids]
        return tuple(spec.id for spec in specs if has_sources(spec, folder))

    def adopt(
        self,
        folder: Path,
        ids: Iterable[ModelId],
        on_progress: OnProgress = ignore_progress,
        *,
        unpinned: bool = False,
    ) -> tuple[ModelId, ...]:
        """Install models from files that the operator has, rewritten and proven as after a download.

        Args:
            folder: Holds files under the names of the manifest's sources; it is only read.
            ids: Models to look for.
            on_progress: Called whenever there is something new to tell.
            unpinned: Take files that no hash, or another one, stands for: the operator vouches for them.

        Returns:
            The models whose files were found and are installed now.

        Raises:
            UnknownModelError: No entry has one of the ids.
            ModelIntegrityError: A file is not the pinned one, or nobody has pinned it, and `unpinned` is not set.
            ConversionError: A rewrite or its proof failed.
        """
        adopted = []
        with _storage_errors(), self._locked(on_progress):
            for spec in (self._manifest.get(model_id) for model_id in dict.fromkeys(ids)):
                sources = found_sources(spec, folder, unpinned=unpinned)
                if sources is not None:
                    self._install(spec, sources, on_progress, unpinned=unpinned)
                    adopted.append(spec.id)
        return tuple(adopted)

    def _present(self) -> list[ModelId]:
        return [item.spec.id for item in self.statuses() if item.state != "missing"]

    def _missing(self, specs: Iterable[ModelSpec]) -> list[ModelSpec]:
        return [spec for spec in specs if not self._inventory.status(spec.id).is_installed]

    def _install_all(self, specs: list[ModelSpec], on_progress: OnProgress) -> None:
        pending = list(specs)
        failures: list[ModelError] = []
        for spec in [spec for spec in pending if _is_brought(spec)]:
            pending.remove(spec)
            failures.append(DownloadError(f"{spec.id} is brought; run `{how_to_get(spec)}`"))
        sources = [source for spec in pending for source in spec.sources]
        try:
            for _ in self._fetcher.fetch(sources, on_progress):
                ready = [s for s in pending if all(source in self._store for source in s.sources)]
                pending = [spec for spec in pending if spec not in ready]
                for spec in ready:
                    try:
                        self._install(spec, self._stored(spec), on_progress)
                    except ModelError as error:
                        failures.append(error)
        except ModelError as error:
            failures.append(error)
        self._drop_sources(specs)
        if failures:
            raise failures[0]

    def _stored(self, spec: ModelSpec) -> dict[str, bytes]:
        return {source_name(source): self._store.read(source) for source in spec.sources}

    def _install(
        self,
        spec: ModelSpec,
        sources: Mapping[str, bytes],
        on_progress: OnProgress,
        *,
        unpinned: bool = False,
    ) -> None:
        on_progress(PullProgress(phase="convert", what=spec.id))
        built = self._build(spec, sources)
        sha256 = hashlib.sha256(built.content).hexdigest()
        if spec.sha256:
            _check_pinned(spec, sha256, len(built.content))
        write_atomically(self._models_dir / spec.file, built.content)
        self._inventory.keep_receipt(spec, sha256, why_single=built.why_single, unpinned=unpinned)
        on_progress(PullProgress(phase="done", what=spec.id))

    def _drop_sources(self, specs: Iterable[ModelSpec]) -> None:
        """Forget what nobody needs any more; a model that failed keeps its sources."""
        missing = self._missing(specs)
        needed = {source.sha256 for spec in missing for source in spec.sources}
        for spec in specs:
            for source in spec.sources:
                if source.sha256 and source.sha256 not in needed:
                    self._store.drop(source)

    @contextmanager
    def _locked(self, on_progress: OnProgress) -> Iterator[None]:
        """Be the only process that installs here; the kernel frees the lock of a process that dies."""
        self._models_dir.mkdir(parents=True, exist_ok=True)
        with (self._models_dir / ".lock").open("ab") as lock:
            if not _try_lock(lock.fileno()):
                on_progress(PullProgress(phase="wait"))
                while not _try_lock(lock.fileno()):
                    time.sleep(_LOCK_POLL_S)
            yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_brought(spec: ModelSpec) -> bool:
    return any(source.kind == "brought" for source in spec.sources)


def _check_pinned(spec: ModelSpec, got: str, size: int) -> None:
    """Refuse a rewritten file that is not the pinned one.

    Raises:
        ConversionError: The rewrite gave other bytes; tells the hash in full, for whoever adds an entry.
    """
    if (got, size) != (spec.sha256, spec.bytes):
        raise ConversionError(
            f"{spec.file}: the rewrite gave {size} bytes with sha256 {got}, "
            f"the manifest says {spec.bytes} bytes with {spec.sha256[:12]}; "
            "install the locked requirements, the rewrite depends on their versions"
        )


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Tell a full disk and a closed folder in our words."""
    full = "the disk that holds the models is full; free about 500 MB"
    with storage_refusals(_models_folder_refusal, full=full):
        yield


def _models_folder_refusal(error: OSError) -> UnwritableOutputError:
    return UnwritableOutputError(
        f"the models folder cannot be written ({error.strerror}); "
        "set FACEDOCK_MODELS_DIR to one that can, or change its owner"
    )

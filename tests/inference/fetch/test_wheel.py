"""Files come out of wheels that pip finds by the user's own configuration."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.core.errors import DownloadError, ModelError, ModelIntegrityError, StorageFullError
from app.inference.fetch.fetcher import Fetcher
from app.inference.fetch.store import SourceStore
from app.inference.progress import PullProgress, ignore_progress
from app.inference.spec import WheelSource
from tests.inference.conftest import MakeWheel

MEMBERS = {"tinymodels/a.bin": b"alpha", "tinymodels/b.bin": b"beta", "tinymodels/c.bin": b"unused"}


def source(name: str, content: bytes | None = None, **fields: str) -> WheelSource:
    data = MEMBERS[f"tinymodels/{name}"] if content is None else content
    return WheelSource(
        kind="wheel",
        requirement=fields.pop("requirement", "tinymodels==1.0"),
        member=f"tinymodels/{name}",
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        **fields,
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all the package index that pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_CONSTRAINT": "",
    }.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> SourceStore:
    return SourceStore(tmp_path / "store")


def left_in(store: SourceStore) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


def test_one_download_serves_all_members(
    index: Path, store: SourceStore, make_wheel: MakeWheel
) -> None:
    make_wheel(index, MEMBERS)
    told: list[PullProgress] = []
    wanted = [source("a.bin"), source("b.bin")]
    assert list(Fetcher(store).fetch(wanted, told.append)) == wanted
    assert [store.read(each) for each in wanted] == [b"alpha", b"beta"]
    assert left_in(store) == {each.sha256 for each in wanted}
    assert {step.what for step in told} == {"tinymodels==1.0"}


def test_what_is_in_the_store_needs_no_pip(store: SourceStore) -> None:
    wanted = source("a.bin")
    store.put(wanted, b"alpha")
    fetcher = Fetcher(store, pip=("/nonexistent/pip",))
    assert list(fetcher.fetch([wanted], ignore_progress)) == [wanted]


def test_a_wheel_for_another_python_and_machine_is_data_here(
    index: Path, store: SourceStore, make_wheel: MakeWheel
) -> None:
    make_wheel(index, MEMBERS, tag="cp38-cp38-manylinux_2_28_x86_64")
    wanted = source("a.bin", python_version="3.8", platform="manylinux_2_28_x86_64")
    assert list(Fetcher(store).fetch([wanted], ignore_progress)) == [wanted]


@pytest.mark.parametrize(
    ("wanted", "error", "complaint"),
    [
        pytest.param(source("a.bin", b"Alpha"), ModelIntegrityError, "sha256", id="changed"),
        pytest.param(source("a.bin", b"alph"), DownloadError, "has 5 bytes", id="other length"),
        pytest.param(source("d.bin", b"?"), DownloadError, "holds no", id="no such member"),
        pytest.param(
            source("a.bin", requirement="tinymodels==2.0"),
            DownloadError,
            "No matching distribution",
            id="no such version",
        ),
    ],
)
def test_a_wrong_wheel_is_refused(
    index: Path,
    store: SourceStore,
    make_wheel: MakeWheel,
    wanted: WheelSource,
    error: type[ModelError],
    complaint: str,
) -> None:
    make_wheel(index, MEMBERS)
    with pytest.raises(error, match=complaint):
        list(Fetcher(store).fetch([wanted], ignore_progress))
    assert left_in(store) == set()


def test_one_wrong_member_keeps_the_others(
    index: Path, store: SourceStore, make_wheel: MakeWheel
) -> None:
    make_wheel(index, MEMBERS)
    fetched = []
    with pytest.raises(ModelIntegrityError):
        for each in Fetcher(store).fetch(
            [source("a.bin", b"Alpha"), source("b.bin")], ignore_progress
        ):
            fetched.append(each)
    assert fetched == [source("b.bin")]


def test_a_truncated_wheel_is_refused(
    index: Path, store: SourceStore, make_wheel: MakeWheel
) -> None:
    wheel = make_wheel(index, MEMBERS)
    wheel.write_bytes(wheel.read_bytes()[:-200])
    with pytest.raises(DownloadError):
        list(Fetcher(store).fetch([source("a.bin")], ignore_progress))
    assert left_in(store) == set()


SAYINGS: Mapping[str, tuple[str, type[Exception], str]] = {
    "offline": (
        "WARNING: Retrying after NewConnectionError(...)\nERROR: No matching distribution",
        DownloadError,
        "seems to be offline",
    ),
    "no pip": ("python: No module named pip", DownloadError, "has no pip"),
    "full disk": ("ERROR: [Errno 28] No space left on device", StorageFullError, "is full"),
    "no word": ("", DownloadError, "ended without a word"),
}


@pytest.mark.parametrize("case", SAYINGS)
def test_what_pip_says_becomes_one_clear_sentence(store: SourceStore, case: str) -> None:
    says, error, complaint = SAYINGS[case]
    code = f"import sys; print({says!r}); sys.exit(1)"
    fetcher = Fetcher(store, pip=(sys.executable, "-c", code))
    with pytest.raises(error, match=complaint):
        list(fetcher.fetch([source("a.bin")], ignore_progress))


def test_leaving_early_stops_pip(store: SourceStore, tmp_path: Path) -> None:
    here = source("b.bin")
    store.put(here, b"beta")
    code = f"import time, pathlib; time.sleep(5); pathlib.Path({str(tmp_path / 'done')!r}).touch()"
    fetching = Fetcher(store, pip=(sys.executable, "-c", code)).fetch(
        [here, source("a.bin")], ignore_progress
    )
    assert next(fetching) == here
    fetching.close()  # type: ignore[attr-defined]
    assert left_in(store) == {here.sha256}
    assert not (tmp_path / "done").exists()


def test_what_a_killed_process_left_is_removed(
    index: Path, store: SourceStore, make_wheel: MakeWheel
) -> None:
    make_wheel(index, MEMBERS)
    (store.folder / "wheel-left").mkdir(parents=True)
    list(Fetcher(store).fetch([source("a.bin")], ignore_progress))
    assert left_in(store) == {source("a.bin").sha256}

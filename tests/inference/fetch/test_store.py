"""A stored source is complete and right, or it is not there."""

import hashlib
from pathlib import Path

import pytest

from app.core.errors import ModelIntegrityError
from app.inference.fetch.store import SourceStore, source_name, write_atomically
from app.inference.spec import FileSource, HttpsSource, Source, WheelSource

PINNED = {"sha256": hashlib.sha256(b"data").hexdigest(), "bytes": 4}
SOURCE = FileSource(kind="file", path="/somewhere/net.bin", sha256=PINNED["sha256"], bytes=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"dat", b"dada"], ids=["empty", "short", "changed"])
def test_wrong_content_is_not_kept(tmp_path: Path, content: bytes) -> None:
    store = SourceStore(tmp_path)
    with pytest.raises(ModelIntegrityError):
        store.put(SOURCE, content)
    assert SOURCE not in store
    assert list(tmp_path.iterdir()) == []


def test_content_that_changed_later_is_found_and_dropped(tmp_path: Path) -> None:
    store = SourceStore(tmp_path)
    store.put(SOURCE, b"data")
    (tmp_path / SOURCE.sha256).write_bytes(b"dada")
    with pytest.raises(ModelIntegrityError):
        store.read(SOURCE)
    assert SOURCE not in store


@pytest.mark.parametrize(
    "source",
    [
        SOURCE,
        WheelSource.model_validate(
            {"kind": "wheel", "requirement": "a==1", "member": "a/b/net.bin", **PINNED}
        ),
        HttpsSource.model_validate({"kind": "https", "urls": ("https://h/a/net.bin",), **PINNED}),
    ],
    ids=["file", "wheel", "https"],
)
def test_converters_find_a_source_by_its_own_name(source: Source) -> None:
    assert source_name(source) == "net.bin"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "file", "text")  # type: ignore[arg-type]
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

from pathlib import Path

import pytest

from app.core.errors import DamagedMediaError
from app.media.ebml import tag_values

HEAD = bytes.fromhex("1A45DFA380")
SEGMENT, TAGS, TAG, SIMPLE = "18538067", "1254C367", "7373", "67C8"
NAME, STRING, CLUSTER = "45A3", "4487", "1F43B675"


def element(id_hex: str, content: bytes = b"", size_bytes: int = 4) -> bytes:
    marker = 1 << 7 * size_bytes
    return bytes.fromhex(id_hex) + (marker | len(content)).to_bytes(size_bytes, "big") + content


def tag(name: str, value: str) -> bytes:
    pair = element(NAME, name.encode(), 1) + element(STRING, value.encode(), 8)
    return element(TAG, element(SIMPLE, pair, 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mkv"


def test_a_file_without_tags_has_no_value(path: Path) -> None:
    path.write_bytes(HEAD + element(SEGMENT))
    assert tag_values(path, "AIGC") == ()


def test_tags_are_found_whatever_their_case_and_however_often(path: Path) -> None:
    tags = tag("AIGC", "a") + tag("TITLE", "t") + tag("aigc", "b é")
    path.write_bytes(HEAD + element(SEGMENT, element(CLUSTER, bytes(30)) + element(TAGS, tags)))
    assert tag_values(path, "Aigc") == ("a", "b é")
    assert tag_values(path, "title") == ("t",)


def test_a_segment_of_unknown_length_is_read_to_the_end(path: Path) -> None:
    open_segment = bytes.fromhex(SEGMENT + "01FFFFFFFFFFFFFF")
    path.write_bytes(HEAD + open_segment + element(TAGS, tag("AIGC", "a")))
    assert tag_values(path, "AIGC") == ("a",)


def test_tags_before_a_cut_are_found(path: Path) -> None:
    whole = HEAD + element(SEGMENT, element(TAGS, tag("AIGC", "a")) + element(CLUSTER, bytes(99)))
    path.write_bytes(whole[:-50])
    assert tag_values(path, "AIGC") == ("a",)


@pytest.mark.parametrize(
    "tail", [pytest.param(b"\0", id="no id"), pytest.param(b"\x18\x53", id="half an id")]
)
def test_malformed_elements_are_damage(path: Path, tail: bytes) -> None:
    path.write_bytes(HEAD + tail)
    with pytest.raises(DamagedMediaError):
        tag_values(path, "AIGC")

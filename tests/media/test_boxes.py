import struct
from pathlib import Path

import pytest

from app.core.errors import DamagedMediaError, TruncatedMediaError
from app.media.boxes import XMP_UUID, append_xmp_box, metadata_values, xmp_boxes


def box(name: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def large_box(name: bytes, content: bytes = b"") -> bytes:
    """A box whose length is written with 64 bits."""
    return struct.pack(">I4sQ", 1, name, 16 + len(content)) + content


def metadata(*pairs: tuple[str, str], is_full_box: bool = True) -> bytes:
    """A `meta` box with `mdta` keys, as QuickTime (plain) or ISO (full box) writes it."""
    names = b"".join(box(b"mdta", key.encode()) for key, _ in pairs)
    values = b"".join(
        box(struct.pack(">I", number), box(b"data", struct.pack(">II", 1, 0) + value.encode()))
        for number, (_, value) in enumerate(pairs, 1)
    )
    content = (
        box(b"hdlr", bytes(24))
        + box(b"keys", struct.pack(">II", 0, len(pairs)) + names)
        + box(b"ilst", values)
    )
    return box(b"meta", (bytes(4) if is_full_box else b"") + content)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mp4"


def test_a_file_without_boxes_has_nothing(path: Path) -> None:
    path.write_bytes(b"")
    assert metadata_values(path, "AIGC") == ()
    assert xmp_boxes(path) == ()


@pytest.mark.parametrize("is_full_box", [True, False])
@pytest.mark.parametrize("is_in_udta", [True, False])
def test_values_are_found_where_muxers_put_them(
    path: Path, is_full_box: bool, is_in_udta: bool
) -> None:
    meta = metadata(("title", "t"), ("AIGC", "label é"), is_full_box=is_full_box)
    moov = box(b"moov", box(b"mvhd", bytes(20)) + (box(b"udta", meta) if is_in_udta else meta))
    path.write_bytes(box(b"ftyp", b"isom") + large_box(b"mdat", bytes(50)) + moov)
    assert metadata_values(path, "AIGC") == ("label é",)
    assert metadata_values(path, "title") == ("t",)
    assert metadata_values(path, "aigc") == ()


@pytest.mark.parametrize(
    "moov",
    [
        pytest.param(box(b"udta", metadata(("AIGC", "a"), ("AIGC", "b"))), id="two keys"),
        pytest.param(
            box(b"udta", metadata(("AIGC", "a"))) + metadata(("AIGC", "b")), id="two places"
        ),
    ],
)
def test_two_values_are_two(path: Path, moov: bytes) -> None:
    path.write_bytes(box(b"moov", moov))
    assert metadata_values(path, "AIGC") == ("a", "b")


def test_an_appended_packet_is_found_again(path: Path) -> None:
    before = box(b"ftyp", b"isom") + box(b"uuid", bytes(40)) + box(b"mdat")
    path.write_bytes(before)
    append_xmp_box(path, b"<x/>")
    append_xmp_box(path, b"<y/>")
    assert path.read_bytes().startswith(before)
    assert xmp_boxes(path) == (b"<x/>", b"<y/>")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"", DamagedMediaError, id="empty"),
        pytest.param(box(b"ftyp") + b"abc", DamagedMediaError, id="loose bytes"),
        pytest.param(b"\0\0\0\x07ftyp", DamagedMediaError, id="too short a length"),
        pytest.param(b"\0\0\1\0ftyp", TruncatedMediaError, id="cut box"),
        pytest.param(box(b"ftyp") + b"\0\0\0\0mdat1234", DamagedMediaError, id="open end"),
    ],
)
def test_nothing_is_appended_to_boxes_that_do_not_add_up(
    path: Path, content: bytes, error: type[Exception]
) -> None:
    path.write_bytes(content)
    with pytest.raises(error):
        append_xmp_box(path, b"<x/>")
    assert path.read_bytes() == content


def test_a_uuid_box_of_somebody_else_is_no_packet(path: Path) -> None:
    path.write_bytes(box(b"uuid", XMP_UUID[::-1] + b"<x/>"))
    assert xmp_boxes(path) == ()

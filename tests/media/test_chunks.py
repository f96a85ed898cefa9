import io
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from app.core.errors import DamagedMediaError, MediaError, TruncatedMediaError
from app.media.animation_chunks import animation_facts
from app.media.chunks import (
    jpeg_segments,
    png_chunks,
    png_head,
    read_chunk,
    webp_chunks,
    webp_size_wh,
)
from app.media.sniff import MediaKind


def webp(*chunks: tuple[bytes, bytes]) -> io.BytesIO:
    body = b"WEBP" + b"".join(
        name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
        for name, content in chunks
    )
    return io.BytesIO(b"RIFF" + struct.pack("<I", len(body)) + body)


def test_jpeg_segments_end_where_the_scan_begins() -> None:
    file = io.BytesIO(
        b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xe1\0\x05xmp\xff\x01\xff\xda\0\x02\xff\xe1\0\x04no"
    )
    found = [(segment.name, read_chunk(file, segment)) for segment in jpeg_segments(file)]
    assert found == [(b"\xe0", b"ab"), (b"\xe1", b"xmp")]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"\xff\xd8", TruncatedMediaError, id="ends at once"),
        pytest.param(b"\xff\xd8\xff\xe0\xff\xffab", TruncatedMediaError, id="ends in a segment"),
        pytest.param(b"\xff\xd8abcdef", DamagedMediaError, id="no marker"),
    ],
)
def test_a_broken_jpeg_head_is_an_error(content: bytes, error: type[MediaError]) -> None:
    with pytest.raises(error):
        list(jpeg_segments(io.BytesIO(content)))


def test_png_chunks_go_to_the_end_mark() -> None:
    file = io.BytesIO(
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x02abcd12CRC." + b"\0\0\0\0IENDCRC." + b"trailing bytes"
    )
    found = [(chunk.name, read_chunk(file, chunk)) for chunk in png_chunks(file)]
    assert found == [(b"abcd", b"12"), (b"IEND", b"")]


@pytest.mark.parametrize("length", [8, 12, 20, 100])
def test_a_png_without_end_mark_is_truncated(length: int) -> None:
    content = (b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x02abcd12CRC." + b"\0\0\0\xffIDAT")[:length]
    with pytest.raises(TruncatedMediaError):
        list(png_chunks(io.BytesIO(content)))
    with pytest.raises(TruncatedMediaError):
        png_head(io.BytesIO(content[:20]))


def test_webp_chunks_of_odd_length_are_padded() -> None:
    file = webp((b"VP8X", b"123"), (b"XMP ", b"<x/>"))
    assert [(c.name, read_chunk(file, c)) for c in webp_chunks(file)] == [
        (b"VP8X", b"123"),
        (b"XMP ", b"<x/>"),
    ]


@pytest.mark.parametrize(
    ("chunk", "size_wh"),
    [
        pytest.param((b"VP8X", bytes(4) + b"\x0f\x27\0\x63\0\0"), (10_000, 100), id="canvas"),
        pytest.param(
            (b"VP8L", b"\x2f" + (99 | 49 << 14).to_bytes(4, "little")), (100, 50), id="lossless"
        ),
        pytest.param((b"VP8 ", bytes(3) + b"\x9d\x01\x2a\x64\x00\x32\x00"), (100, 50), id="lossy"),
    ],
)
def test_the_size_of_a_webp_is_in_its_first_chunk(
    chunk: tuple[bytes, bytes], size_wh: tuple[int, int]
) -> None:
    assert webp_size_wh(webp(chunk)) == size_wh


@pytest.mark.parametrize("chunks", [(), ((b"VP8X", b"123"),), ((b"VP8L", b"12"),)])
def test_a_webp_without_picture_is_damage(chunks: tuple[tuple[bytes, bytes], ...]) -> None:
    with pytest.raises(DamagedMediaError):
        webp_size_wh(webp(*chunks))


def _gif(path: Path) -> None:
    path.write_bytes(b"GIF89a" + bytes((1, 0, 1, 0, 0, 0, 0)) + b"\x21\xfe\0" * PARTS + b";")


def _png(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\0tEXt\0\0\0\0" * PARTS)


def _webp(path: Path) -> None:
    chunks = b"JUNK\0\0\0\0" * PARTS
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks)


PARTS = 500_001


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(_gif, MediaKind.GIF, id="GIF"),
        pytest.param(_png, MediaKind.APNG, id="PNG"),
        pytest.param(_webp, MediaKind.ANIMATED_WEBP, id="WebP"),
    ],
)
def test_a_file_of_endless_empty_parts_is_refused(
    make: Callable[[Path], None], kind: MediaKind, tmp_path: Path
) -> None:
    make(tmp_path / "file")
    with pytest.raises(DamagedMediaError, match="parts"):
        animation_facts(tmp_path / "file", kind)


def test_stray_zeros_between_blocks_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    Image.new("L", (2, 2)).save(path)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes(200_000) + data[-1:])
    assert animation_facts(path, MediaKind.GIF).frames == 1

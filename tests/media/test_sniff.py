import os
from pathlib import Path

import pytest

from app.core.errors import (
    EmptyMediaError,
    MediaError,
    MediaNotFoundError,
    UnsupportedTypeError,
)
from app.media.sniff import MediaKind, sniff


def box(name: bytes, body: bytes = b"") -> bytes:
    return (8 + len(body)).to_bytes(4, "big") + name + body


def ftyp(major: bytes, *compatible: bytes) -> bytes:
    return box(b"ftyp", major + b"\0\0\0\0" + b"".join(compatible)) + box(b"mdat", b"x")


def png(*chunks: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        b"\0\0\0\x01" + name + b"x" + b"\0\0\0\0" for name in chunks
    )


EBML = b"\x1aE\xdf\xa3\x9fB\x86\x81\x01\x42\x82"
TS_PACKET = b"\x47" + bytes(187)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        pytest.param(b"\xff\xd8\xff\xe0" + bytes(20), MediaKind.JPEG, id="jpeg"),
        pytest.param(png(b"IHDR", b"IDAT"), MediaKind.PNG, id="png"),
        pytest.param(png(b"IHDR", b"acTL", b"IDAT"), MediaKind.APNG, id="apng"),
        pytest.param(png(b"IHDR", b"IDAT", b"acTL"), MediaKind.PNG, id="acTL behind IDAT is no animation"),
        pytest.param(b"GIF89a" + bytes(20), MediaKind.GIF, id="gif"),
        pytest.param(b"RIFF\0\0\0\0WEBPVP8 " + bytes(20), MediaKind.WEBP, id="webp"),
        pytest.param(
            b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x02" + bytes(9), MediaKind.ANIMATED_WEBP, id="animated webp"
        ),
        pytest.param(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x10" + bytes(9), MediaKind.WEBP, id="webp with alpha"),
        pytest.param(b"RIFF\0\0\0\0AVI LIST", MediaKind.AVI, id="avi"),
        pytest.param(b"BM" + bytes(12) + b"\x28\0\0\0", MediaKind.BMP, id="bmp"),
        pytest.param(b"II*\0" + bytes(20), MediaKind.TIFF, id="little-endian tiff"),
        pytest.param(b"MM\0*" + bytes(20), MediaKind.TIFF, id="big-endian tiff"),
        pytest.param(ftyp(b"isom", b"mp41"), MediaKind.MP4, id="mp4"),
        pytest.param(ftyp(b"M4V ", b"isom"), MediaKind.MP4, id="m4v"),
        pytest.param(ftyp(b"qt  ", b"qt  "), MediaKind.MOV, id="mov"),
        pytest.param(box(b"wide") + box(b"mdat", b"x"), MediaKind.MOV, id="old mov without ftyp"),
        pytest.param(ftyp(b"3gp5", b"isom"), MediaKind.THREE_GP, id="3gp"),
        pytest.param(ftyp(b"heic", b"mif1"), MediaKind.HEIC, id="heic"),
        pytest.param(ftyp(b"avif", b"mif1"), MediaKind.AVIF, id="avif"),
        pytest.param(ftyp(b"mif1", b"avif"), MediaKind.AVIF, id="avif that says mif1 first"),
        pytest.param(EBML + b"\x88matroska" + bytes(9), MediaKind.MATROSKA, id="matroska"),
        pytest.param(EBML + b"\x84webm" + bytes(9), MediaKind.WEBM, id="webm"),
        pytest.param(TS_PACKET * 3, MediaKind.MPEGTS, id="transport stream"),
        pytest.param((bytes(4) + TS_PACKET) * 3, MediaKind.MPEGTS, id="camcorder's transport stream"),
    ],
)  # fmt: skip
def test_first_bytes_tell_the_kind(tmp_path: Path, head: bytes, kind: MediaKind) -> None:
    path = tmp_path / "name.txt"
    path.write_bytes(head)
    assert sniff(path) is kind


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"This is not a video.\n" * 40, id="text"),
        pytest.param(b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", id="playlist"),
        pytest.param(b"ffconcat version 1.0\nfile other.mp4\n", id="list of files"),
        pytest.param(b"v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 1 RTP/AVP 96\n", id="session description"),
        pytest.param(b"<?xml version='1.0'?><MPD></MPD>", id="dash manifest"),
        pytest.param(b"<svg xmlns='http://www.w3.org/2000/svg'/>", id="svg"),
        pytest.param(b"%PDF-1.7\n", id="pdf"),
        pytest.param(b"%!PS-Adobe-3.0\n", id="postscript"),
        pytest.param(b"PK\x03\x04" + bytes(40), id="zip"),
        pytest.param(b"RIFF\0\0\0\0WAVEfmt ", id="wav"),
        pytest.param(EBML + b"\x84mkvx" + bytes(9), id="ebml of another type"),
        pytest.param(bytes(4096), id="zeros"),
        pytest.param(bytes(range(256)) * 16, id="counting bytes"),
        pytest.param(b"\x47", id="one sync byte"),
    ],
)  # fmt: skip
def test_everything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "holiday.mp4"
    path.write_bytes(content)
    with pytest.raises(UnsupportedTypeError):
        sniff(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.mp4"
    path.touch()
    with pytest.raises(EmptyMediaError):
        sniff(path)


def test_a_missing_file_is_told_from_a_bad_one(tmp_path: Path) -> None:
    with pytest.raises(MediaNotFoundError):
        sniff(tmp_path / "missing.mp4")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(MediaNotFoundError):
        sniff(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe.mp4"
    os.mkfifo(path)
    with pytest.raises(MediaNotFoundError):
        sniff(path)


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    path = tmp_path / "loop.mp4"
    path.symlink_to(path)
    with pytest.raises(MediaError, match="cannot be read"):
        sniff(path)

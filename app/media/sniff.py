"""What a file is, by its first bytes: our own table, asked before any decoder sees the file.

Names and suffixes are not believed. What is not in the table is refused, so playlists, session descriptions,
vector pictures and archives never reach a library, whatever they are called.

Source: the containers' specifications: ISO/IEC 14496-12 (file type box), RFC 8794 (EBML), ISO/IEC 13818-1
(transport stream), the PNG, GIF, TIFF and WebP specifications.
"""

import re
import stat
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Literal

from app.core.errors import (
    EmptyMediaError,
    MediaError,
    MediaNotFoundError,
    UnsupportedTypeError,
)

_HEAD_BYTES = 4096
_TS_SYNC = 0x47
_TS_PACKET_BYTES = (188, 192)


class MediaKind(StrEnum):
    """A file format that we know by its first bytes."""

    JPEG = "jpeg"
    PNG = "png"
    WEBP = "webp"
    AVIF = "avif"
    HEIC = "heic"
    TIFF = "tiff"
    BMP = "bmp"
    GIF = "gif"
    APNG = "apng"
    ANIMATED_WEBP = "animated-webp"
    MP4 = "mp4"
    MOV = "mov"
    THREE_GP = "3gp"
    MATROSKA = "matroska"
    WEBM = "webm"
    AVI = "avi"
    MPEGTS = "mpegts"

    @property
    def family(self) -> Literal["still", "animation", "video"]:
        """A still picture, a picture that moves, or a video with everything that comes with one."""
        if self in _STILLS:
            return "still"
        return "animation" if self in _ANIMATIONS else "video"

    @property
    def is_still(self) -> bool:
        """True when `app.media.still` reads it; everything else goes through the video reader."""
        return self in _STILLS


_STILLS = frozenset(
    {
        MediaKind.JPEG,
        MediaKind.PNG,
        MediaKind.WEBP,
        MediaKind.AVIF,
        MediaKind.HEIC,
        MediaKind.TIFF,
        MediaKind.BMP,
    }
)
_ANIMATIONS = frozenset({MediaKind.GIF, MediaKind.APNG, MediaKind.ANIMATED_WEBP})

_HEIC_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_OLD_QUICKTIME_BOXES = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
_BMP_HEADER_BYTES = frozenset({12, 40, 52, 56, 64, 108, 124})


def sniff(path: Path) -> MediaKind:
    """Tell the kind of a file by its first 4096 bytes.

    Raises:
        MediaNotFoundError: There is no file at this path, or it is a folder, pipe or device.
        EmptyMediaError: It has no bytes.
        UnsupportedTypeError: It is none of the kinds we read.
        MediaError: The operating system does not let us read it.
    """
    head = _read_head(path)
    if not head:
        raise EmptyMediaError("the file has 0 bytes; was it copied or uploaded completely?")
    for recognize in _RECOGNIZERS:
        kind = recognize(head)
        if kind is not None:
            return kind
    raise UnsupportedTypeError(
        "the content is no picture or video of a kind we read, whatever its name says; "
        "give a JPEG, PNG, WebP, AVIF, HEIC, TIFF, BMP, GIF, MP4, MOV, MKV, WebM, AVI or MPEG-TS file"
    )


def _read_head(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise MediaNotFoundError("the path is not that of a file; name a picture or a video")
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MediaNotFoundError("there is no such file; check the path") from error
    except OSError as error:
        raise MediaError(f"the file cannot be read: {error.strerror}; check its rights") from error


def _simple(head: bytes) -> MediaKind | None:
    if head.startswith(b"\xff\xd8\xff"):
        return MediaKind.JPEG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return MediaKind.GIF
    if head.startswith((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")):
        return MediaKind.TIFF
    is_bmp = head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADER_BYTES
    return MediaKind.BMP if is_bmp else None


def _png(head: bytes) -> MediaKind | None:
    """An animated PNG announces itself by an `acTL` chunk before the first `IDAT`."""
    if not head.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    at = 8
    while at + 8 <= len(head):
        name = head[at + 4 : at + 8]
        if name in (b"acTL", b"IDAT"):
            return MediaKind.APNG if name == b"acTL" else MediaKind.PNG
        at += 12 + int.from_bytes(head[at : at + 4], "big")
    return MediaKind.PNG


def _riff(head: bytes) -> MediaKind | None:
    if not head.startswith(b"RIFF"):
        return None
    if head[8:12] == b"AVI ":
        return MediaKind.AVI
    if head[8:12] != b"WEBP":
        return None
    is_animated = head[12:16] == b"VP8X" and len(head) > 20 and bool(head[20] & 0x02)
    return MediaKind.ANIMATED_WEBP if is_animated else MediaKind.WEBP


def _iso(head: bytes) -> MediaKind | None:
    size, name = int.from_bytes(head[:4], "big"), head[4:8]
    if name in _OLD_QUICKTIME_BOXES and (size == 1 or size >= 8):
        return MediaKind.MOV
    if name != b"ftyp" or size < 16:
        return None
    major, brands = head[8:12], set(re.findall(b"....", head[16:size], re.DOTALL))
    if major in _AVIF_BRANDS or (major in _HEIC_BRANDS and brands & _AVIF_BRANDS):
        return MediaKind.AVIF
    if major in _HEIC_BRANDS:
        return MediaKind.HEIC
    if major == b"qt  ":
        return MediaKind.MOV
    return MediaKind.THREE_GP if major.startswith((b"3gp", b"3g2")) else MediaKind.MP4


def _ebml(head: bytes) -> MediaKind | None:
    """The document type is element 0x4282 of the EBML header."""
    if not head.startswith(b"\x1aE\xdf\xa3"):
        return None
    found = re.search(rb"\x42\x82[\x81-\x8f](webm|matroska)", head)
    if found is None:
        return None
    return MediaKind.WEBM if found.group(1) == b"webm" else MediaKind.MATROSKA


def _mpegts(head: bytes) -> MediaKind | None:
    """Sync bytes at the packet distance; 192 is the Blu-ray and camcorder kind with 4 bytes of time in front."""
    for step in _TS_PACKET_BYTES:
        marks = head[step - 188 :: step][:4]
        if len(marks) >= 2 and all(mark == _TS_SYNC for mark in marks):
            return MediaKind.MPEGTS
    return None


_RECOGNIZERS: tuple[Callable[[bytes], MediaKind | None], ...] = (
    _simple,
    _png,
    _riff,
    _iso,
    _ebml,
    _mpegts,
)

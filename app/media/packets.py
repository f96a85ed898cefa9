"""Where each kind of file keeps its XMP packets and tags, for whoever wants to read labels."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from PIL import AvifImagePlugin

from app.media.animation_chunks import gif_xmp
from app.media.boxes import metadata_values, xmp_boxes
from app.media.chunks import jpeg_segments, png_chunks, read_chunk, webp_chunks
from app.media.ebml import tag_values
from app.media.heif import HeifFile
from app.media.pillow_errors import pillow_errors
from app.media.sniff import MediaKind, sniff
from app.media.tiff_file import TiffFile

KINDS_WITH_XMP_BOX = frozenset({MediaKind.MP4, MediaKind.MOV, MediaKind.THREE_GP})
"""Containers of ISO boxes that hold XMP in a `uuid` box."""

_JPEG_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_PNG_XMP = b"XML:com.adobe.xmp\0"
_APP1 = b"\xe1"
_TIFF_XMP = 700
_MAX_PACKET_BYTES = 1 << 22


def xmp_packets(path: Path) -> tuple[bytes, ...]:
    """Every XMP packet of a file, in the file's order; none for a kind of file that keeps none.

    Raises:
        MediaError: The file cannot be read, or is damaged where its packets lie.
    """
    kind = sniff(path)
    if kind in KINDS_WITH_XMP_BOX:
        return xmp_boxes(path)
    reader = _READERS.get(kind)
    if reader is None:
        return ()
    with path.open("rb") as file, pillow_errors(kind):
        return tuple(reader(file))


def container_tags(path: Path, name: str) -> tuple[str, ...]:
    """Every value that a video's container gives a tag; none for a kind of file that keeps none.

    Raises:
        MediaError: The file cannot be read, or is damaged where its tags lie.
    """
    kind = sniff(path)
    if kind in KINDS_WITH_XMP_BOX:
        return metadata_values(path, name)
    return tag_values(path, name) if kind in (MediaKind.MATROSKA, MediaKind.WEBM) else ()


def _jpeg(file: BinaryIO) -> Iterator[bytes]:
    for segment in jpeg_segments(file):
        if segment.name == _APP1:
            payload = read_chunk(file, segment)
            if payload.startswith(_JPEG_XMP):
                yield payload.removeprefix(_JPEG_XMP)


def _png(file: BinaryIO) -> Iterator[bytes]:
    """Source: PNG specification 11.3.3.4; two flags, then two more texts, stand before the packet."""
    for chunk in png_chunks(file):
        payload = read_chunk(file, chunk) if chunk.name == b"iTXt" else b""
        if payload.startswith(_PNG_XMP):
            is_compressed, rest = payload[len(_PNG_XMP)], payload[len(_PNG_XMP) + 2 :]
            text = rest.split(b"\0", 2)[-1]
            yield (
                zlib.decompressobj().decompress(text, _MAX_PACKET_BYTES) if is_compressed else text
            )


def _webp(file: BinaryIO) -> Iterator[bytes]:
    for chunk in webp_chunks(file):
        if chunk.name == b"XMP ":
            yield read_chunk(file, chunk)


def _tiff(file: BinaryIO) -> Iterator[bytes]:
    packet = TiffFile(file).tag_v2.get(_TIFF_XMP)
    if isinstance(packet, bytes):
        yield packet


def _heic(file: BinaryIO) -> Iterator[bytes]:
    packet = HeifFile(file).info.get("xmp")
    if isinstance(packet, bytes):
        yield packet


def _avif(file: BinaryIO) -> Iterator[bytes]:
    packet = AvifImagePlugin.AvifImageFile(file).info.get("xmp")
    if isinstance(packet, bytes):
        yield packet


_READERS: dict[MediaKind, Callable[[BinaryIO], Iterator[bytes]]] = {
    MediaKind.JPEG: _jpeg,
    MediaKind.PNG: _png,
    MediaKind.APNG: _png,
    MediaKind.GIF: gif_xmp,
    MediaKind.WEBP: _webp,
    MediaKind.ANIMATED_WEBP: _webp,
    MediaKind.TIFF: _tiff,
    MediaKind.AVIF: _avif,
    MediaKind.HEIC: _heic,
}

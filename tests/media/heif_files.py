"""HEIC files made here: HEVC still frames by an encoder, in the boxes that phones and cameras write.

Source: ISO/IEC 23008-12 (HEIF) and ISO/IEC 14496-12 (boxes).
"""

import io
import struct
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[Any]
Nclx = tuple[int, int, int]
BT709: Nclx = (1, 13, 6)
PQ_BT2020: Nclx = (9, 16, 9)


def box(name: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return struct.pack(">I", 8 + len(content)) + name + content


def full_box(name: bytes, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    return box(name, struct.pack(">I", version << 24 | flags), *parts)


def turn(quarters_left: int) -> bytes:
    """A quarter turn against the clock, so many times."""
    return box(b"irot", bytes([quarters_left]))


def mirror(axis: int) -> bytes:
    """0 swaps top and bottom, 1 swaps left and right."""
    return box(b"imir", bytes([axis]))


def profile(icc: bytes) -> bytes:
    return box(b"colr", b"prof", icc)


def nclx(codes: Nclx, *, is_full: bool = True) -> bytes:
    return box(b"colr", b"nclx", struct.pack(">HHHB", *codes, 0x80 * is_full))


def crop(size_wh: tuple[int, int], offset_xy: tuple[int, int] = (0, 0)) -> bytes:
    """So much around the center, moved by an offset in half pixels."""
    (w, h), (dx, dy) = size_wh, offset_xy
    return box(b"clap", struct.pack(">IIIIiIiI", w, 1, h, 1, dx, 2, dy, 2))


def extents(size_wh: tuple[int, int]) -> bytes:
    return full_box(b"ispe", struct.pack(">II", *size_wh))


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item: its kind, its bytes, its property boxes, and what it refers to."""

    kind: bytes
    data: bytes
    properties: tuple[bytes, ...] = ()
    references: tuple[tuple[bytes, tuple[int, ...]], ...] = ()
    is_hidden: bool = False
    is_in_meta: bool = False


def hevc_item(
    pixels: Pixels,
    *properties: bytes,
    codes: Nclx = BT709,
    bits: int = 8,
    chroma: str = "444",
    is_full: bool = True,
    **more: Any,
) -> Item:
    """One coded picture of RGB or gray of 8 or 16 bits, nearly lossless."""
    h, w = pixels.shape[:2]
    kind = "gray" if pixels.ndim == 2 else f"yuv{chroma}p"
    config, sample = _hevc(pixels, codes, kind if bits == 8 else f"{kind}{bits}le", is_full)
    return Item(
        kind=b"hvc1", data=sample, properties=(config, extents((w, h)), *properties), **more
    )


def _hevc(pixels: Pixels, codes: Nclx, kind: str, is_full: bool) -> tuple[bytes, bytes]:
    """The configuration box and the one sample, as FFmpeg muxes them into an mp4."""
    out = io.BytesIO()
    sources = {(2, 1): "gray", (3, 1): "rgb24", (2, 2): "gray16le", (3, 2): "rgb48le"}
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("libx265", rate=1)
        stream.height, stream.width = pixels.shape[:2]
        stream.pix_fmt = kind
        ctx = stream.codec_context
        ctx.color_range, ctx.colorspace = 1 + is_full, codes[2]
        ctx.color_primaries, ctx.color_trc = codes[:2]
        ctx.options = {"x265-params": "keyint=1:qp=4:log-level=none:info=0", "preset": "ultrafast"}
        frame = av.VideoFrame.from_ndarray(
            np.ascontiguousarray(pixels), format=sources[pixels.ndim, pixels.dtype.itemsize]
        )
        planes = frame.reformat(
            format=kind, dst_colorspace=codes[2], dst_color_range=1 + is_full, src_color_range=2
        )
        planes.colorspace, planes.color_range = codes[2], 1 + is_full
        container.mux(stream.encode(planes))
        container.mux(stream.encode(None))
    data = out.getvalue()
    at = data.index(b"hvcC") - 4
    config = data[at : at + int.from_bytes(data[at : at + 4], "big")]
    with av.open(io.BytesIO(data)) as container:
        sample = next(bytes(packet) for packet in container.demux(video=0) if packet.size)
    return config, sample


def grid_items(
    pixels: Pixels,
    tile_px: int,
    *properties: bytes,
    first: int = 2,
    is_in_meta: bool = False,
    **coding: Any,
) -> tuple[Item, ...]:
    """A picture of tiles, as phones make them: the grid, then the tiles, which number from `first`."""
    h, w = pixels.shape[:2]
    rows, columns = -(-h // tile_px), -(-w // tile_px)
    edges = ((0, rows * tile_px - h), (0, columns * tile_px - w), (0, 0))
    padded = np.pad(pixels, edges[: pixels.ndim], mode="edge")
    tiles = [
        hevc_item(padded[y : y + tile_px, x : x + tile_px], is_hidden=True, **coding)
        for y in range(0, rows * tile_px, tile_px)
        for x in range(0, columns * tile_px, tile_px)
    ]
    grid = Item(
        kind=b"grid",
        is_in_meta=is_in_meta,
        data=struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, w, h),
        properties=(extents((w, h)), *properties),
        references=((b"dimg", tuple(range(first, first + len(tiles)))),),
    )
    return grid, *tiles


def exif_item(data: bytes, of: int = 1, skipped: int = 6) -> Item:
    """EXIF with its `Exif` prefix, and how much of it the file says to skip."""
    return Item(
        kind=b"Exif",
        data=struct.pack(">I", skipped) + data,
        references=((b"cdsc", (of,)),),
    )


def alpha_item(alpha: Pixels, of: int = 1) -> Item:
    kind = full_box(b"auxC", b"urn:mpeg:hevc:2015:auxid:1\0")
    return hevc_item(alpha, kind, references=((b"auxl", (of,)),), is_hidden=True)


def heif_file(*items: Item, primary: int = 1, brand: bytes = b"heic") -> bytes:
    """A file of items, which number from 1."""
    ftyp = box(b"ftyp", brand, bytes(4), b"mif1", brand)
    size = len(ftyp) + len(_meta(items, primary, 0))
    return (
        ftyp
        + _meta(items, primary, size + 8)
        + box(b"mdat", *(item.data for item in items if not item.is_in_meta))
    )


def _meta(items: tuple[Item, ...], primary: int, data_at: int) -> bytes:
    handler = full_box(b"hdlr", bytes(4), b"pict", bytes(13))
    return full_box(
        b"meta",
        handler,
        full_box(b"pitm", struct.pack(">H", primary)),
        _locations(items, data_at),
        _infos(items),
        _references(items),
        _properties(items),
        box(b"idat", *(item.data for item in items if item.is_in_meta)),
    )


def _locations(items: tuple[Item, ...], at: int) -> bytes:
    """Where items lie: behind the `meta` box, or in its `idat`."""
    entries = []
    inside = 0
    for number, item in enumerate(items, 1):
        place = inside if item.is_in_meta else at
        entries.append(struct.pack(">HHHHII", number, item.is_in_meta, 0, 1, place, len(item.data)))
        inside += len(item.data) * item.is_in_meta
        at += len(item.data) * (not item.is_in_meta)
    return full_box(b"iloc", b"\x44\0", struct.pack(">H", len(items)), *entries, version=1)


def _infos(items: tuple[Item, ...]) -> bytes:
    entries = [
        full_box(
            b"infe",
            struct.pack(">HH4s", number, 0, item.kind),
            b"\0",
            b"application/rdf+xml\0" if item.kind == b"mime" else b"",
            version=2,
            flags=int(item.is_hidden),
        )
        for number, item in enumerate(items, 1)
    ]
    return full_box(b"iinf", struct.pack(">H", len(items)), *entries)


def _references(items: tuple[Item, ...]) -> bytes:
    return full_box(
        b"iref",
        *(
            box(name, struct.pack(f">HH{len(to)}H", number, len(to), *to))
            for number, item in enumerate(items, 1)
            for name, to in item.references
        ),
    )


def _properties(items: tuple[Item, ...]) -> bytes:
    """Turning and mirroring are marked as essential, as is what a decoder needs."""
    held: list[bytes] = []
    entries = []
    for number, item in enumerate(items, 1):
        marks = b""
        for each in item.properties:
            held.append(each)
            is_essential = each[4:8] in (b"hvcC", b"clap", b"irot", b"imir")
            marks += struct.pack(">H", is_essential << 15 | len(held))
        entries.append(struct.pack(">HB", number, len(item.properties)) + marks)
    return box(
        b"iprp",
        box(b"ipco", *held),
        full_box(b"ipma", struct.pack(">I", len(items)), *entries, flags=1),
    )

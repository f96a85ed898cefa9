"""Small files that promise more than anybody should unpack."""

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Final

import av
import numpy as np
from PIL import Image

from tests.media.heif_files import Item, extents, heif_file, hevc_item

Make = Callable[[Path], None]


def png_chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(content, zlib.crc32(name))
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def png(size_wh: tuple[int, int], *, color_type: int = 2, extra: bytes = b"") -> bytes:
    """A PNG whose pixels are all black, as far as 40 MB of them go."""
    channels = {0: 1, 2: 3, 6: 4}[color_type]
    raw = min(size_wh[1] * (size_wh[0] * channels + 1), 40_000_000)
    head = struct.pack(">IIBBBBB", *size_wh, 8, color_type, 0, 0, 0)
    parts = (
        png_chunk(b"IHDR", head),
        extra,
        png_chunk(b"IDAT", zlib.compress(bytes(raw), 9)),
        png_chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _bytes(content: bytes) -> Make:
    return lambda path: path.write_bytes(content) and None


def _zipped_profile(path: Path) -> None:
    profile = b"icc\0\0" + zlib.compress(bytes(300_000_000), 9)
    path.write_bytes(png((16_000, 16_000), extra=png_chunk(b"iCCP", profile)))


def _zipped_text(path: Path) -> None:
    text = b"Comment\0\0" + zlib.compress(bytes(40_000_000), 9)
    path.write_bytes(png((20_000, 9000), extra=png_chunk(b"zTXt", text) * 20))


def _jpeg(path: Path) -> None:
    """The start of a frame of 65 500 pixels a side, and nothing behind it."""
    Image.new("RGB", (16, 16)).save(path, "JPEG")
    data = bytearray(path.read_bytes())
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 65_500, 65_500)
    path.write_bytes(bytes(data))


def _webp(path: Path) -> None:
    """A canvas of 16 777 216 pixels a side over a picture of 16."""
    Image.new("RGBA", (16, 16), (9, 9, 9, 9)).save(path, "WEBP", lossless=True)
    body = path.read_bytes()[12:]
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\x10\0\0\0" + b"\xff\xff\xff" * 2
    content = b"WEBP" + canvas + body
    path.write_bytes(b"RIFF" + struct.pack("<I", len(content)) + content)


def _bmp(path: Path) -> None:
    Image.new("RGB", (16, 16)).save(path, "BMP")
    data = bytearray(path.read_bytes())
    data[18:26] = struct.pack("<ii", 60_000, 60_000)
    path.write_bytes(bytes(data))


def _tiff(path: Path) -> None:
    """Sides of a million pixels, and 65 000 tags that say nothing."""
    entries = [(256, 4, 1, 1_000_000), (257, 4, 1, 1_000_000), (258, 3, 1, 8), (259, 3, 1, 1)]
    entries += [(262, 3, 1, 1), (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 1_000_000)]
    entries += [(279, 4, 1, 8)]
    entries += [(40_000 + index % 5000, 4, 1, index) for index in range(60_000)]
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries)
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + directory + bytes(4))


def _avif(path: Path) -> None:
    """A picture of 16 pixels whose item says 60 000."""
    Image.new("RGB", (16, 16)).save(path, "AVIF")
    data = path.read_bytes()
    at = data.index(b"ispe")
    path.write_bytes(data[: at + 8] + struct.pack(">II", 60_000, 60_000) + data[at + 16 :])


def _heic(path: Path) -> None:
    """A picture of 64 pixels whose item says 60 000."""
    item = hevc_item(np.zeros((64, 64, 3), np.uint8))
    path.write_bytes(
        heif_file(replace(item, properties=(item.properties[0], extents((60_000,) * 2))))
    )


def _heic_of_tiles(path: Path) -> None:
    """One tile of 64 pixels, shown as often as a grid has places."""
    tile = hevc_item(np.zeros((64, 64, 3), np.uint8), is_hidden=True)
    side = 255 * 64
    grid = Item(
        kind=b"grid",
        data=struct.pack(">BBBBHH", 0, 0, 254, 254, side, side),
        properties=(extents((side, side)),),
        references=((b"dimg", (2,) * 255**2),),
    )
    path.write_bytes(heif_file(grid, tile))


def apng(size_wh: tuple[int, int], delays: Sequence[tuple[int, int]]) -> bytes:
    """An animated PNG of 16 pixels a side, whatever its header says, with the pixels of its first frame alone.

    Args:
        size_wh: What the header says.
        delays: Ticks of each frame, and how many of them a second has.
    """
    head = struct.pack(">5I", 0, 16, 16, 0, 0)
    chunks = {
        delay: png_chunk(b"fcTL", head + struct.pack(">2H2x", *delay)) for delay in set(delays)
    }
    first, *others = (chunks[delay] for delay in delays)
    parts = (
        png_chunk(b"IHDR", struct.pack(">II5B", *size_wh, 8, 0, 0, 0, 0)),
        png_chunk(b"acTL", struct.pack(">II", 2, 0)),
        first,
        png_chunk(b"IDAT", zlib.compress(bytes(16 * 17))),
        *others,
        png_chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _animated_webp(side_px: int, frames: int) -> bytes:
    """A canvas, and frames that are nothing but their heads."""
    side = (side_px - 1).to_bytes(3, "little")
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + side * 2
    frame = b"ANMF" + struct.pack("<I", 16) + bytes(16)
    content = b"WEBP" + canvas + b"ANIM" + struct.pack("<I", 6) + bytes(6) + frame * frames
    return b"RIFF" + struct.pack("<I", len(content)) + content


def _gif_of_frames(frames: int) -> bytes:
    """Frames of one pixel, 15 bytes each."""
    head = b"GIF89a" + struct.pack("<HHBBB", 16, 16, 0x80, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x4c\x01\0"
    return head + frame * frames + b"\x3b"


def _gif(path: Path) -> None:
    """Two frames on a canvas of 65 535 pixels a side."""
    frames = [Image.new("P", (16, 16), shade) for shade in (1, 2)]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:])
    data = bytearray(path.read_bytes())
    data[6:10] = b"\xff" * 4
    path.write_bytes(bytes(data))


def _wide_video(path: Path) -> None:
    """The header of a film of 30 000 x 30 000 pixels over the packets of a small one."""
    with av.open(str(path), "w", format="avi") as container:
        stream = container.add_stream("rawvideo", rate=25)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    data = bytearray(path.read_bytes())
    at = data.index(b"strf") + 8
    data[at + 4 : at + 12] = struct.pack("<ii", 30_000, 30_000)
    path.write_bytes(bytes(data))


def _many_streams(path: Path) -> None:
    with av.open(str(path), "w", format="matroska") as container:
        streams = [container.add_stream("mpeg4", rate=25) for _ in range(80)]
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        for stream in streams:
            frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))


def _years_long(path: Path) -> None:
    """Two frames, years apart."""
    with av.open(str(path), "w", format="matroska") as container:
        stream = container.add_stream("ffv1", rate=1)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        stream.codec_context.time_base = stream.time_base = Fraction(1)
        for pts in (0, 100_000_000):
            frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
            frame.pts, frame.time_base = pts, Fraction(1)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


BOMBS: Final[Mapping[str, Make]] = MappingProxyType(
    {
        "PNG of 900 megapixels of gray": lambda p: _bytes(png((30_000, 30_000), color_type=0))(p),
        "PNG of 169 megapixels": lambda p: _bytes(png((13_000, 13_000)))(p),
        "PNG of the largest sides there are": lambda p: _bytes(png((2**31 - 1, 2**31 - 1)))(p),
        "PNG one pixel high": lambda p: _bytes(png((100_000_000, 1)))(p),
        "PNG with a profile of 300 MB": _zipped_profile,
        "PNG with texts of 800 MB": _zipped_text,
        "JPEG": _jpeg,
        "WebP": _webp,
        "BMP": _bmp,
        "TIFF": _tiff,
        "AVIF": _avif,
        "HEIC": _heic,
        "HEIC of 65 025 tiles": _heic_of_tiles,
        "GIF": _gif,
        "APNG": lambda p: _bytes(apng((30_000, 30_000), [(1, 10)] * 2))(p),
        "animated WebP": lambda p: _bytes(_animated_webp(1 << 24, frames=2))(p),
        "wide video": _wide_video,
        "video with 80 streams": _many_streams,
        "video of three years": _years_long,
    }
)
"""What they are, and how to make them."""

MANY: Final = 1_000_000

LONG: Final[Mapping[str, Make]] = MappingProxyType(
    {
        "GIF of a million frames": lambda p: _bytes(_gif_of_frames(MANY))(p),
        "APNG of a million frames": lambda p: _bytes(apng((16, 16), [(1, 10)] * MANY))(p),
        "animated WebP of a million frames": lambda p: _bytes(_animated_webp(16, MANY))(p),
    }
)
"""Those whose header does not say how long they are: frames have to be counted, up to ten times too many."""

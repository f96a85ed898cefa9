"""TIFF files of the kinds that cameras, scanners and laboratories write, made here byte by byte.

Source: TIFF 6.0.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHORT, _LONG = 3, 4
_INKS = 5


def tiff_file(
    pixels: NDArray[Any], *, is_big_endian: bool = False, is_planar: bool = False, **tags: int
) -> bytes:
    """A TIFF of one strip a plane, not compressed.

    Args:
        pixels: `(H, W)` or `(H, W, channels)`.
        is_big_endian: Numbers have their high byte first.
        is_planar: One channel follows the other.
        tags: More tags, as `t262=1`.
    """
    order = ">" if is_big_endian else "<"
    h, w = pixels.shape[:2]
    samples = pixels.reshape(h, w, -1).astype(pixels.dtype.newbyteorder(order))
    channels = samples.shape[2]
    parts = np.moveaxis(samples, 2, 0) if is_planar else samples[None]
    strips = [part.tobytes() for part in parts]
    entries = {
        256: (_LONG, (w,)),
        257: (_LONG, (h,)),
        258: (_SHORT, (8 * pixels.dtype.itemsize,) * channels),
        259: (_SHORT, (1,)),
        262: (_SHORT, (2 if channels >= 3 else 1,)),
        273: (_LONG, (0,) * len(strips)),
        277: (_SHORT, (channels,)),
        278: (_LONG, (h,)),
        279: (_LONG, tuple(len(strip) for strip in strips)),
        284: (_SHORT, (2 if is_planar else 1,)),
    }
    if channels in (2, 4) and tags.get("t262") != _INKS:
        entries[338] = (_SHORT, (2,))
    for name, value in tags.items():
        tag = int(name.removeprefix("t"))
        entries[tag] = (_SHORT, (value,) * (channels if tag == 339 else 1))
    start = len(_directory(entries, order))
    places = np.cumsum([start, *(len(strip) for strip in strips)])[:-1]
    entries[273] = (_LONG, tuple(int(place) for place in places))
    return _directory(entries, order) + b"".join(strips)


def _directory(entries: dict[int, tuple[int, tuple[int, ...]]], order: str) -> bytes:
    """The header with its one directory, and the values that do not fit into it."""
    at = 8 + 2 + 12 * len(entries) + 4
    fields, values = b"", b""
    for tag, (kind, numbers) in sorted(entries.items()):
        data = struct.pack(f"{order}{len(numbers)}{'H' if kind == _SHORT else 'I'}", *numbers)
        fields += struct.pack(f"{order}HHI", tag, kind, len(numbers))
        if len(data) <= 4:
            fields += data.ljust(4, b"\0")
        else:
            fields += struct.pack(f"{order}I", at + len(values))
            values += data
    mark = b"MM\0*" if order == ">" else b"II*\0"
    return mark + struct.pack(f"{order}IH", 8, len(entries)) + fields + bytes(4) + values

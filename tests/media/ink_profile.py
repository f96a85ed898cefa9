"""A CMYK profile of a made-up printer, whose every color can be computed: there is none on most machines."""

import struct

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_COLOR, _BLACK, _GAIN = 0.9, 0.95, 1.4
"""How much light full inks take, and how dots grow on paper."""
_FROM_SRGB = np.array(
    [[0.4360747, 0.3850649, 0.1430804], [0.2225045, 0.7168786, 0.0606169], [0.0139322, 0.0971045, 0.7141733]]
)  # fmt: skip
_WHITE = np.array([0.9642, 1.0, 0.8249])
_GRIDS = 9, 21


def shown(inks: Floats) -> Floats:
    """Linear sRGB, 0 to 1, of inks from 0 to 1."""
    dots = inks**_GAIN
    return np.asarray((1 - _COLOR * dots[..., :3]) * (1 - _BLACK * dots[..., 3:]))


def mixed(linear: Floats) -> Floats:
    """Inks, 0 to 1, for linear sRGB: with six tenths of the black that there could be."""
    black = 0.6 * (1 - linear.max(axis=-1, keepdims=True)) / _BLACK
    colors = (1 - linear / (1 - _BLACK * black)) / _COLOR
    dots = np.clip(np.concatenate([colors, black], axis=-1), 0, 1)
    return np.asarray(dots ** (1 / _GAIN))


def srgb(linear: Floats) -> Floats:
    """0 to 255 of linear light."""
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.asarray(curved * 255)


def _lab(linear: Floats) -> Floats:
    ratio = linear @ _FROM_SRGB.T / _WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def _linear(lab: Floats) -> Floats:
    y = (lab[..., 0] + 16) / 116
    f = np.stack([y + lab[..., 1] / 500, y, y - lab[..., 2] / 200], -1)
    ratio = np.where(f > 6 / 29, f**3, (116 * f - 16) * 27 / 24389)
    return np.clip(ratio * _WHITE @ np.linalg.inv(_FROM_SRGB).T, 0, 1)


def _grid(channels: int, points: int) -> Floats:
    axes = np.meshgrid(*[np.linspace(0, 1, points)] * channels, indexing="ij")
    return np.stack(axes, -1).reshape(-1, channels)


def _table(channels: tuple[int, int], points: int, values: Floats) -> bytes:
    """ICC.1:2001, 6.5.9 (lut16Type); values 0 to 1, in the tag's own coding."""
    head = b"mft2" + bytes(4) + bytes((*channels, points, 0))
    matrix = struct.pack(">9i", *(np.eye(3, dtype=int) * 65_536).ravel())
    straight = struct.pack(">2H", 0, 65_535)
    numbers = np.rint(np.clip(values, 0, 1) * 65_535).astype(">u2").tobytes()
    return (
        head
        + matrix
        + struct.pack(">2H", 2, 2)
        + straight * channels[0]
        + numbers
        + straight * channels[1]
    )


def _coded(lab: Floats) -> Floats:
    return np.asarray((lab * [65_280 / 100, 256, 256] + [0, 32_768, 32_768]) / 65_535)


def _decoded(values: Floats) -> Floats:
    return np.asarray((values * 65_535 - [0, 32_768, 32_768]) / [65_280 / 100, 256, 256])


def ink_profile() -> bytes:
    """The profile's bytes. Source: ICC.1:2001-04, 6.1 (header), 6.2 (tags)."""
    inks, colors = _grid(4, _GRIDS[0]), _grid(3, _GRIDS[1])
    white = struct.pack(">3i", *(round(value * 65_536) for value in _WHITE))
    text = b"made up\0"
    tags = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(78),
        b"cprt": b"text" + bytes(4) + text,
        b"wtpt": b"XYZ " + bytes(4) + white,
        b"A2B0": _table((4, 3), _GRIDS[0], _coded(_lab(shown(inks)))),
        b"B2A0": _table((3, 4), _GRIDS[1], mixed(_linear(_decoded(colors)))),
    }
    body, index, at = b"", b"", 128 + 4 + 12 * len(tags)
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        index += name + struct.pack(">2I", at + len(body), len(content))
        body += content
    rest = struct.pack(">I", len(tags)) + index + body
    date = struct.pack(">6H", 2026, 1, 1, 0, 0, 0)
    head = (
        struct.pack(">I", 128 + len(rest))
        + bytes(4)
        + b"\x02\x10\0\0prtrCMYKLab "
        + date
        + b"acsp"
        + bytes(28)
        + white
        + bytes(48)
    )
    return head + rest


def looks_like(inks: NDArray[np.uint8]) -> NDArray[np.float64]:
    """`(h, w, 3)`, 0 to 255: what inks of 0 to 255 show, by the printer's own law."""
    return srgb(shown(inks / 255.0))


def printed(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Inks for a picture, by the printer's own law."""
    table = np.arange(256) / 255.0
    linear = np.where(table <= 0.04045, table / 12.92, ((table + 0.055) / 1.055) ** 2.4)
    return np.rint(mixed(cv2.LUT(rgb, linear)) * 255).astype(np.uint8)

"""What HDR10 video says of the screen it was made on, and of its brightest pixels: kept from file to file.

Source: SMPTE ST 2086 (mastering display), CTA-861.3 (content light level); the layout of FFmpeg's side data.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from av import VideoFrame
from av.sidedata.sidedata import SideData

from app.core.tone import HLG, PQ
from app.media.side_data import side_data_of

_DISPLAY_STRUCT: Final = struct.Struct("=20i2i")
_LIGHT_STRUCT: Final = struct.Struct("=2I")
_COLOR_UNIT: Final = 50_000
_LIGHT_UNIT: Final = 10_000
_DYNAMIC: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Dolby Vision": frozenset({"DOVI_RPU_BUFFER", "DOVI_METADATA"}),
        "HDR10+": frozenset({"DYNAMIC_HDR_PLUS"}),
        "HDR Vivid": frozenset({"DYNAMIC_HDR_VIVID"}),
    }
)
"""FFmpeg's names of the side data of each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HdrMetadata:
    """Mastering display and content light level.

    Attributes:
        primaries_xy: Red, green, blue and white of the mastering display; `None` when not said.
        luminance: Its lowest and highest light in cd/m2; `None` when not said.
        light_level: Brightest pixel, and brightest frame on average, in cd/m2; `None` when not said.
    """

    primaries_xy: tuple[tuple[Fraction, Fraction], ...] | None = None
    luminance: tuple[Fraction, Fraction] | None = None
    light_level: tuple[int, int] | None = None

    def encoder_options(self, encoder: str) -> Mapping[str, str]:
        """The parameters with which an encoder writes these facts into its stream; none for one that cannot."""
        if encoder == "libx265":
            return {"x265-params": ":".join(("hdr10=1", *self._parts("max-cll", whole=True)))}
        if encoder == "libx264":
            parts = self._parts("cll", whole=True)
            return {"x264-params": ":".join(parts).replace("master-display", "mastering-display")}
        if encoder == "libsvtav1":
            return {"svtav1-params": ":".join(self._parts("content-light", whole=False))}
        return {}

    def _parts(self, light_name: str, *, whole: bool) -> list[str]:
        parts = []
        if self.primaries_xy is not None and self.luminance is not None:
            name = "master-display" if whole else "mastering-display"
            parts.append(f"{name}={self._display(whole=whole)}")
        if self.light_level is not None:
            parts.append(f"{light_name}={self.light_level[0]},{self.light_level[1]}")
        return parts

    def _display(self, *, whole: bool) -> str:
        assert self.primaries_xy is not None
        assert self.luminance is not None

        def text(value: Fraction, unit: int) -> str:
            return str(round(value * unit)) if whole else f"{float(value):.5f}"

        red, green, blue, white = (
            f"({text(x, _COLOR_UNIT)},{text(y, _COLOR_UNIT)})" for x, y in self.primaries_xy
        )
        low, high = (text(each, _LIGHT_UNIT) for each in self.luminance)
        return f"G{green}B{blue}R{red}WP{white}L({high},{low})"


def hdr_metadata(frame: VideoFrame) -> HdrMetadata | None:
    """What a decoded frame says; `None` when it says nothing."""
    known = side_data_of(frame) or {}
    display = _unpacked(known.get("MASTERING_DISPLAY_METADATA"), _DISPLAY_STRUCT)
    light = _unpacked(known.get("CONTENT_LIGHT_LEVEL"), _LIGHT_STRUCT)
    if display is None and light is None:
        return None
    primaries, luminance = _display_facts(display) if display else (None, None)
    return HdrMetadata(
        primaries_xy=primaries,
        luminance=luminance,
        light_level=(light[0], light[1]) if light else None,
    )


def dynamic_hdr(side_data: Mapping[str, SideData] | None) -> tuple[str, ...]:
    """Names of what a decoded frame brings along that changes from scene to scene, and that no encoder here writes."""
    kinds = (side_data or {}).keys()
    return tuple(name for name, wanted in _DYNAMIC.items() if kinds & wanted)


def is_hdr(transfer: int) -> bool:
    """True for the transfer functions of HDR."""
    return transfer in (PQ, HLG)


def _unpacked(data: SideData | None, layout: struct.Struct) -> tuple[int, ...] | None:
    raw = b"" if data is None else bytes(data)
    return layout.unpack(raw[: layout.size]) if len(raw) >= layout.size else None


def _display_facts(
    values: tuple[int, ...],
) -> tuple[tuple[tuple[Fraction, Fraction], ...] | None, tuple[Fraction, Fraction] | None]:
    *numbers, has_primaries, has_luminance = values
    ratios = [
        Fraction(top, bottom) if bottom else Fraction(0)
        for top, bottom in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    pairs = tuple(zip(ratios[:8:2], ratios[1:8:2], strict=True))
    return pairs if has_primaries else None, (ratios[8], ratios[9]) if has_luminance else None

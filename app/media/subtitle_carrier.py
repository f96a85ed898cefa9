"""Taking subtitles into a container that keeps text in another way: the words and their times go along, styles do not.

Sources: 3GPP TS 26.245 (`tx3g` samples), the Matroska specification (SubRip, WebVTT and ASS packets).
"""

import html
import re
from fractions import Fraction
from typing import Final, cast

import av
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.subtitles.codeccontext import SubtitleCodecContext

from app.media.carriers import describe
from app.media.encoders import Container
from app.media.output_errors import is_storage_error

TEXT_CODECS: Final = frozenset({"subrip", "srt", "mov_text", "webvtt", "ass", "ssa", "text"})
"""Subtitles that are text; the others are pictures."""

_CODECS: Final[dict[Container, str]] = {
    "mp4": "mov_text",
    "mov": "mov_text",
    "matroska": "subrip",
    "webm": "webvtt",
}
_TIME_BASE: Final = Fraction(1, 1000)
_ASS_FIELDS_BEFORE_TEXT: Final = 8
_HEADER: Final = b"""[Script Info]
ScriptType: v4.00+
PlayResX: 384
PlayResY: 288

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, \
StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,0

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""
"""What the library's encoders want to know of the style; they make the track's description of it."""


class TextCarrier:
    """Subtitles as text, packed as the container wants it.

    Raises:
        ValueError: The container or the library does not take them.
        FFmpegError: Likewise.
    """

    def __init__(
        self,
        output: OutputContainer,
        source: Stream,
        *,
        codec: str,
        container: Container,
        offset_s: Fraction,
    ) -> None:
        self.lost = 0
        self._output = output
        self._codec = codec
        self._target_codec = _CODECS[container]
        self._offset_s = offset_s
        self._target = output.add_stream(self._target_codec)
        context = cast("SubtitleCodecContext", self._target.codec_context)
        context.subtitle_header = _HEADER
        context.time_base = self._target.time_base = _TIME_BASE
        describe(self._target, source)

    def carry(self, packet: "Packet[Stream]") -> None:
        """Take one line over; an empty one only says that nothing is shown, which times say too."""
        text = subtitle_text(bytes(packet), self._codec)
        if not text or packet.pts is None:
            return
        data = text.encode()
        if self._target_codec == "mov_text":
            data = len(data[:0xFFFF]).to_bytes(2, "big") + data[:0xFFFF]
        line: Packet[Stream] = av.Packet(data)
        line.stream = self._target
        line.time_base = _TIME_BASE
        at_s = packet.pts * packet.time_base - self._offset_s
        line.pts = line.dts = round(at_s / _TIME_BASE)
        line.duration = round((packet.duration or 0) * packet.time_base / _TIME_BASE)
        try:
            self._output.mux(line)
        except av.FFmpegError as error:
            if is_storage_error(error):
                raise
            self.lost += 1

    def finish(self) -> None:
        """Nothing is held back."""


def subtitle_text(data: bytes, codec: str) -> str:
    """The words of one subtitle packet, lines divided by line feeds, without styles.

    Args:
        data: Content of the packet.
        codec: One of `TEXT_CODECS`.
    """
    if codec == "mov_text":
        data = data[2 : 2 + int.from_bytes(data[:2], "big")]
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if codec in ("ass", "ssa"):
        text = text.split(",", _ASS_FIELDS_BEFORE_TEXT)[-1]
        text = re.sub(r"\{[^}]*\}", "", text).replace(r"\N", "\n").replace(r"\n", "\n")
    elif codec != "mov_text":
        text = html.unescape(re.sub(r"</?[a-zA-Z][^>]*>", "", text))
    return text.strip()

"""Sound that is cut to the sample: what each container can say of a packet that is heard only in part.

MP4 and MOV have edit lists, which say where in a track sound begins and how long it is; the writer makes them out of
times before 0 and of the last packet's duration. Matroska says how much of a packet's end is not heard
(DiscardPadding), but has no word for a beginning: there, sound of a codec that loses something is encoded anew. Sound
of a codec that loses nothing is encoded anew everywhere, which changes no sample and needs no such word.

Sources: ISO/IEC 14496-12 (edit lists), RFC 9559 5.1.3.5.7 (DiscardPadding), FFmpeg's layout of `skip_samples`.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, cast

import numpy as np
from av import AudioFrame
from av.packet import Packet, PacketSideData, packet_sidedata_type_from_literal
from av.stream import Stream
from numpy.typing import NDArray

from app.media.encoders import Container

_SKIP: Final = "skip_samples"
_SKIP_STRUCT: Final = struct.Struct("<IIBB")
_LOSSLESS: Final = frozenset(
    {"flac", "alac", "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be"}
    | {"pcm_s32le", "pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_f64le"}
)
_OWN_ENCODERS: Final[Mapping[str, str]] = MappingProxyType(
    {"aac": "aac", "mp3": "libmp3lame", "ac3": "ac3", "eac3": "eac3", "opus": "libopus"}
    | {"vorbis": "libopus"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SoundPart:
    """The part of a source's sound that goes along.

    Attributes:
        offset_s: What is taken off all times.
        starts_late: Sound before time 0 does not belong to it.
        ends_at_s: Nor does sound from here on; `None` is the end of the file.
    """

    offset_s: Fraction = Fraction(0)
    starts_late: bool = False
    ends_at_s: Fraction | None = None

    @property
    def is_whole(self) -> bool:
        """True when nothing is cut off."""
        return not self.starts_late and self.ends_at_s is None


def encoder_for_cut(codec: str, *, container: Container, part: SoundPart) -> str | None:
    """Who has to encode a track anew to cut it to the sample; `None` where its packets can go along as they are."""
    if part.is_whole:
        return None
    if codec in _LOSSLESS:
        return codec
    has_edits = container in ("mp4", "mov")
    if has_edits or not part.starts_late:
        return None
    return "libopus" if container == "webm" else _OWN_ENCODERS.get(codec, "aac")


def is_lossless(codec: str) -> bool:
    """True for sound that can be encoded anew without changing a sample."""
    return codec in _LOSSLESS


def end_inplace(packet: "Packet[Stream]", *, ends_at_s: Fraction, rate_hz: int) -> None:
    """Let a packet that reaches beyond the end be heard only up to it.

    Args:
        packet: With a time and a duration, in the output's clock; not wholly behind the end.
        ends_at_s: The end.
        rate_hz: Samples a second.
    """
    if packet.pts is None or not packet.duration or not rate_hz:
        return
    late_s = (packet.pts + packet.duration) * packet.time_base - ends_at_s
    if late_s > 0:
        packet.duration = max(1, packet.duration - round(late_s / packet.time_base))
        _skip_at_end(packet, round(late_s * rate_hz))


def mark_padding_inplace(packet: "Packet[Stream]", frame_samples: int) -> None:
    """Say how much of an encoder's last packet is filling, where the encoder gave only its duration."""
    if packet.has_sidedata(_SKIP) or not packet.duration or not frame_samples:
        return
    missing = frame_samples - packet.duration
    if missing > 0:
        _skip_at_end(packet, missing)


def within(frame: AudioFrame, part: SoundPart) -> AudioFrame | None:
    """What of some sound, in the output's clock, lies in the part; `None` for nothing."""
    if frame.pts is None or not frame.time_base or part.is_whole:
        return frame
    at_s = frame.pts * frame.time_base
    first = max(0, round(-at_s * frame.sample_rate)) if part.starts_late else 0
    last = frame.samples
    if part.ends_at_s is not None:
        last = min(last, round((part.ends_at_s - at_s) * frame.sample_rate))
    if first >= last:
        return None
    return frame if (first, last) == (0, frame.samples) else _sliced(frame, first, last)


def end_of(frame: AudioFrame) -> Fraction:
    """When some sound is over."""
    at_s = (frame.pts or 0) * (frame.time_base or Fraction(0))
    return at_s + Fraction(frame.samples, frame.sample_rate)


def silence_after(frame: AudioFrame, samples: int) -> AudioFrame:
    """Silence of the same kind right behind some sound; in its clock too, since the resampler knows no other."""
    silence = AudioFrame(format=frame.format.name, layout=frame.layout.name, samples=samples)
    for plane in silence.planes:
        plane.update(bytes(plane.buffer_size))
    silence.sample_rate, silence.time_base = frame.sample_rate, frame.time_base
    if frame.time_base is not None:
        silence.pts = round(end_of(frame) / frame.time_base)
    return silence


def _sliced(frame: AudioFrame, first: int, last: int) -> AudioFrame:
    step = 1 if frame.format.is_planar else frame.layout.nb_channels
    samples = frame.to_ndarray()[:, first * step : last * step]
    kept = cast("NDArray[np.float32]", np.ascontiguousarray(samples))
    heard = AudioFrame.from_ndarray(kept, format=frame.format.name, layout=frame.layout.name)
    assert frame.pts is not None and frame.time_base is not None
    heard.sample_rate, heard.time_base = frame.sample_rate, frame.time_base
    heard.pts = frame.pts + round(Fraction(first, frame.sample_rate) / frame.time_base)
    return heard


def _skip_at_end(packet: "Packet[Stream]", samples: int) -> None:
    kind = packet_sidedata_type_from_literal(_SKIP)
    data = PacketSideData(kind, _SKIP_STRUCT.size)  # type: ignore[call-arg]  # its stub has no constructor
    data.update(_SKIP_STRUCT.pack(0, samples, 0, 0))
    packet.set_sidedata(data)

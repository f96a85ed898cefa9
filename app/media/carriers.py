"""Taking one stream of the source into the output: its packets as they are, or its sound encoded anew."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final, Protocol, cast

import av
from av import AudioFrame, AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream

from app.media.output_errors import is_storage_error
from app.media.sound_part import (
    SoundPart,
    end_inplace,
    end_of,
    is_lossless,
    mark_padding_inplace,
    silence_after,
    within,
)

_BITS_A_CHANNEL_S: Final = 96_000
_KEPT_TAGS: Final = ("language", "title", "comment")
_LAYOUTS: Final = {1: "mono", 2: "stereo", 3: "3.0", 4: "4.0", 5: "5.0", 6: "5.1", 8: "7.1"}
"""What both encoders take, by the number of channels; AVI files often say no more than that."""

_KEEP_THEIR_LAST: Final = frozenset({"ac3", "eac3"})
_KEPT_SAMPLES: Final = 1536
"""Encoders that swallow the end of the sound unless something comes behind it, and how much is enough."""

_OPUS_RATE_HZ: Final = 48_000
_MAX_RATES_HZ: Final = {"aac": 96_000, "libmp3lame": 48_000, "ac3": 48_000, "eac3": 48_000}


class Carrier(Protocol):
    """One stream on its way; `lost` counts the packets that could not be taken along."""

    lost: int

    def carry(self, packet: "Packet[Stream]") -> None:
        """Take one packet over.

        Raises:
            FFmpegError: The disk does not take it.
        """
        ...

    def finish(self) -> None:
        """Write what is still held back."""
        ...


def describe(target: Stream, source: Stream) -> None:
    """Give a stream of the output the language, the title and the role of the one it comes from."""
    tags = {key.lower(): value for key, value in source.metadata.items()}
    target.metadata.update({key: tags[key] for key in _KEPT_TAGS if key in tags})
    target.disposition = source.disposition


def _sound_ends_at_s(source: Stream, part: SoundPart) -> Fraction | None:
    """When a track's sound is over in the output's clock: with the part, or where an edit list cuts its last packet."""
    if not isinstance(source, AudioStream):
        return None
    if part.ends_at_s is not None or source.duration is None or source.time_base is None:
        return part.ends_at_s
    return ((source.start_time or 0) + source.duration) * source.time_base - part.offset_s


class CopyCarrier:
    """Packets bit for bit, with their times.

    Raises:
        ValueError: The container or the library does not take this stream.
        FFmpegError: Likewise.
    """

    def __init__(self, output: OutputContainer, source: Stream, *, part: SoundPart) -> None:
        self.lost = 0
        self._output = output
        self._target = output.add_stream_from_template(source)
        self._offset = round(part.offset_s / source.time_base) if source.time_base else 0
        self._ends_at_s = _sound_ends_at_s(source, part)
        self._rate_hz = source.rate if isinstance(source, AudioStream) else 0
        self._last_dts: int | None = None
        describe(self._target, source)

    def carry(self, packet: "Packet[Stream]") -> None:
        """Write one packet; a time that does not rise is set right behind the one before, as containers want it."""
        dts = packet.dts if packet.dts is not None else packet.pts
        if dts is None:
            self.lost += 1
            return
        pts = dts if packet.pts is None else packet.pts
        dts -= self._offset
        if self._last_dts is not None and self._target.type == "audio":
            dts = max(dts, self._last_dts + 1)
        packet.dts, packet.pts = dts, max(pts - self._offset, dts)
        if self._ends_at_s is not None and packet.pts * packet.time_base < self._ends_at_s:
            end_inplace(packet, ends_at_s=self._ends_at_s, rate_hz=self._rate_hz)
        packet.stream = self._target
        try:
            self._output.mux(packet)
        except av.FFmpegError as error:
            if is_storage_error(error):
                raise
            self.lost += 1
        else:
            self._last_dts = dts

    def finish(self) -> None:
        """Nothing is held back."""


class TranscodeCarrier:
    """Sound encoded anew, for a container that does not take it as it is, or cannot begin where it has to.

    Args:
        output: The file being written.
        source: The track.
        encoder: FFmpeg's name of the encoder.
        part: What of it is wanted, exact to the sample.

    Raises:
        ValueError: The container or the library does not take this stream.
        FFmpegError: Likewise.
    """

    def __init__(
        self, output: OutputContainer, source: AudioStream, *, encoder: str, part: SoundPart
    ) -> None:
        self.lost = 0
        self._part = part
        self._output = output
        self._source = source
        self._last_heard: AudioFrame | None = None
        self._ends_at_s: Fraction | None = None
        self._target = cast(
            "AudioStream", output.add_stream(encoder, rate=_rate_hz(encoder, source))
        )
        context = self._target.codec_context
        if is_lossless(encoder):
            context.format = _lossless_format(encoder, source)
            context.layout = source.layout.name
        else:
            context.layout = _LAYOUTS.get(source.channels, "stereo")
            context.bit_rate = _BITS_A_CHANNEL_S * source.channels
        describe(self._target, source)

    def carry(self, packet: "Packet[Stream]") -> None:
        """Decode one packet, and encode and write its sound."""
        self._guarded(lambda: self._recode(packet))

    def finish(self) -> None:
        """Write the sound that the decoder and the encoder still hold."""
        self._guarded(lambda: self._recode(None))
        last = self._last_heard
        if last is not None and self._target.codec_context.name in _KEEP_THEIR_LAST:
            # Silence pushes out what such an encoder would keep; the packets end before it.
            self._ends_at_s = end_of(last)
            self._guarded(lambda: self._write(silence_after(last, _KEPT_SAMPLES)))
        self._guarded(lambda: self._write(None))

    def _recode(self, packet: "Packet[Stream] | None") -> None:
        for frame in self._source.codec_context.decode(packet):
            if frame.pts is not None and frame.time_base:
                frame.pts -= round(self._part.offset_s / frame.time_base)
            heard = within(frame, self._part)
            if heard is not None:
                self._write(heard)
                self._last_heard = heard

    def _write(self, frame: AudioFrame | None) -> None:
        context = self._target.codec_context
        for packet in self._target.encode(frame):
            if self._ends_at_s is not None:
                if (packet.pts or 0) * packet.time_base >= self._ends_at_s:
                    continue
                end_inplace(packet, ends_at_s=self._ends_at_s, rate_hz=context.sample_rate)
            elif frame is None and not is_lossless(context.name):
                mark_padding_inplace(packet, context.frame_size)
            self._output.mux(packet)

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do something with the sound, and count what cannot be done; only the disk may stop it all."""
        try:
            action()
        except av.FFmpegError as error:
            if is_storage_error(error):
                raise
            self.lost += 1
        except ValueError:
            # PyAV's word for sound that changes its kind in mid-stream.
            self.lost += 1


def _rate_hz(encoder: str, source: AudioStream) -> int:
    if encoder == "libopus":
        return _OPUS_RATE_HZ
    return source.rate if is_lossless(encoder) else min(source.rate, _MAX_RATES_HZ[encoder])


def _lossless_format(encoder: str, source: AudioStream) -> str:
    """The encoder's format that holds the decoder's samples."""
    wanted = source.format.name
    taken = [each.name for each in av.codec.Codec(encoder, "w").audio_formats or ()]
    same = [name for name in taken if name.removesuffix("p") == wanted.removesuffix("p")]
    return next(iter(same or taken), wanted)

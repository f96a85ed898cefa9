"""Taking one stream of the source into the output: its packets as they are, or its sound encoded anew."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final, Protocol, cast

import av
import numpy as np
from av import AudioFrame, AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream
from numpy.typing import NDArray

from app.media.output_errors import is_storage_error

_BITS_A_CHANNEL_S: Final = 96_000
_KEPT_TAGS: Final = ("language", "title", "handler_name", "comment")
_LAYOUTS: Final = {1: "mono", 2: "stereo", 3: "3.0", 4: "4.0", 5: "5.0", 6: "5.1", 8: "7.1"}
"""What both encoders take, by the number of channels; AVI files often say no more than that."""

_OPUS_RATE_HZ: Final = 48_000
_MAX_AAC_RATE_HZ: Final = 96_000


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


class CopyCarrier:
    """Packets bit for bit, with their times.

    Raises:
        ValueError: The container or the library does not take this stream.
        FFmpegError: Likewise.
    """

    def __init__(self, output: OutputContainer, source: Stream, *, offset_s: Fraction) -> None:
        self.lost = 0
        self._output = output
        self._target = output.add_stream_from_template(source)
        self._offset = round(offset_s / source.time_base) if source.time_base else 0
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
    """Sound encoded anew, for a container that does not take it as it is.

    Args:
        output: The file being written.
        source: The track.
        encoder: FFmpeg's name of the encoder.
        offset_s: What is taken off all times.
        cuts_start: Sound before time 0 is left out, exact to the sample.

    Raises:
        ValueError: The container or the library does not take this stream.
        FFmpegError: Likewise.
    """

    def __init__(
        self,
        output: OutputContainer,
        source: AudioStream,
        *,
        encoder: str,
        offset_s: Fraction,
        cuts_start: bool = False,
    ) -> None:
        self.lost = 0
        self._cuts_start = cuts_start
        self._output = output
        self._source = source
        self._offset_s = offset_s
        rate = _OPUS_RATE_HZ if encoder == "libopus" else min(source.rate, _MAX_AAC_RATE_HZ)
        self._target = cast("AudioStream", output.add_stream(encoder, rate=rate))
        self._target.codec_context.layout = _LAYOUTS.get(source.channels, "stereo")
        self._target.codec_context.bit_rate = _BITS_A_CHANNEL_S * source.channels
        describe(self._target, source)

    def carry(self, packet: "Packet[Stream]") -> None:
        """Decode one packet, and encode and write its sound."""
        self._recode(packet)

    def finish(self) -> None:
        """Write the sound that the decoder and the encoder still hold."""
        self._recode(None)
        self._guarded(lambda: self._output.mux(self._target.encode(None)))

    def _recode(self, packet: "Packet[Stream] | None") -> None:
        self._guarded(lambda: self._recode_frames(packet))

    def _recode_frames(self, packet: "Packet[Stream] | None") -> None:
        for frame in self._source.codec_context.decode(packet):
            if frame.pts is not None and frame.time_base:
                frame.pts -= round(self._offset_s / frame.time_base)
            heard = _from_zero(frame) if self._cuts_start else frame
            if heard is not None:
                self._output.mux(self._target.encode(heard))

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


def _from_zero(frame: AudioFrame) -> AudioFrame | None:
    """What of some sound comes at time 0 or later; `None` for nothing."""
    if frame.pts is None or frame.pts >= 0 or not frame.time_base:
        return frame
    early = round(-frame.pts * frame.time_base * frame.sample_rate)
    if early >= frame.samples:
        return None
    samples = frame.to_ndarray()
    step = 1 if frame.format.is_planar else frame.layout.nb_channels
    kept = cast("NDArray[np.float32]", np.ascontiguousarray(samples[:, early * step :]))
    heard = AudioFrame.from_ndarray(kept, format=frame.format.name, layout=frame.layout.name)
    heard.sample_rate, heard.time_base, heard.pts = frame.sample_rate, frame.time_base, 0
    return heard

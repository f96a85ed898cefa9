"""Everything of a video but its pictures: sound, subtitles, chapters, carried into the output in time order."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import av
from av import AudioStream
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Discard, Stream

from app.core.errors import MediaError
from app.core.types import Notice
from app.media.carriers import Carrier, CopyCarrier, TranscodeCarrier
from app.media.demux import codec_name, packets
from app.media.encoders import Container

_COPIED: Final[dict[Container, frozenset[str]]] = {
    "mp4": frozenset({"aac", "mp3", "ac3", "eac3", "opus", "flac", "alac", "mov_text"}),
    "mov": frozenset(
        {"aac", "mp3", "ac3", "eac3", "alac", "mov_text", "pcm_s16le", "pcm_s16be", "pcm_s24le"}
        | {"pcm_s24be", "pcm_s32le", "pcm_f32le", "pcm_alaw", "pcm_mulaw"}
    ),
    "webm": frozenset({"opus", "vorbis", "webvtt"}),
}
"""What players of a container expect in it, which is less than what the library would write; Matroska takes all."""

_KEPT_METADATA: Final = frozenset(
    {
        "title",
        "artist",
        "album",
        "album_artist",
        "composer",
        "genre",
        "date",
        "year",
        "creation_time",
    }
    | {"comment", "description", "synopsis", "copyright", "show", "episode_id", "season_number"}
)
"""Tags of the file that are kept; places, devices and makers' own tags are not among them."""


class Passengers:
    """The streams of `source` that go along into `output`, which must not have written its header yet.

    A stream that cannot go along, or not whole, never stops the video: it ends up in `notices`.

    Args:
        source: An open file of its own, not the one that the pictures are read from.
        output: The file being written.
        container: Its format.
        offset_s: What is taken off all times.
    """

    def __init__(
        self,
        source: InputContainer,
        output: OutputContainer,
        *,
        container: Container,
        offset_s: Fraction = Fraction(0),
    ) -> None:
        self._output = output
        self._container = container
        self._offset_s = offset_s
        self._notices: list[Notice] = []
        self._carriers: dict[int, Carrier] = {}
        for stream in source.streams:
            if stream.type in ("audio", "subtitle"):
                self._add(stream)
        self._packets = self._packets_of(source)
        self._next = next(self._packets, None)
        self._copy_tags(source)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What did not go along as it was; complete after `finish`."""
        return tuple(self._notices)

    def advance(self, until_s: Fraction) -> None:
        """Write all packets up to a time of the output.

        Raises:
            FFmpegError: The disk does not take them.
        """
        while self._next is not None and self._time_s(self._next) <= until_s:
            self._carry_next()

    def finish(self) -> None:
        """Write all that is left; sound that is longer than the video stays whole.

        Raises:
            FFmpegError: The disk does not take it.
        """
        while self._next is not None:
            self._carry_next()
        for index, carrier in self._carriers.items():
            carrier.finish()
            if carrier.lost:
                self._note(
                    "media.stream_incomplete",
                    f"stream {index}: {carrier.lost} damaged parts were left out",
                )

    def _carry_next(self) -> None:
        if self._next is not None:
            self._carriers[self._next.stream_index].carry(self._next)
        self._next = next(self._packets, None)

    def _time_s(self, packet: "Packet[Stream]") -> Fraction:
        at = packet.dts if packet.dts is not None else packet.pts
        return Fraction(0) if at is None else at * packet.time_base - self._offset_s

    def _packets_of(self, source: InputContainer) -> Iterator["Packet[Stream]"]:
        """The carried streams' packets; the demuxer skips over all others."""
        for stream in source.streams:
            if stream.index not in self._carriers:
                stream.discard = Discard.all
        streams = [source.streams[index] for index in self._carriers]
        if not streams:
            return
        try:
            yield from packets(source, *streams)
        except MediaError as error:
            self._note("media.stream_incomplete", f"sound or subtitles end early: {error.message}")

    def _add(self, stream: Stream) -> None:
        codec = codec_name(stream)
        try:
            self._carriers[stream.index] = self._carrier(stream, codec)
        except (av.FFmpegError, ValueError):
            self._note(
                "media.stream_dropped",
                f"{stream.type} track of codec {codec or 'unknown'} was left out",
            )

    def _carrier(self, stream: Stream, codec: str) -> Carrier:
        """A copy where the container takes the codec, else new sound; refuses by an exception what can be neither."""
        taken = _COPIED.get(self._container)
        if taken is None or codec in taken:
            return CopyCarrier(self._output, stream, offset_s=self._offset_s)
        if not isinstance(stream, AudioStream):
            raise ValueError(f"{codec} does not go into {self._container}")
        encoder = "libopus" if self._container == "webm" else "aac"
        carrier = TranscodeCarrier(self._output, stream, encoder=encoder, offset_s=self._offset_s)
        self._note(
            "media.audio_converted",
            f"audio track of codec {codec} was converted, since {self._container} does not take it",
        )
        return carrier

    def _copy_tags(self, source: InputContainer) -> None:
        self._output.metadata.update(
            {key: text for key, text in source.metadata.items() if key.lower() in _KEPT_METADATA}
        )
        if chapters := source.chapters():
            self._output.set_chapters(chapters)

    def _note(self, code: str, message: str) -> None:
        self._notices.append(Notice(code, message))

"""Everything of a video but its pictures: sound, subtitles, chapters, carried into the output in time order."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

import av
from av import AudioStream
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import AttachmentStream, Discard, Stream

from app.core.errors import MediaError
from app.core.types import Notice
from app.media.carriers import Carrier, CopyCarrier, TranscodeCarrier
from app.media.clock_jumps import running_on
from app.media.demux import codec_name, is_cover, main_video, packets
from app.media.encoders import Container
from app.media.info import MediaInfo
from app.media.sound_part import SoundPart, encoder_for_cut, is_lossless
from app.media.span import seek_before
from app.media.subtitle_carrier import TEXT_CODECS, TextCarrier

if TYPE_CHECKING:
    from av.container.core import Chapter

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


_LEAD_IN_S: Final = Fraction(1, 10)
"""Sound before a part that goes along unheard where the container, or our own encoding, can cut it off: decoders need
a running start."""

_INTERLEAVED_WITHIN_S: Final = 30
"""Streams of a file lie side by side; what belongs to one time does not lie farther behind another than this."""

_TimedPacket: TypeAlias = "tuple[Fraction, Packet[Stream]]"
"""A packet after its time in the output, in seconds: exact fractions are dear, so each is made once."""


class Passengers:
    """The streams of `source` that go along into `output`, which must not have written its header yet.

    A stream that cannot go along, or not whole, never stops the video: it ends up in `notices`.

    Args:
        source: An open file of its own, not the one that the pictures are read from.
        output: The file being written.
        container: Its format.
        info: Of the video that they go along with: which part of the file it is, and what is taken off all times.
    """

    def __init__(
        self,
        source: InputContainer,
        output: OutputContainer,
        *,
        container: Container,
        info: MediaInfo,
    ) -> None:
        self._output = output
        self._container = container
        self._info = info
        self._offset_s = info.clock_offset_s
        self._part = SoundPart(
            offset_s=info.clock_offset_s, starts_late=info.starts_late, ends_at_s=info.ends_at_s
        )
        self._notices: list[Notice] = []
        self._carriers: dict[int, Carrier] = {}
        for stream in source.streams:
            if stream.type in ("audio", "subtitle"):
                self._add(stream)
            elif isinstance(stream, AttachmentStream):
                self._attach(stream)
            elif is_cover(stream):
                self._note(
                    "media.cover_dropped",
                    "the cover picture was left out, since it may show the face that was there before",
                )
            elif stream.type == "video" and stream.index != info.video_index:
                self._note(
                    "media.stream_dropped",
                    f"stream {stream.index} is another video and was left out; only the first one is made",
                )
        self._timed_packets = self._timed_packets_of(source)
        self._next = next(self._timed_packets, None)
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
        while self._next is not None and self._next[0] <= until_s:
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
            _, packet = self._next
            self._carriers[packet.stream_index].carry(packet)
        self._next = next(self._timed_packets, None)

    def _time_s(self, packet: "Packet[Stream]") -> Fraction:
        at = packet.dts if packet.dts is not None else packet.pts
        return Fraction(0) if at is None else at * packet.time_base - self._offset_s

    def _timed_packets_of(self, source: InputContainer) -> Iterator[_TimedPacket]:
        """The carried streams' packets; the demuxer skips over all others."""
        for stream in source.streams:
            if stream.index not in self._carriers:
                stream.discard = Discard.all
        streams = [source.streams[index] for index in self._carriers]
        if not streams:
            return
        if self._info.starts_late:
            seek_before(source, main_video(source), self._info.container, self._offset_s)
        try:
            found = running_on(packets(source, *streams), self._info.clock_jumps)
            yield from self._in_part(found)
        except MediaError as error:
            self._note("media.stream_incomplete", f"sound or subtitles end early: {error.message}")

    def _in_part(self, found: Iterator["Packet[Stream]"]) -> Iterator[_TimedPacket]:
        """Leave out what is over before the part begins, or begins when it is over."""
        end_s = self._info.ends_at_s
        for packet in found:
            at_s = self._time_s(packet)
            if end_s is not None and at_s >= end_s:
                if at_s > end_s + _INTERLEAVED_WITHIN_S:
                    return
                continue
            if self._info.starts_late and at_s < 0:
                is_sound = packet.stream.type == "audio"
                hides = self._container in ("mp4", "mov") or isinstance(
                    self._carriers[packet.stream_index], TranscodeCarrier
                )
                hidden_s = _LEAD_IN_S if is_sound and hides else 0
                over_s = at_s + (packet.duration or 0) * packet.time_base
                if over_s <= -hidden_s:
                    continue
                if not is_sound:
                    _begin_at(packet, round(self._offset_s / packet.time_base))
                    at_s = self._time_s(packet)
            yield at_s, packet

    def _add(self, stream: Stream) -> None:
        codec = codec_name(stream)
        try:
            self._carriers[stream.index] = self._carrier(stream, codec)
        except (av.FFmpegError, ValueError):
            self._note(
                "media.stream_dropped",
                f"{stream.type} track of codec {codec or 'unknown'} was left out",
            )

    def _attach(self, stream: AttachmentStream) -> None:
        """Fonts and the like go from Matroska to Matroska; nothing else has a place for them."""
        name, kind = stream.metadata.get("filename", ""), stream.mimetype or ""
        if self._container == "matroska" and not kind.startswith("image/"):
            self._output.add_attachment(name, kind, stream.data)
        elif not kind.startswith("image/"):
            self._note("media.stream_dropped", f"{self._container} takes no attached files")

    def _carrier(self, stream: Stream, codec: str) -> Carrier:
        """A copy where the container takes the codec, else new sound; refuses by an exception what can be neither."""
        taken = _COPIED.get(self._container)
        if (taken is None and codec != "mov_text") or codec in (taken or ()):
            return self._fitting_carrier(stream, codec)
        if stream.type == "subtitle" and codec in TEXT_CODECS:
            return self._text_carrier(stream, codec)
        if not isinstance(stream, AudioStream):
            raise ValueError(f"{codec} does not go into {self._container}")
        encoder = "libopus" if self._container == "webm" else "aac"
        carrier = TranscodeCarrier(self._output, stream, encoder=encoder, part=self._part)
        self._note(
            "media.audio_converted",
            f"audio track of codec {codec} was converted, since {self._container} does not take it",
        )
        return carrier

    def _fitting_carrier(self, stream: Stream, codec: str) -> Carrier:
        """A copy, unless only new sound can be cut to the sample."""
        encoder = encoder_for_cut(codec, container=self._container, part=self._part)
        if encoder is None or not isinstance(stream, AudioStream):
            return CopyCarrier(self._output, stream, part=self._part)
        carrier = TranscodeCarrier(self._output, stream, encoder=encoder, part=self._part)
        if not is_lossless(codec):
            self._note(
                "media.audio_converted",
                f"audio track of codec {codec} was converted: in {self._container}, sound as it is cannot begin "
                "exactly with the part",
            )
        return carrier

    def _text_carrier(self, stream: Stream, codec: str) -> Carrier:
        carrier = TextCarrier(
            self._output, stream, codec=codec, container=self._container, offset_s=self._offset_s
        )
        self._note(
            "media.subtitles_converted",
            f"subtitles of codec {codec} were written as plain text, as {self._container} takes them; fonts, colors "
            "and places were left out",
        )
        return carrier

    def _copy_tags(self, source: InputContainer) -> None:
        self._output.metadata.update(
            {key: text for key, text in source.metadata.items() if key.lower() in _KEPT_METADATA}
        )
        self._copy_timecode(source)
        if chapters := self._chapters(source):
            self._output.set_chapters(chapters)

    def _copy_timecode(self, source: InputContainer) -> None:
        """The time of day, or of the reel, at which the first frame was taken; true only of that frame."""
        tags = {**source.metadata, **main_video(source).metadata}
        code = next((text for key, text in tags.items() if key.lower() == "timecode"), None)
        if code is None:
            return
        is_true = not self._info.starts_late and fits_timecode(code, self._info.rate)
        if not is_true or self._container == "webm":
            self._note(
                "media.stream_dropped",
                "the timecode was left out: the output begins with another frame, counts frames in another way, or has "
                "no place for it",
            )
            return
        self._output.metadata["timecode"] = code

    def _chapters(self, source: InputContainer) -> "list[Chapter]":
        """The chapters in the part's clock; those outside it are left out."""
        chapters = source.chapters()
        if not self._info.starts_late and self._info.ends_at_s is None:
            return chapters
        kept: list[Chapter] = []
        for chapter in chapters:
            unit = chapter["time_base"] or Fraction(1, 1000)
            offset = round(self._offset_s / unit) if self._info.starts_late else 0
            last = None if self._info.ends_at_s is None else int(self._info.ends_at_s / unit)
            start, end = max(chapter["start"] - offset, 0), chapter["end"] - offset
            end = end if last is None else min(end, last)
            if start < end:
                kept.append({**chapter, "start": start, "end": end})
        return kept

    def _note(self, code: str, message: str) -> None:
        self._notices.append(Notice(code, message))


def fits_timecode(code: str, rate: Fraction | None) -> bool:
    """Whether a timecode counts frames of a rate; one that leaves numbers out counts 30 or 60 a second, or so."""
    found = re.fullmatch(r"\d\d:\d\d:\d\d([:;.])(\d\d)", code)
    if found is None or rate is None:
        return False
    nominal = round(rate)
    leaves_out = found.group(1) != ":"
    is_whole = rate == nominal or rate == Fraction(nominal * 1000, 1001)
    return is_whole and int(found.group(2)) < nominal and (not leaves_out or nominal % 30 == 0)


def _begin_at(packet: "Packet[Stream]", pts: int) -> None:
    """Let a subtitle that is on the screen already begin with the part."""
    late = pts - (packet.pts or 0)
    packet.duration = max(0, (packet.duration or 0) - late)
    packet.pts = packet.dts = pts

"""Transport streams whose clock starts again in the middle, as recordings joined end to end have it, made to run on.

A player that took such times at their word would show the second recording in no time. Where the clock jumps is told
by the place in the file, so that picture and sound, which are read apart, are moved alike.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from av.packet import Packet
from av.stream import Stream

from app.media.demux import opened, packets
from app.media.sniff import MediaKind

_BACK_S: Final = Fraction(3, 10)
_AHEAD_S: Final = Fraction(10)
"""A step back or ahead that is no jitter; a shorter gap is a gap. FFmpeg's program draws the line ahead there too."""

_USUAL_TICKS: Final = 90_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockJump:
    """From a place in the file on, this is added to all times.

    Attributes:
        from_byte: The first packet behind the jump begins here.
    """

    from_byte: int
    add_s: Fraction


@dataclass(frozen=True, slots=True)
class _Step:
    """One packet, in the order of the file."""

    at_byte: int
    stream: int
    start_s: Fraction
    end_s: Fraction


class ClockWatch:
    """Sees the packets of one stream pass.

    Attributes:
        has_jumped: A time did not follow the one before.
    """

    def __init__(self) -> None:
        self.has_jumped = False
        self._last: int | None = None

    def see(self, packet: "Packet[Stream]") -> None:
        """Compare a packet's time with that of the one before."""
        dts = packet.dts
        # Most steps are small and ahead; fractions for each would cost more than reading the file.
        if dts is not None and self._last is not None and not 0 <= dts - self._last <= _USUAL_TICKS:
            self.has_jumped |= _is_jump((dts - self._last) * packet.time_base)
        self._last = self._last if dts is None else dts


def _is_jump(step_s: Fraction) -> bool:
    return not -_BACK_S <= step_s <= _AHEAD_S


def clock_jumps(path: Path) -> tuple[ClockJump, ...]:
    """Where the clock of a transport stream jumps; reads all of it.

    Raises:
        MediaError: It cannot be read.
    """
    found: list[ClockJump] = []
    ends: dict[int, Fraction] = {}
    shift = Fraction(0)
    for step in sorted(_steps(path), key=lambda each: each.at_byte):
        last = ends.get(step.stream)
        if last is not None and _is_jump(step.start_s + shift - last):
            shift = max(ends.values()) - step.start_s
            found.append(ClockJump(from_byte=step.at_byte, add_s=shift))
        ends[step.stream] = max(step.end_s + shift, last or step.end_s + shift)
    return tuple(found)


def running_on(
    found: Iterable["Packet[Stream]"], jumps: tuple[ClockJump, ...]
) -> Iterator["Packet[Stream]"]:
    """The packets, with times that run on over the jumps."""
    if not jumps:
        yield from found
        return
    for at_byte, packet in _placed(found):
        add_s = next((j.add_s for j in reversed(jumps) if at_byte >= j.from_byte), Fraction(0))
        add = round(add_s / packet.time_base)
        if packet.pts is not None:
            packet.pts += add
        if packet.dts is not None:
            packet.dts += add
        yield packet


def _steps(path: Path) -> Iterator[_Step]:
    with opened(path, MediaKind.MPEGTS) as container:
        streams = (*container.streams.video, *container.streams.audio)
        for at_byte, packet in _placed(packets(container, *streams)):
            at = packet.dts if packet.dts is not None else packet.pts
            if at is not None:
                start_s = at * packet.time_base
                end_s = start_s + (packet.duration or 0) * packet.time_base
                yield _Step(at_byte, packet.stream_index, start_s, end_s)


def _placed(found: Iterable["Packet[Stream]"]) -> Iterator[tuple[int, "Packet[Stream]"]]:
    """Packets and their places; those that were cut out of a larger one share its place."""
    places: dict[int, int] = {}
    for packet in found:
        if packet.pos is not None:
            places[packet.stream_index] = packet.pos
        yield places.get(packet.stream_index, 0), packet

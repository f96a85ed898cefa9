"""Whether an MPEG transport stream ends where a packet of one of its streams does; its length it never says.

Source: ISO/IEC 13818-1, 2.4.3 (transport packets, PES packets).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_SYNC: Final = 0x47
_PACKET_BYTES: Final = 188
_STEPS: Final = (188, 192)
_TAIL_BYTES: Final = 4 << 20
"""A packet of sound, and whatever lies between its pieces, is shorter."""


class _Piece(NamedTuple):
    """What one transport packet carries."""

    pid: int
    is_start: bool
    payload: bytes


def ends_within_packet(path: Path) -> bool:
    """True when the last packet of the file, or of one of its streams, is not there as a whole.

    Video packets mostly do not say how long they are; sound, which lies between them, does.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_STEPS[-1] * 4)
        step = next((each for each in _STEPS if _is_step(head, each)), None)
        if step is None:
            return False
        if size % step:
            return True
        file.seek(max(0, size - _TAIL_BYTES) // step * step)
        tail = file.read()
    awaited: dict[int, int] = {}
    for piece in _pieces(tail, step):
        if piece.is_start:
            awaited[piece.pid] = _pes_bytes(piece.payload)
        if piece.pid in awaited:
            awaited[piece.pid] -= len(piece.payload)
    return any(left > 0 for left in awaited.values())


def _is_step(head: bytes, step: int) -> bool:
    marks = head[step - _PACKET_BYTES :: step][:4]
    return len(marks) >= 2 and all(mark == _SYNC for mark in marks)


def _pieces(tail: bytes, step: int) -> Iterator[_Piece]:
    for at in range(step - _PACKET_BYTES, len(tail) - _PACKET_BYTES + 1, step):
        packet = tail[at : at + _PACKET_BYTES]
        control = packet[3] >> 4 & 3
        if packet[0] != _SYNC or not control & 1:
            continue
        start = 5 + packet[4] if control & 2 else 4
        pid = int.from_bytes(packet[1:3], "big") & 0x1FFF
        yield _Piece(pid, bool(packet[1] & 0x40), packet[start:])


def _pes_bytes(payload: bytes) -> int:
    """Length of the PES packet that begins here; 0 for one that does not say, and for tables."""
    if not payload.startswith(b"\0\0\1") or len(payload) < 6:
        return 0
    length = int.from_bytes(payload[4:6], "big")
    return 6 + length if length else 0

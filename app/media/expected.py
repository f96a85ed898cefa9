"""Which frames went into a decoder and never came out."""

import heapq


class ExpectedFrames:
    """Presentation times that were sent to a decoder and are still awaited.

    A decoder says that something is wrong, but not with which frame: with threads the word comes late, and a frame may
    vanish without any. The presentation times tell, as long as every packet makes one frame with the packet's time.
    Where that does not hold (hidden frames, times that the decoder had to guess) nothing is claimed.

    Args:
        is_reliable: False for a codec whose packets do not all make a frame.
    """

    def __init__(self, *, is_reliable: bool = True) -> None:
        self._waiting: list[int] = []
        self._is_reliable = is_reliable

    def sent(self, pts: int | None) -> None:
        """A packet with this time went in."""
        if pts is None:
            self._is_reliable = False
        else:
            heapq.heappush(self._waiting, pts)

    def came_out(self, pts: int | None) -> list[int]:
        """A frame came out; the times before it whose frames did not, in order."""
        if pts is None:
            self._is_reliable = False
            return []
        earlier: list[int] = []
        while self._waiting and self._waiting[0] < pts:
            earlier.append(heapq.heappop(self._waiting))
        if self._waiting and self._waiting[0] == pts:
            heapq.heappop(self._waiting)
        else:
            self._is_reliable = False
        return earlier if self._is_reliable else []

    def never_came(self) -> list[int]:
        """At the end: all times that are still awaited, in order."""
        return sorted(self._waiting) if self._is_reliable else []

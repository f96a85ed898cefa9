"""Frames that vanished between two others: told by their times, once something else says that the file is damaged."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from statistics import median_low
from typing import Final

from app.media.deinterlace import Shown

_REMEMBERED: Final = 24
_NEAR_FRAMES: Final = 100
"""Decoders hold frames back, and a key frame may be far; a gap farther on has another reason."""

_LEAST_STEPS: Final = 3
_STEADY_SHARE: Final = 0.8
_SLACK: Final = 0.25
"""Steps differ by this part of one when a clock is coarse, and by a whole one where a frame is missing."""


class Complaints:
    """Whether a file is damaged: what demuxer and decoder say on the way, and, when it matters, a look at it.

    Args:
        look: Looks whether the file's parts follow each other as they should; asked once at most.

    Attributes:
        were_heard: Somebody has said so.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self.were_heard = False
        self._look = look
        self._seen: bool | None = None
        self._frames_since = 0

    def hear(self) -> None:
        """Somebody says so now."""
        self.were_heard = True
        self._frames_since = 0

    def explain_gap(self) -> bool:
        """True when a gap here is one that damage has made: told of just now, or seen by looking."""
        if self.were_heard and self._frames_since <= _NEAR_FRAMES:
            return True
        if self._seen is None:
            self._seen = self._look()
        return self._seen

    def frame_passed(self) -> None:
        """A frame came out: what was said is farther away."""
        self._frames_since += 1


class Holes:
    """Fills the holes in video of a steady rate with moments that lack their frame.

    A gap alone means nothing: video of a variable rate is full of them. It counts when the rate was steady before, and
    somebody has said that the file is damaged.

    Args:
        complaints: Asked at each gap.
    """

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._steps: deque[int] = deque(maxlen=_REMEMBERED)
        self._last: int | None = None

    def filled(self, shown: Iterable[Shown]) -> Iterator[Shown]:
        """All moments in order, with those that should have been there."""
        for each in shown:
            self._complaints.frame_passed()
            if each.pts is not None:
                yield from self._missing_before(each.pts)
                self._last = each.pts
            yield each

    def _missing_before(self, pts: int) -> Iterator[Shown]:
        if self._last is None or pts <= self._last:
            return
        gap, step = pts - self._last, self._steady_step()
        count = 0 if step is None else round(gap / step) - 1
        if count <= 0 or not self._complaints.explain_gap():
            self._steps.append(gap)
            return
        for index in range(1, count + 1):
            yield Shown(self._last + gap * index // (count + 1), None)

    def _steady_step(self) -> int | None:
        if len(self._steps) < _LEAST_STEPS:
            return None
        usual = median_low(self._steps)
        near = sum(abs(step - usual) <= max(1, _SLACK * usual) for step in self._steps)
        return usual if near >= _STEADY_SHARE * len(self._steps) else None

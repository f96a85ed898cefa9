"""Frames that vanished between two others: told by their times, once something else says that the file is damaged."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from statistics import median_low
from typing import Final

from app.media.deinterlace import Shown

_REMEMBERED: Final = 24
_LEAST_STEPS: Final = 3
_STEADY_SHARE: Final = 0.8
_SLACK: Final = 0.25
"""Steps differ by this part of one when a clock is coarse, and by a whole one where a frame is missing."""


class Complaints:
    """Whether a file is damaged: what demuxer and decoder have said so far, and, when it matters, a look at it.

    Args:
        look: Looks whether the file's parts follow each other as they should; asked once at most.

    Attributes:
        were_heard: Somebody has said so.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self.were_heard = False
        self._look: Callable[[], bool] | None = look

    def are_justified(self) -> bool:
        """True when the file is damaged."""
        if not self.were_heard and self._look is not None:
            self.were_heard, self._look = self._look(), None
        return self.were_heard


class Holes:
    """Fills the holes in video of a steady rate with moments that lack their frame.

    A gap alone means nothing: video of a variable rate is full of them. It counts when the rate was steady before, and
    somebody has said that the file is damaged.

    Args:
        is_damaged: Asked at each gap.
    """

    def __init__(self, is_damaged: Callable[[], bool]) -> None:
        self._is_damaged = is_damaged
        self._steps: deque[int] = deque(maxlen=_REMEMBERED)
        self._last: int | None = None

    def filled(self, shown: Iterable[Shown]) -> Iterator[Shown]:
        """All moments in order, with those that should have been there."""
        for each in shown:
            if each.pts is not None:
                yield from self._missing_before(each.pts)
                self._last = each.pts
            yield each

    def _missing_before(self, pts: int) -> Iterator[Shown]:
        if self._last is None or pts <= self._last:
            return
        gap, step = pts - self._last, self._steady_step()
        count = 0 if step is None else round(gap / step) - 1
        if count <= 0 or not self._is_damaged():
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

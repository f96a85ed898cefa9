"""Interlaced frames made whole: each keeps its place and time, its missing lines come from its neighbors."""

from collections import deque
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

import av
from av import VideoFrame
from av.filter import Graph


class Shown(NamedTuple):
    """A moment of showing: its time, and its frame, or `None` where a frame should be."""

    pts: int | None
    frame: VideoFrame | None


class Deinterlacer:
    """Passes progressive frames on as they are; from the first interlaced one on all go through the filter.

    The filter (`bwdif`) leaves frames alone that say that they are progressive.

    Attributes:
        has_worked: An interlaced frame was there.
    """

    def __init__(self) -> None:
        self.has_worked = False

    def passed(self, shown: Iterable[Shown]) -> Iterator[Shown]:
        """All moments, in order, with whole frames."""
        graph: Graph | None = None
        size_wh = (0, 0)
        waiting: deque[Shown] = deque()
        for each in shown:
            frame = each.frame
            if frame is not None and frame.interlaced_frame and graph is None:
                self.has_worked = True
                graph, size_wh = _graph(frame), (frame.width, frame.height)
            # A frame of another size is for the caller to refuse.
            if graph is None or (frame is not None and (frame.width, frame.height) != size_wh):
                yield from waiting
                waiting.clear()
                yield each
                continue
            waiting.append(each)
            if frame is not None:
                graph.push(frame)
                yield from _ready(graph, waiting)
        if graph is not None:
            graph.push(None)
            yield from _ready(graph, waiting)
        yield from waiting


def _graph(frame: VideoFrame) -> Graph:
    graph = Graph()
    source = graph.add_buffer(
        width=frame.width,
        height=frame.height,
        format=frame.format,
        time_base=frame.time_base or Fraction(1, 1000),
    )
    graph.link_nodes(
        source, graph.add("bwdif", "mode=send_frame:deint=interlaced"), graph.add("buffersink")
    ).configure()
    return graph


def _ready(graph: Graph, waiting: deque[Shown]) -> Iterator[Shown]:
    """What the filter has finished; it gives back one frame for each, in order, but late."""
    while waiting:
        if waiting[0].frame is None:
            yield waiting.popleft()
            continue
        try:
            frame = graph.pull()
        except (av.BlockingIOError, av.EOFError):
            return
        assert isinstance(frame, VideoFrame)
        yield Shown(waiting.popleft().pts, frame)

"""Runs a plan's stages, one after the other or each in its own thread.

A stage is a generator function over items and knows nothing of threads. Threaded, neighbours are joined by a
bounded link, so memory is `depth + 1` items a stage; with the usual depth of 0 an item waits with its maker. The first
error, wherever it happens, reaches the caller; whoever walks away (an error, a cancel, a closed generator) unblocks
everybody else, and every thread is joined.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Generic, TypeVar

from app.runtime.occupancy import WorkClock

T = TypeVar("T")

Stage = Callable[[Iterator[T]], Iterator[T]]


class AbandonedError(Exception):
    """Raised inside a producer whose consumer is gone; never leaves this module."""


class Link(Generic[T]):
    """A bounded queue between two threads that either end can give up.

    Args:
        depth: Items that may lie in it.
        giver: Stands still while the giving end waits for room.
        taker: Stands still while the taking end waits for an item; `None` where nobody counts.
    """

    def __init__(
        self, depth: int, *, giver: WorkClock | None = None, taker: WorkClock | None = None
    ) -> None:
        self._depth = depth
        self._giver = giver or WorkClock()
        self._taker = taker or WorkClock()
        self._items: deque[T] = deque()
        self._is_awaited = False
        self._changed = threading.Condition()
        self._finished = False
        self._abandoned = False
        self._error: BaseException | None = None

    def put(self, item: T) -> None:
        """Hand over an item, waiting while the link is full; a link of depth 0 is full unless somebody waits for it.

        Raises:
            AbandonedError: Nobody will take it.
        """
        with self._changed:
            with self._giver.waiting():
                self._changed.wait_for(lambda: self._abandoned or self._has_room())
            if self._abandoned:
                raise AbandonedError
            self._items.append(item)
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._items) < self._depth + self._is_awaited

    def finish(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes, and why if something broke."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def abandon(self) -> None:
        """Say that nothing more will be taken; what lies in the link is dropped."""
        with self._changed:
            self._abandoned = True
            self._items.clear()
            self._changed.notify_all()

    def items(self) -> Iterator[T]:
        """Take items until the producer finishes; its error is raised after the last item."""
        while True:
            with self._changed:
                self._is_awaited = True
                self._changed.notify_all()
                with self._taker.waiting():
                    self._changed.wait_for(lambda: self._items or self._finished or self._abandoned)
                self._is_awaited = False
                if not self._items:
                    break
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error


def run_serial(source: Iterable[T], stages: Iterable[Stage[T]]) -> Iterator[T]:
    """Nest the stages in this thread: for one frame, for tests, and to debug."""
    items = iter(source)
    for stage in stages:
        items = stage(items)
    return items


def run_threaded(
    source: Iterable[T],
    stages: Sequence[Stage[T]],
    *,
    depth: int = 0,
    clocks: Sequence[WorkClock] = (),
) -> Generator[T, None, None]:
    """Run the source and each stage in a thread of its own; yields what the last one makes.

    Args:
        source: Iterated in its own thread.
        stages: Each takes the items of the one before.
        depth: Items that may wait between two threads, besides the one that its maker holds.
        clocks: Count the work of the source and of each stage, one a thread; none where nobody asks.

    Raises:
        BaseException: The first error of any of them, after the items made before it.
    """
    counted = [*clocks] or [WorkClock() for _ in range(len(stages) + 1)]
    takers = [*counted[1:], None]
    links: list[Link[T]] = [
        Link(depth, giver=giver, taker=taker) for giver, taker in zip(counted, takers, strict=True)
    ]
    work = [partial(_feed, source, links[0])]
    for stage, inbox, out in zip(stages, links[:-1], links[1:], strict=True):
        work.append(partial(_work, stage, inbox, out))
    names = ["source", *(f"stage-{index}" for index in range(len(stages)))]
    threads = [
        threading.Thread(target=_counted, args=(clock, run), name=name)
        for clock, run, name in zip(counted, work, names, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield from links[-1].items()
    finally:
        for link in links:
            link.abandon()
        for thread in threads:
            thread.join()


def _counted(clock: WorkClock, run: Callable[[], None]) -> None:
    with clock.at_work():
        run()


def _feed(source: Iterable[T], out: Link[T]) -> None:
    _pump(iter(source), out)


def _work(stage: Stage[T], inbox: Link[T], out: Link[T]) -> None:
    try:
        _pump(stage(inbox.items()), out)
    finally:
        inbox.abandon()


def _pump(items: Iterator[T], out: Link[T]) -> None:
    error: BaseException | None = None
    try:
        for item in items:
            out.put(item)
    except AbandonedError:
        pass
    except BaseException as failure:  # noqa: BLE001 - carried to the caller, who raises it
        error = failure
    finally:
        _close(items)
        out.finish(error)


def _close(items: Iterator[T]) -> None:
    """Let a generator run its `finally` in the thread that ran it."""
    if isinstance(items, Generator):
        with closing(items):
            pass

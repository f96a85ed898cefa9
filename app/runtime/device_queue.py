"""One thread that talks to a device, and the queue before it.

Calls of all jobs and views for the same network, with pictures of the same size, go to the device together, up to the
batch that it does best. Calls of a person who waits go first; a batch under way is never stopped, so such a call waits
for at most one. Of a call with more rows than one batch takes, the rest stays at the head of its queue.

A batch is not kept waiting for callers that may never come. Only while others have called the same network just before,
and are not in the queue, the thread waits for them, a few milliseconds at most: a lone caller pays nothing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.errors import Cancelled, DeviceError
from app.inference.crops import Work
from app.inference.one_by_one import batch_of, rows_of
from app.inference.spec import Feeds, ModelId, Outputs

Key = tuple[object, ...]
Run = Callable[[ModelId, Feeds], Outputs]
BestSize = Callable[[ModelId, Feeds], int]

_WORK = ModelId("")
_WORK_KEY: Key = (_WORK,)
"""Of work that is no network's, and shares no batch."""
_LOOK_S = 0.5
_UNKNOWN_SIZE = 8
_JOB_TURN = 8
"""After so many batches of people who wait, one batch of a job has its turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueOptions:
    """How the queue behaves.

    Attributes:
        linger_s: The longest wait for a caller that is expected.
        recent_s: Whoever called within this time is expected again.
        hang_s: A batch that takes longer means that the device is lost.
    """

    linger_s: float = 0.003
    recent_s: float = 0.05
    hang_s: float = 180.0


@dataclass(slots=True, eq=False)
class _Request:
    model_id: ModelId
    key: Key
    feeds: Feeds
    rows: int
    is_interactive: bool
    arrived_s: float
    work: Work | None = None
    taken: int = 0
    parts: list[Outputs] = field(default_factory=list)
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def settle(self, error: BaseException | None = None) -> None:
        self.error = error
        self.done.set()


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Some rows of a request that go into one batch."""

    request: _Request
    feeds: Feeds
    rows: int


class DeviceQueue:
    """Puts calls together and runs them in one thread, which starts with the first call.

    Args:
        run: Runs a batch.
        best_size: How many rows a network does best at once; asked once for each network and size of picture, in the
            device's thread, with one row.
        options: Waits.
    """

    def __init__(self, run: Run, best_size: BestSize, options: QueueOptions | None = None) -> None:
        self._run = run
        self._best_size = best_size
        self._options = options or QueueOptions()
        self._changed = threading.Condition()
        self._people: deque[_Request] = deque()
        self._jobs: deque[_Request] = deque()
        self._sizes: dict[Key, int] = {}
        self._callers: dict[Key, dict[int, float]] = {}
        self._alone: set[Key] = {_WORK_KEY}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._busy_since_s: float | None = None
        self._lost: DeviceError | None = None
        self._turns = 0

    # ---- callers -------------------------------------------------------------------------------------------------

    def call(self, model_id: ModelId, feeds: Feeds, *, is_interactive: bool) -> Outputs:
        """Run a batch of any size and wait for it; rows come back in their order.

        Args:
            model_id: Of the network.
            feeds: Its input.
            is_interactive: Somebody waits and watches: goes before the jobs.

        Raises:
            AppError: What running it raised.
            Cancelled: The queue was closed.
            DeviceError: The device does not answer.
        """
        rows = batch_of(feeds)
        now = time.monotonic()
        return self._settled(
            _Request(model_id, _key(model_id, feeds), feeds, rows, is_interactive, now)
        )

    def call_work(self, work: Work, *, is_interactive: bool) -> Outputs:
        """Let the device's thread do something else with the device, in its turn; raises as `call`."""
        now = time.monotonic()
        return self._settled(_Request(_WORK, _WORK_KEY, {}, 1, is_interactive, now, work))

    def _settled(self, request: _Request) -> Outputs:
        try:
            self._enter(request)
            while not request.done.wait(_LOOK_S):
                self._check_alive()
        except BaseException:
            self._leave(request)
            raise
        if request.error is not None:
            raise request.error
        return _joined(request.parts)

    def close(self) -> None:
        """Let the batch under way end, refuse what waits, and end the thread."""
        with self._changed:
            self._is_closed = True
            waiting = [*self._people, *self._jobs]
            self._people.clear()
            self._jobs.clear()
            self._changed.notify_all()
        for request in waiting:
            request.settle(Cancelled("the device's queue is closed"))
        # A thread that hangs inside the device cannot be ended; it is a daemon, and dies with its process.
        if self._thread is not None and self._lost is None:
            self._thread.join()

    def _enter(self, request: _Request) -> None:
        with self._changed:
            if self._lost is not None:
                raise self._lost
            if self._is_closed:
                raise Cancelled("the device's queue is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="device", daemon=True)
                self._thread.start()
            callers = self._callers.setdefault(request.key, {})
            callers[threading.get_ident()] = request.arrived_s
            (self._people if request.is_interactive else self._jobs).append(request)
            self._changed.notify_all()

    def _leave(self, request: _Request) -> None:
        """Take back a request whose caller does not wait any more."""
        with self._changed:
            for queue in (self._people, self._jobs):
                if request in queue:
                    queue.remove(request)

    def _check_alive(self) -> None:
        with self._changed:
            since = self._busy_since_s
            if self._lost is None and since is not None:
                if time.monotonic() - since < self._options.hang_s:
                    return
                self._lost = DeviceError(
                    f"the device has not answered for {self._options.hang_s:.0f} s"
                )
                self._changed.notify_all()
            if self._lost is not None:
                raise self._lost

    # ---- the device's thread -------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (lead := self._lead()) is not None:
            size = self._size_for(lead)
            parts = self._gathered(lead, size)
            if parts:
                self._run_parts(parts)

    def _lead(self) -> _Request | None:
        """The request whose turn it is; `None` when the queue is closed."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._people or self._jobs or self._is_closed or self._lost
            )
            if self._is_closed or self._lost:
                return None
            is_jobs_turn = self._jobs and (not self._people or self._turns >= _JOB_TURN)
            self._turns = 0 if is_jobs_turn else self._turns + 1
            return self._jobs[0] if is_jobs_turn else self._people[0]

    def _size_for(self, lead: _Request) -> int:
        if lead.key in self._alone or lead.rows == 0:
            return max(1, lead.rows)
        if lead.key not in self._sizes:
            if lead.is_interactive:
                return _UNKNOWN_SIZE
            try:
                with self._busy():
                    size = self._best_size(lead.model_id, rows_of(lead.feeds, 0, 1))
            except Exception:  # noqa: BLE001 - running the request itself will tell what is wrong
                return _UNKNOWN_SIZE
            self._sizes[lead.key] = size
        return self._sizes[lead.key]

    def _gathered(self, lead: _Request, size: int) -> list[_Part]:
        """What goes to the device together, the lead's rows first; waits for callers that are expected."""
        deadline = time.monotonic() + self._options.linger_s
        with self._changed:
            while not lead.is_interactive and self._is_worth_waiting(lead, size):
                left = deadline - time.monotonic()
                if left <= 0 or self._is_closed or self._people:
                    break
                self._changed.wait(left)
            return [*self._taken(lead, size)]

    def _is_worth_waiting(self, lead: _Request, size: int) -> bool:
        waiting = [request for request in self._jobs if request.key == lead.key]
        if lead.key in self._alone or sum(r.rows - r.taken for r in waiting) >= size:
            return False
        now, callers = time.monotonic(), self._callers[lead.key]
        for name in [n for n, seen in callers.items() if now - seen > self._options.recent_s]:
            del callers[name]
        return len(callers) > len(waiting)

    def _taken(self, lead: _Request, size: int) -> list[_Part]:
        parts: list[_Part] = []
        room = size
        others = [] if lead.key in self._alone else [*self._people, *self._jobs]
        for request in [lead, *(each for each in others if each is not lead)]:
            if request.key != lead.key or not self._is_waiting(request):
                continue
            rows = min(room, request.rows - request.taken)
            if rows < 1 and request.rows:
                break
            parts.append(self._part(request, rows))
            room -= rows
        return parts

    def _is_waiting(self, request: _Request) -> bool:
        return request in (self._people if request.is_interactive else self._jobs)

    def _part(self, request: _Request, rows: int) -> _Part:
        whole = rows == request.rows
        start = request.taken
        request.taken += rows
        if request.taken >= request.rows:
            (self._people if request.is_interactive else self._jobs).remove(request)
        feeds = request.feeds if whole else rows_of(request.feeds, start, start + rows)
        return _Part(request, feeds, rows)

    def _run_parts(self, parts: Sequence[_Part]) -> None:
        try:
            with self._busy():
                outputs = self._outputs(parts[0].request, _stacked(parts))
            shared = _split(outputs, parts)
        except Exception as error:  # noqa: BLE001 - carried to the callers, who raise it
            self._failed(parts, error)
        else:
            if shared is None:
                # Its outputs are not by row: from now on each call has the device for itself.
                self._alone.add(parts[0].request.key)
                for part in parts:
                    self._run_whole(part.request)
            else:
                for part, rows in zip(parts, shared, strict=True):
                    self._give(part, rows)

    def _outputs(self, request: _Request, feeds: Feeds) -> Outputs:
        return self._run(request.model_id, feeds) if request.work is None else request.work()

    def _failed(self, parts: Sequence[_Part], error: Exception) -> None:
        """One bad item fails alone; a lost device fails everybody."""
        if len(parts) == 1 or type(error) is DeviceError:
            for part in parts:
                self._drop(part.request, error)
        else:
            self._run_alone(parts)

    def _run_alone(self, parts: Sequence[_Part]) -> None:
        for part in parts:
            try:
                with self._busy():
                    outputs = self._outputs(part.request, part.feeds)
            except Exception as error:  # noqa: BLE001 - carried to the caller, who raises it
                self._drop(part.request, error)
            else:
                self._give(part, outputs)

    def _run_whole(self, request: _Request) -> None:
        """Run all rows of a request at once, whatever was run of it before."""
        self._leave(request)
        request.taken = request.rows
        request.parts.clear()
        self._run_alone([_Part(request, request.feeds, request.rows)])

    def _give(self, part: _Part, outputs: Outputs) -> None:
        request = part.request
        request.parts.append(outputs)
        if request.taken >= request.rows and not request.done.is_set():
            request.settle()

    def _drop(self, request: _Request, error: BaseException) -> None:
        self._leave(request)
        request.settle(error)

    def _busy(self) -> "_Busy":
        return _Busy(self)

    def mark_busy(self, since_s: float | None) -> None:
        """Note since when the device has been at work; `None` when it is not."""
        self._busy_since_s = since_s


class _Busy:
    """Marks the device as at work for the length of a `with`."""

    def __init__(self, queue: DeviceQueue) -> None:
        self._queue = queue

    def __enter__(self) -> None:
        self._queue.mark_busy(time.monotonic())

    def __exit__(self, *_: object) -> None:
        self._queue.mark_busy(None)


def _key(model_id: ModelId, feeds: Feeds) -> Key:
    """Calls of one key can share a batch: same network, same sizes, and the same single numbers."""
    ports = tuple(
        (
            name,
            array.dtype.str,
            array.shape[1:] if array.ndim > 1 else (array.shape, array.tobytes()),
        )
        for name, array in feeds.items()
    )
    return (model_id, *ports)


def _stacked(parts: Sequence[_Part]) -> Feeds:
    first = parts[0].feeds
    if len(parts) == 1:
        return first
    return {
        name: np.concatenate([part.feeds[name] for part in parts]) if array.ndim > 1 else array
        for name, array in first.items()
    }


def _split(outputs: Outputs, parts: Sequence[_Part]) -> list[Outputs] | None:
    """Each part's rows; `None` where an output has not one row for each of the input's."""
    if len(parts) == 1 and parts[0].rows == parts[0].request.rows:
        return [outputs]
    total = sum(part.rows for part in parts)
    if any(array.ndim < 1 or len(array) != total for array in outputs.values()):
        return None
    ends = np.cumsum([part.rows for part in parts]).tolist()
    return [
        {name: array[end - part.rows : end] for name, array in outputs.items()}
        for part, end in zip(parts, ends, strict=True)
    ]


def _joined(parts: Sequence[Outputs]) -> Outputs:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

"""Which networks are in a device's memory: opened when first run, let go by least recent use, within what is free.

On out-of-memory the batch is halved; where one row does not fit, the other networks are let go and it is tried once
more; where that does not help, the caller gets the error with advice. The process lives on in all cases.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count

import numpy as np

from app.core.errors import OutOfDeviceMemoryError
from app.inference.one_by_one import batch_of, rows_of
from app.inference.spec import Feeds, ModelId, Outputs, Session

AtWork = Callable[[], AbstractContextManager[None]]

logger = logging.getLogger(__name__)

_RESERVE_SHARE = 0.1
_GROW_AFTER = 64
_ADVICE = (
    "choose a smaller picture or another model, close other programs that use the device, "
    "or run on the CPU (--device cpu)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """A device's memory.

    Attributes:
        free_bytes: What is free now, other processes counted.
        budget_bytes: What our networks may take together; 0 is all that is free.
    """

    free_bytes: Callable[[], int]
    budget_bytes: int = 0


class Residency:
    """Opens networks and lets them go.

    Several threads may ask at once: two that ask for one unopened network may both open it, and one of the two is kept.

    Args:
        open_session: Opens a network.
        cost_bytes: What a network takes of the device's memory, roughly.
        room: The device's memory.
        at_work: Told of each run, by whoever counts how busy the device is.
    """

    def __init__(
        self,
        open_session: Callable[[ModelId], Session],
        cost_bytes: Callable[[ModelId], int],
        room: Room,
        *,
        at_work: AtWork = nullcontext,
    ) -> None:
        self.at_work = at_work
        self._open_session = open_session
        self._cost_bytes = cost_bytes
        self._room = room
        self._open: dict[ModelId, Session] = {}
        self._costs: dict[ModelId, int] = {}
        self._used_at: dict[ModelId, int] = {}
        self._uses = count()

    @property
    def resident(self) -> tuple[ModelId, ...]:
        """What is open, the one that goes first in front."""
        return tuple(sorted(self._open, key=lambda each: self._used_at.get(each, 0)))

    def session(self, model_id: ModelId) -> Session:
        """The open session of a network, opened now if it has to be.

        Raises:
            AppError: It cannot be opened.
            OutOfDeviceMemoryError: The device has no room for it, even alone.
        """
        self._used_at[model_id] = next(self._uses)
        if (known := self._open.get(model_id)) is not None:
            return known
        cost = self._cost_bytes(model_id)
        self._make_room(cost)
        try:
            session = self._open_session(model_id)
        except OutOfDeviceMemoryError:
            if not self.let_go(keep=model_id):
                raise
            session = self._open_session(model_id)
        self._costs[model_id] = cost
        return self._open.setdefault(model_id, session)

    def let_go(self, *, keep: ModelId | None = None) -> bool:
        """Let all networks go but one; tells whether there were any."""
        names = [model_id for model_id in self.resident if model_id != keep]
        for model_id in names:
            self._drop(model_id)
        return bool(names)

    def _make_room(self, cost: int) -> None:
        while self._open and cost > self._available():
            victim = self.resident[0]
            logger.info("%s is let go to make room", victim)
            self._drop(victim)

    def _available(self) -> int:
        free = self._room.free_bytes()
        available = free - round(free * _RESERVE_SHARE)
        if self._room.budget_bytes:
            used = sum(self._costs.get(model_id, 0) for model_id in list(self._open))
            available = min(available, self._room.budget_bytes - used)
        return available

    def _drop(self, model_id: ModelId) -> None:
        self._open.pop(model_id, None)


class ResidentSession:
    """A network that may be let go and opened again between two runs, and whose batches shrink to what fits.

    Args:
        model_id: Of the network.
        residency: Opens it.
    """

    def __init__(self, model_id: ModelId, residency: Residency) -> None:
        self._model_id = model_id
        self._residency = residency
        self._largest: int | None = None
        self._runs_at_largest = 0

    @property
    def largest_batch(self) -> int | None:
        """The most rows that fit, as far as is known; `None` while all have fitted."""
        return self._largest

    def run(self, feeds: Feeds) -> Outputs:
        """Run a batch, in parts where it does not fit; see `Session.run`.

        Raises:
            OutOfDeviceMemoryError: Not even one row fits, with all other networks let go.
        """
        with self._residency.at_work():
            return self._run(feeds)

    def _run(self, feeds: Feeds) -> Outputs:
        rows, largest = batch_of(feeds), self._largest
        if largest is None or rows <= largest:
            outputs = self._run_shrinking(feeds, rows)
        else:
            starts = range(0, rows, largest)
            parts = [rows_of(feeds, at, min(rows, at + largest)) for at in starts]
            outputs = _joined([self._run_shrinking(part, batch_of(part)) for part in parts])
        self._grow(rows)
        return outputs

    def _run_shrinking(self, feeds: Feeds, rows: int) -> Outputs:
        try:
            return self._residency.session(self._model_id).run(feeds)
        except OutOfDeviceMemoryError as error:
            if rows < 2:
                return self._run_alone(feeds, error)
        half = rows // 2
        self._largest = min(self._largest or half, half)
        self._runs_at_largest = 0
        logger.warning("%s: no memory for %d rows, going on with %d", self._model_id, rows, half)
        halves = rows_of(feeds, 0, half), rows_of(feeds, half, rows)
        return _joined([self._run_shrinking(part, batch_of(part)) for part in halves])

    def _run_alone(self, feeds: Feeds, error: OutOfDeviceMemoryError) -> Outputs:
        # Its own session, too: what it holds for larger batches comes free only with it.
        self._residency.let_go()
        try:
            return self._residency.session(self._model_id).run(feeds)
        except OutOfDeviceMemoryError as again:
            raise OutOfDeviceMemoryError(
                f"{self._model_id}: one picture does not fit into the device's memory; {_ADVICE}"
            ) from (again or error)

    def _grow(self, rows: int) -> None:
        """Try more again after a while: what took the memory may be gone."""
        if self._largest is None or rows < self._largest:
            return
        self._runs_at_largest += 1
        if self._runs_at_largest >= _GROW_AFTER:
            self._largest, self._runs_at_largest = self._largest * 2, 0


def _joined(parts: list[Outputs]) -> Outputs:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

"""Networks that take one picture at a time, run as if they took many."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from app.inference.spec import Feeds, Outputs, Session

RunMany = Callable[[Callable[[Feeds], Outputs], Sequence[Feeds]], Iterable[Outputs]]
"""Calls a function for each of several feeds and gives the results in their order, like `map`."""


class OneByOne:
    """Runs each row of a batch by itself.

    Args:
        session: Takes a batch of one.
        run_many: How the rows are run; `map` is one after the other, a pool of threads is side by side.
    """

    def __init__(self, session: Session, run_many: RunMany = map) -> None:
        self._session = session
        self._run_many = run_many

    def run(self, feeds: Feeds) -> Outputs:
        """Run a batch of any size but none; see `Session.run`."""
        rows = [one_row(feeds, index) for index in range(batch_of(feeds))]
        results = list(self._run_many(self._session.run, rows))
        return {name: _joined([result[name] for result in results]) for name in results[0]}


def batch_of(feeds: Feeds) -> int:
    """How many rows a feed has: the length of the first axis of what has more than one axis."""
    return next((len(array) for array in feeds.values() if array.ndim > 1), 1)


def one_row(feeds: Feeds, index: int) -> Feeds:
    """One row of each input; what is the same for all rows stays."""
    return rows_of(feeds, index, index + 1)


def rows_of(feeds: Feeds, start: int, stop: int) -> Feeds:
    """Some rows of each input; what is the same for all rows stays."""
    return {name: array[start:stop] if array.ndim > 1 else array for name, array in feeds.items()}


def _joined(rows: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Put rows together along the first axis; outputs that have no axis for the batch get one."""
    first = rows[0]
    has_axis = first.ndim > 1 and len(first) == 1
    return np.concatenate(rows) if has_axis else np.stack(rows)

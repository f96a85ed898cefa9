"""How many rows a network does best at once on this device: found by a short sweep, and remembered in a file."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.errors import OutOfDeviceMemoryError
from app.inference.fetch.store import write_atomically
from app.inference.spec import Feeds, ModelId, Outputs

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepLimits:
    """What a sweep may cost.

    Attributes:
        sizes: Batches that are tried, in this order.
        budget_s: No further size is tried after this time.
        longest_batch_s: No batch may take longer: somebody who waits and watches waits for it.
        gain: A larger batch has to make a row cheaper by this share.
    """

    sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    budget_s: float = 1.5
    longest_batch_s: float = 0.12
    gain: float = 0.05


class BatchSizes:
    """Remembers the best batch of each network and size of picture on each device.

    Args:
        path: The file; `None` remembers nothing beyond this process.
        device: Names the device, its driver and the runtime: another one is swept anew.
        limits: What a sweep may cost.
        clock: Seconds.
    """

    def __init__(
        self,
        path: Path | None,
        device: str,
        *,
        limits: SweepLimits | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._path = path
        self._device = device
        self._limits = limits or SweepLimits()
        self._clock = clock

    def best(self, model_id: ModelId, row: Feeds, run: Callable[[Feeds], Outputs]) -> int:
        """The best batch of a network for rows like this one.

        Args:
            model_id: Of the network.
            row: One row of real input.
            run: Runs a batch.

        Raises:
            AppError: Not even one row runs.
        """
        name = f"{model_id}:" + ",".join(
            "x".join(map(str, array.shape[1:])) for array in row.values()
        )
        known = self._load().get(self._device, {}).get(name)
        if known is not None:
            return known
        best = self._sweep(row, run)
        logger.info("%s runs best in batches of %d", name, best)
        self._keep(name, best)
        return best

    def _sweep(self, row: Feeds, run: Callable[[Feeds], Outputs]) -> int:
        best, cheapest_s = 1, float("inf")
        started_s = self._clock()
        for size in self._limits.sizes:
            try:
                took_s = self._time(_repeated(row, size), run)
            except OutOfDeviceMemoryError:
                if size == 1:
                    raise
                break
            if size > 1 and took_s > self._limits.longest_batch_s:
                break
            if took_s / size < cheapest_s * (1 - self._limits.gain):
                best, cheapest_s = size, took_s / size
            if self._clock() - started_s > self._limits.budget_s:
                break
        return best

    def _time(self, feeds: Feeds, run: Callable[[Feeds], Outputs]) -> float:
        """Seconds of the second run: the first one of a new size makes its buffers."""
        run(feeds)
        before_s = self._clock()
        run(feeds)
        return self._clock() - before_s

    def _load(self) -> dict[str, dict[str, int]]:
        if self._path is None:
            return {}
        try:
            stored = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return _checked(stored)

    def _keep(self, name: str, best: int) -> None:
        if self._path is None:
            return
        stored = self._load()
        stored.setdefault(self._device, {})[name] = best
        # A place that is closed to us costs a sweep at the next start, no more.
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(stored, sort_keys=True, indent=1).encode())


def _checked(stored: object) -> dict[str, dict[str, int]]:
    """What can be believed of a file that anybody may have edited."""
    if not isinstance(stored, Mapping):
        return {}
    return {
        str(device): {str(k): v for k, v in sizes.items() if isinstance(v, int) and v > 0}
        for device, sizes in stored.items()
        if isinstance(sizes, Mapping)
    }


def _repeated(row: Feeds, size: int) -> Feeds:
    return {
        name: np.repeat(array, size, axis=0) if array.ndim > 1 else array
        for name, array in row.items()
    }

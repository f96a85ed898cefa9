"""Proves on random input that a batch of n gives what n batches of one give."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ConversionError, ModelError
from app.inference.cores import usable_cores
from app.inference.ort_session import OrtSession
from app.inference.providers import CPU

Array = NDArray[np.generic]

_COUNTS = (3, 1)
_FREE_SIDES_PX = (64, 128, 224, 320, 640)
_MAX_DIFFERENCE = 1e-4
_MAX_HALF_DIFFERENCE = 4e-3
"""Of 16-bit numbers, whose last digit is worth 1e-3."""


def prove_batch(original: bytes, freed: bytes, *, seed: int = 0) -> None:
    """Compare a network in batches with the original, one by one.

    Args:
        original: Runs with a batch of one.
        freed: Is to run with any.
        seed: Of the random input.

    Raises:
        ConversionError: They differ by more than 1e-4 of the largest value, or one of them does not run.
    """
    threads = usable_cores()
    try:
        one_by_one = OrtSession("original", original, provider=CPU, threads=threads)
        together = OrtSession("freed", freed, provider=CPU, threads=threads)
        rows = _random_rows(one_by_one, np.random.default_rng(seed))
        wanted = [one_by_one.run(row) for row in rows]
        for count in _COUNTS:
            got = together.run(_joined(rows[:count]))
            for name, values in got.items():
                _compare(name, values, [each[name] for each in wanted[:count]])
    except ModelError as error:
        if isinstance(error, ConversionError):
            raise
        raise ConversionError(f"batch: the proof could not run: {error.message}") from error


def _random_rows(session: OrtSession, random: np.random.Generator) -> list[dict[str, Array]]:
    """Three feeds of one row that the network takes."""
    problem: ModelError | None = None
    for side_px in _FREE_SIDES_PX:
        rows = [
            {port.name: port.random(random, side_px) for port in session.inputs}
            for _ in range(_COUNTS[0])
        ]
        for port in session.inputs:
            if not port.is_batched:
                for row in rows[1:]:
                    row[port.name] = rows[0][port.name]
        try:
            session.run(rows[0])
        except ModelError as error:
            problem = error
        else:
            return rows
    raise ConversionError(f"batch: no size of input was taken: {problem}")


def _joined(rows: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """One feed of several rows; what has no axis for them is the same in all."""
    return {
        name: np.concatenate([row[name] for row in rows]) if first.ndim > 1 else first
        for name, first in rows[0].items()
    }


def _compare(name: str, got: Array, wanted: Sequence[Array]) -> None:
    count = len(wanted)
    if len(got) != count:
        raise ConversionError(f"batch: output {name} has {len(got)} rows for {count} pictures")
    limit = _MAX_HALF_DIFFERENCE if got.dtype == np.float16 else _MAX_DIFFERENCE
    for row, alone in zip(got, wanted, strict=True):
        if row.size != alone.size:
            raise ConversionError(
                f"batch: output {name} has rows of {row.size}, wanted {alone.size}"
            )
        a, b = np.float64(row).ravel(), np.float64(alone).ravel()
        if not np.isfinite(a).all() or not np.isfinite(b).all():
            raise ConversionError(f"batch: output {name} is not finite")
        off = float(np.abs(a - b).max(initial=0)) / max(float(np.abs(b).max(initial=0)), 1e-6)
        if off > limit:
            raise ConversionError(
                f"batch: output {name} of {count} together differs by {off:.1e}, wanted {limit:.0e}"
            )

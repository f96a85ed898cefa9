"""What an installation tells while it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PullPhase = Literal["wait", "download", "convert", "done"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PullProgress:
    """One step of an installation.

    Attributes:
        phase: `wait` for another process that installs, `download` a source, `convert` and prove a model,
            `done` with a model.
        what: The source's or model's name; empty for `wait`.
        bytes_done: Of a download; 0 in the other phases.
        bytes_total: Of a download, as far as known.
    """

    phase: PullPhase
    what: str = ""
    bytes_done: int = 0
    bytes_total: int | None = None


OnProgress = Callable[[PullProgress], None]


def ignore_progress(_: PullProgress) -> None:
    """Tell nobody."""

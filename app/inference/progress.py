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

    def __str__(self) -> str:
        """One line for people."""
        if self.phase == "wait":
            return "waiting for another process that installs models"
        if self.phase != "download":
            return {"convert": "converting", "done": "installed"}[self.phase] + f" {self.what}"
        total = f" of {self.bytes_total / 1e6:.1f}" if self.bytes_total else ""
        return f"downloading {self.what}: {self.bytes_done / 1e6:.1f}{total} MB"


OnProgress = Callable[[PullProgress], None]


def ignore_progress(_: PullProgress) -> None:
    """Tell nobody."""

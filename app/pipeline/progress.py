"""What a running job tells, and what a finished one has made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.core.types import Notice

WorkPart = Literal["decode", "find_faces", "change_faces", "device", "encode"]
"""What of a job goes on at the same time, in the order of the way of a frame.

`device` is the networks' own time, within that of the two parts that use them.
"""

Busy = Mapping[WorkPart, float]
"""Share of the time in which a part worked, 0 to 1; the rest it waited for its neighbors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a job is.

    Attributes:
        frames_total: As far as the file tells beforehand; `None` when it does not.
        fps: Frames a second since the job started.
        busy: Of the last seconds, by part; the busiest part sets the pace. Empty while nothing is known.
    """

    frames_done: int
    frames_total: int | None
    fps: float
    elapsed_s: float
    busy: Busy = field(default_factory=dict)

    @property
    def remaining_s(self) -> float | None:
        """Seconds still needed at the speed so far; `None` while nobody can know."""
        if self.frames_total is None or self.fps <= 0:
            return None
        return max(0, self.frames_total - self.frames_done) / self.fps


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonCount:
    """How often a person of whom the face map says something was changed.

    Attributes:
        who: As in the face map: "person 2", "reference 1", "largest".
        frames: In so many frames the person's face was swapped or blurred.
    """

    who: str
    frames: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderResult:
    """What a finished job has made; every frame is in the output, swapped or not.

    Attributes:
        people: One for each person whom the face map changes, in its order; nobody where it names nobody.
        busy: Of the whole job, by part.
    """

    output: Path
    frames: int
    frames_swapped: int
    faces_swapped: int
    notices: tuple[Notice, ...] = ()
    people: tuple[PersonCount, ...] = ()
    busy: Busy = field(default_factory=dict)

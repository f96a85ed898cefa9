"""A session that costs what a device would, and fails as one would; no network needed."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.core.errors import DeviceError, ModelError, OutOfDeviceMemoryError
from app.inference.one_by_one import batch_of
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session


@dataclass
class FaultySession:
    """`y = 2 x`, in `fixed_s + rows * row_s`; or one of the faults.

    Attributes:
        room: More rows than these are out of memory; `None` is no limit.
        poison: A row that holds this value fails its batch.
        fault: `nan`, `zeros`, `crash` (the device is lost), `oom`, `hang` (until `release` is set), `scalar` (an output
            that is not by row), `bug` (an error that is none of ours); empty is none.
        batches: Rows of each batch that was run.
    """

    fixed_s: float = 0.0
    row_s: float = 0.0
    room: int | None = None
    poison: float | None = None
    fault: str = ""
    batches: list[int] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    release: threading.Event = field(default_factory=threading.Event)
    on_run: Callable[[Feeds], None] = lambda feeds: None

    def run(self, feeds: Feeds) -> Outputs:
        x, rows = np.asarray(feeds["x"], np.float32), batch_of(feeds)
        self.threads.add(threading.current_thread().name)
        self.on_run(feeds)
        if (self.room is not None and rows > self.room) or self.fault == "oom":
            raise OutOfDeviceMemoryError(f"no room for {rows} rows")
        self.batches.append(rows)
        if self.fault == "hang":
            self.release.wait()
        if self.fault == "crash":
            raise DeviceError("the device is gone")
        if self.fault == "bug":
            raise KeyError("nobody thought of this")
        if self.poison is not None and (x == self.poison).any():
            raise ModelError("a bad item")
        if self.fixed_s or self.row_s:
            time.sleep(self.fixed_s + rows * self.row_s)
        made = {"nan": x * np.nan, "zeros": x * 0, "scalar": x.sum()}.get(self.fault, x * 2)
        return {"y": made}


class FakeZoo:
    """Sessions by model id."""

    def __init__(self, sessions: Mapping[str, Session]) -> None:
        self._sessions = sessions

    def spec(self, model_id: ModelId) -> ModelSpec:
        raise NotImplementedError

    def session(self, model_id: ModelId) -> Session:
        return self._sessions[model_id]


def rows(*values: float) -> Feeds:
    """One row a value."""
    return {"x": np.array(values, np.float32)[:, None] * np.ones((1, 2), np.float32)}

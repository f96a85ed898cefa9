"""Swap networks whose result is known before they run."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from app.core.errors import MissingModelError
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session, Task
from tests.faces.zoo_manifest import MANIFEST

Swap = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]


def echoed(target: NDArray[np.float32], source: NDArray[np.float32]) -> NDArray[np.float32]:
    """The crop, unchanged."""
    return target


def painted(target: NDArray[np.float32], source: NDArray[np.float32]) -> NDArray[np.float32]:
    """One color, the first three numbers of the source."""
    return np.broadcast_to(source[:, :3, None, None], target.shape)


class SwapZoo:
    """The shipped manifest, with one swap network in the place of each.

    Args:
        swap: What it makes of targets and sources.
        emap: The matrix beside its weights.
    """

    def __init__(self, swap: Swap, emap: NDArray[np.float32] | None = None) -> None:
        self._swap = swap
        self._emap = np.eye(512, dtype=np.float32) if emap is None else emap
        self.fed: list[Feeds] = []
        self.matrices_read = 0

    def spec(self, model_id: ModelId) -> ModelSpec:
        return MANIFEST.get(model_id)

    def session(self, model_id: ModelId) -> Session:
        if model_id == "inswapper-128-fp16":
            raise MissingModelError(f"{model_id} is not installed")
        return self  # type: ignore[return-value]

    def last_matrix(self, model_id: ModelId) -> NDArray[np.float32]:
        self.matrices_read += 1
        return self._emap

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        return ()

    def run(self, feeds: Feeds) -> Outputs:
        self.fed.append(feeds)
        target, source = (np.asarray(feeds[name], np.float32) for name in ("target", "source"))
        return {"output": self._swap(target, source)}

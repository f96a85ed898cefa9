"""Models whose calls are put together: zoos over a zoo, so that nobody who runs networks sees a difference."""

from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.inference.crops import Work
from app.inference.spec import Feeds, ModelId, ModelSpec, ModelZoo, Outputs, Session, Task
from app.runtime.batch_sizes import BatchSizes
from app.runtime.device_queue import DeviceQueue, QueueOptions


class BatchingZoo:
    """All models of another zoo, run by one thread in batches; use it in a `with`.

    Args:
        zoo: Opens the sessions; they are run by one thread only.
        sizes: How many rows each network does best at once.
        options: Waits.

    Attributes:
        jobs: The models for jobs.
        people: The same models for somebody who waits and watches: their calls go before those of jobs.
    """

    def __init__(
        self, zoo: ModelZoo, sizes: BatchSizes, options: QueueOptions | None = None
    ) -> None:
        self._zoo = zoo
        self._sizes = sizes
        self._queue = DeviceQueue(self._run, self._best_size, options)
        self.jobs: ModelZoo = _QueuedZoo(zoo, self._queue, is_interactive=False)
        self.people: ModelZoo = _QueuedZoo(zoo, self._queue, is_interactive=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run_job(self, work: Work) -> Outputs:
        """Let the one thread do something else on the device for a job."""
        return self._queue.call_work(work, is_interactive=False)

    def run_for_people(self, work: Work) -> Outputs:
        """The same for somebody who waits and watches."""
        return self._queue.call_work(work, is_interactive=True)

    def close(self) -> None:
        """Refuse what waits, let the batch under way end, and end the thread."""
        self._queue.close()

    def _run(self, model_id: ModelId, feeds: Feeds) -> Outputs:
        return self._zoo.session(model_id).run(feeds)

    def _best_size(self, model_id: ModelId, row: Feeds) -> int:
        return self._sizes.best(model_id, row, self._zoo.session(model_id).run)


class _QueuedZoo:
    """The models at one priority; see `ModelZoo`."""

    def __init__(self, zoo: ModelZoo, queue: DeviceQueue, *, is_interactive: bool) -> None:
        self._zoo = zoo
        self._queue = queue
        self._is_interactive = is_interactive

    def spec(self, model_id: ModelId) -> ModelSpec:
        return self._zoo.spec(model_id)

    def session(self, model_id: ModelId) -> Session:
        # Opened here and now: a missing model is told to whoever asks for it, not to whoever runs it first.
        self._zoo.session(model_id)
        return _QueuedSession(self._queue, model_id, is_interactive=self._is_interactive)

    def last_matrix(self, model_id: ModelId) -> NDArray[np.float32]:
        return self._zoo.last_matrix(model_id)

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        return self._zoo.installed(task)


class _QueuedSession:
    def __init__(self, queue: DeviceQueue, model_id: ModelId, *, is_interactive: bool) -> None:
        self._queue = queue
        self._model_id = model_id
        self._is_interactive = is_interactive

    def run(self, feeds: Feeds) -> Outputs:
        return self._queue.call(self._model_id, feeds, is_interactive=self._is_interactive)

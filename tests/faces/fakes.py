"""Networks that answer what a test tells them to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session

Answer = Callable[[NDArray[np.generic]], Outputs]


@dataclass
class FakeSession:
    """Answers with a function of the feed, and remembers what it was asked."""

    answer: Answer
    feeds: list[NDArray[np.generic]] = field(default_factory=list)

    def run(self, feeds: Feeds) -> Outputs:
        feed = next(iter(feeds.values()))
        self.feeds.append(feed)
        return self.answer(feed)


class FakeZoo:
    """One network, whatever is asked for."""

    def __init__(self, answer: Answer) -> None:
        self.only = FakeSession(answer)

    def spec(self, model_id: ModelId) -> ModelSpec:
        raise NotImplementedError

    def session(self, model_id: ModelId) -> Session:
        return self.only


GridFinds = Sequence[tuple[int, int, int, float]]


def yunet_answer(
    feed: NDArray[np.generic], finds: Callable[[int], GridFinds], *, side_cells: float = 3.0
) -> dict[str, FloatArray]:
    """What YuNet would say: for picture k a face at each (stride, column, row, score) of `finds(k)`."""
    n, _, h, w = feed.shape
    outputs: dict[str, FloatArray] = {}
    for stride in (8, 16, 32):
        cells = (h // stride) * (w // stride)
        outputs[f"cls_{stride}"] = np.zeros((n, cells, 1), np.float32)
        outputs[f"obj_{stride}"] = np.zeros((n, cells, 1), np.float32)
        outputs[f"bbox_{stride}"] = np.zeros((n, cells, 4), np.float32)
        outputs[f"kps_{stride}"] = np.zeros((n, cells, 10), np.float32)
    for index in range(n):
        for stride, column, row, score in finds(index):
            cell = row * (w // stride) + column
            outputs[f"cls_{stride}"][index, cell] = score
            outputs[f"obj_{stride}"][index, cell] = score
            outputs[f"bbox_{stride}"][index, cell] = [0.5, 0.5, *[np.log(side_cells)] * 2]
            outputs[f"kps_{stride}"][index, cell] = np.linspace(-1, 1, 10)
    return outputs

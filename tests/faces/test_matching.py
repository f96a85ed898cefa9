import itertools

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.faces.matching import best_pairs


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        pytest.param(np.zeros((0, 3)), [], id="no rows, no pairs"),
        pytest.param(np.zeros((2, 0)), [], id="no columns, no pairs"),
        pytest.param(np.array([[0.2]]), [(0, 0)], id="one fits one"),
        pytest.param(np.array([[1.1]]), [], id="too dear is left alone"),
        pytest.param(
            np.array([[0.1, 0.2], [0.15, 0.9]]), [(0, 1), (1, 0)], id="the greedy choice loses"
        ),
        pytest.param(
            np.array([[0.1, 0.9], [0.2, 2.0]]),
            [(0, 1), (1, 0)],
            id="two dear pairs beat one cheap",
        ),
        pytest.param(
            np.array([[0.5], [0.4], [0.6]]), [(1, 0)], id="more rows than columns leaves some alone"
        ),
    ],
)
def test_pairs_cost_least(cost: FloatArray, expected: list[tuple[int, int]]) -> None:
    assert best_pairs(cost.astype(np.float32), max_cost=1.0) == expected


def test_no_other_pairing_is_cheaper_whatever_the_numbers() -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        n, m = random.integers(1, 5, 2)
        cost = random.random((n, m)).astype(np.float32)
        got = sum(cost[pair] for pair in best_pairs(cost, max_cost=2.0))
        wide = cost if n <= m else cost.T
        rows = range(len(wide))
        best = min(
            sum(wide[row, column] for row, column in zip(rows, columns, strict=True))
            for columns in itertools.permutations(range(wide.shape[1]), len(wide))
        )
        assert got == pytest.approx(best, abs=1e-5)

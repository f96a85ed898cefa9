"""Pairing rows with columns at the least total cost, each at most once."""

import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray

_FORBIDDEN = 1e6
_MOST_ALIKE = 10.0


def best_pairs(cost: FloatArray, max_cost: float) -> list[tuple[int, int]]:
    """The pairing that leaves as few as it can alone, and among those costs least.

    Exact, not greedy: where two people pass each other, the nearest pair taken first may leave a far one for the other.
    Written out here because SciPy is no run-time dependency; a picture has tens of faces at most.

    Args:
        cost: `(n, m)`, not negative; infinite for pairs that must not be.
        max_cost: Pairs that cost more are never made; finite.

    Returns:
        `(row, column)` pairs, rows ascending.

    Source: shortest augmenting paths, Kuhn 1955 and Jonker, Volgenant 1987.
    """
    n, m = cost.shape
    if not n or not m:
        return []
    side = max(n, m)
    square = np.full((side, side), _FORBIDDEN, np.float64)
    square[:n, :m] = np.where(cost <= max_cost, cost, _FORBIDDEN)
    columns = _assign(square)
    return [
        (row, int(column))
        for row, column in enumerate(columns[:n])
        if column < m and square[row, column] < _FORBIDDEN
    ]


def likest_pairs(values: FloatArray, threshold: float) -> list[tuple[int, int]]:
    """The pairing that is likest in all, each row and each column at most once.

    Unlike `best_pairs` it leaves alone what fits nowhere: a second pair is not made at the price of a better one.

    Args:
        values: `(n, m)`, how alike; at most 10.
        threshold: What less is alike than this stays alone.

    Returns:
        `(row, column)` pairs, rows ascending.
    """
    n, m = values.shape
    alone = np.full((n, n), _MOST_ALIKE - threshold, np.float32)
    cost = np.hstack([_MOST_ALIKE - values, alone])
    pairs = best_pairs(np.asarray(cost, np.float32), float(np.max(cost, initial=0)))
    return [(row, column) for row, column in pairs if column < m]


def _assign(cost: NDArray[np.float64]) -> NDArray[np.intp]:
    """The column of each row of a square matrix; prices keep every reduced cost at zero or above."""
    side = len(cost)
    row_price, column_price = np.zeros(side), np.zeros(side + 1)
    row_of = np.full(
        side + 1, -1
    )  # the last column is not real: the path to a new row starts there
    for row in range(side):
        row_of[side] = row
        column, came_from = _grow_path_inplace(cost, row_of, row_price, column_price)
        while column != side:
            row_of[column], column = row_of[came_from[column]], came_from[column]
    return np.argsort(row_of[:side])


def _grow_path_inplace(
    cost: NDArray[np.float64],
    row_of: NDArray[np.intp],
    row_price: NDArray[np.float64],
    column_price: NDArray[np.float64],
) -> tuple[int, NDArray[np.intp]]:
    """Grow the cheapest tree of alternating pairs until it reaches a free column; adjusts the prices on the way."""
    side = len(cost)
    slack = np.full(side, np.inf)
    came_from = np.full(side, side)
    in_tree = np.zeros(side + 1, bool)
    column = side
    while row_of[column] != -1:
        in_tree[column] = True
        row = row_of[column]
        reduced = cost[row] - row_price[row] - column_price[:side]
        is_nearer = ~in_tree[:side] & (reduced < slack)
        slack[is_nearer] = reduced[is_nearer]
        came_from[is_nearer] = column
        nearest = int(np.argmin(np.where(in_tree[:side], np.inf, slack)))
        step = slack[nearest]
        row_price[row_of[in_tree]] += step
        column_price[in_tree] -= step
        slack[~in_tree[:side]] -= step
        column = nearest
    return column, came_from

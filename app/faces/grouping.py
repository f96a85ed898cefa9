"""Which trails show one person: by appearance, and nobody is at two places at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.geometry import FloatArray
from app.faces.recognizer import SAME_PERSON_COSINE, normed

_BEST_VIEW_MARGIN = 0.12
"""The best of many pairs of views is high by chance: it counts for that much less."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """What is known of one or more trails of one person.

    Attributes:
        looks: Numbers of the looks that show it.
        embeddings: `(k, 128)` float32, rows of unit length.
        weights: `(k,)` float32: how much each view tells.
    """

    looks: frozenset[int]
    embeddings: FloatArray
    weights: FloatArray

    def joined(self, other: "Group") -> "Group":
        """Both as one person."""
        return Group(
            self.looks | other.looks,
            np.concatenate([self.embeddings, other.embeddings]),
            np.concatenate([self.weights, other.weights]),
        )


def likeness(a: Group, b: Group) -> float:
    """How alike two groups are, as a cosine: of their weighted means, or of their two nearest views.

    A return often shows another side of the head than before: then one pair of views agrees and the means do not.
    """
    mean_a, mean_b = (normed((g.embeddings * g.weights[:, None]).sum(0)) for g in (a, b))
    best = float((a.embeddings @ b.embeddings.T).max())
    return max(float(mean_a @ mean_b), best - _BEST_VIEW_MARGIN)


def grouped(trails: Sequence[Group]) -> list[list[int]]:
    """Join trails, the most alike first, while they are alike enough and never seen together.

    Returns:
        Indices of the trails of each person.
    """
    groups: list[Group | None] = list(trails)
    members = [[index] for index in range(len(trails))]
    table = np.full((len(trails), len(trails)), -np.inf, np.float32)
    for index in range(len(trails)):
        _compare_inplace(table, groups, index)
    while table.size and table.max() >= SAME_PERSON_COSINE:
        a, b = sorted(divmod(int(table.argmax()), len(trails)))
        first, second = groups[a], groups[b]
        assert first is not None
        assert second is not None
        groups[a], groups[b] = first.joined(second), None
        members[a] += members[b]
        table[b], table[:, b] = -np.inf, -np.inf
        _compare_inplace(table, groups, a)
    return [rows for rows, group in zip(members, groups, strict=True) if group is not None]


def _compare_inplace(table: FloatArray, groups: Sequence[Group | None], index: int) -> None:
    """Fill one row and column of the table of likenesses."""
    one = groups[index]
    assert one is not None
    for at, other in enumerate(groups):
        is_allowed = other is not None and at != index and not (one.looks & other.looks)
        value = likeness(one, other) if is_allowed and other is not None else -np.inf
        table[index, at] = table[at, index] = value

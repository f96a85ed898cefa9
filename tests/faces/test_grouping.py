import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.faces.grouping import Group, grouped, likeness
from app.faces.recognizer import normed


def person(axis: int, *, towards: int | None = None, share: float = 0.0) -> FloatArray:
    """A made-up look, turned a little towards another one."""
    vector = np.zeros(128, np.float32)
    vector[axis] = 1 - share
    if towards is not None:
        vector[towards] = share
    return normed(vector)


def group(looks: set[int], *rows: FloatArray, weights: tuple[float, ...] | None = None) -> Group:
    return Group(
        frozenset(looks),
        np.stack(rows),
        np.array(weights or [1.0] * len(rows), np.float32),
    )


def test_nobody_is_in_no_group() -> None:
    assert grouped([]) == []


def test_a_return_is_the_same_person_and_others_are_not() -> None:
    trails = [group({0, 1}, person(0)), group({0, 1}, person(1)), group({5}, person(0))]
    assert grouped(trails) == [[0, 2], [1]]


def test_who_is_seen_together_is_never_one_person() -> None:
    trails = [group({0, 1}, person(0)), group({1, 2}, person(0)), group({4}, person(0))]
    found = grouped(trails)
    assert len(found) == 2
    assert not any({0, 1} <= set(rows) for rows in found)


def test_the_most_alike_are_joined_first() -> None:
    rather = person(0, towards=9, share=0.4)
    trails = [group({0}, person(0)), group({3}, rather), group({3}, person(0))]
    assert grouped(trails) == [[0, 2], [1]]


def test_one_near_view_of_several_makes_a_return_where_the_means_do_not() -> None:
    before = group({0}, person(0), person(1), person(2))
    after = group({9}, person(2, towards=3, share=0.3), person(4), person(5), person(6))
    assert likeness(before, after) > 0.363
    assert grouped([before, after]) == [[0, 1]]


def test_a_view_that_tells_little_counts_for_little() -> None:
    blurred = group({0}, person(0), person(1), weights=(1.0, 0.05))
    sharp = group({5}, person(0))
    assert likeness(blurred, sharp) > 0.99


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_the_order_of_trails_does_not_change_who_is_who(order: list[int]) -> None:
    trails = [group({at}, person(at % 2)) for at in range(4)]
    found = grouped([trails[at] for at in order])
    named = {frozenset(order[at] for at in rows) for rows in found}
    assert named == {frozenset({0, 2}), frozenset({1, 3})}

"""Calls side by side keep their order and tell their first error."""

import threading
import time

import pytest

from app.runtime.lanes import one_at_a_time, run_side_by_side


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_results_are_in_order(count: int) -> None:
    assert run_side_by_side(lambda x: x * 2, list(range(count))) == [2 * n for n in range(count)]


def test_calls_run_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=20)
    assert len(run_side_by_side(lambda _: together.wait(), [0, 1])) == 2


def test_an_error_reaches_the_caller_and_no_thread_stays() -> None:
    with pytest.raises(ZeroDivisionError):
        run_side_by_side(lambda n: 1 // n, [1, 0, 2])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane")]


def test_behind_a_gate_nobody_meets_anybody() -> None:
    gate = one_at_a_time()
    inside: list[int] = []
    most: list[int] = []

    def pass_through(number: int) -> None:
        with gate():
            inside.append(number)
            time.sleep(0.002)
            most.append(len(inside))
            inside.remove(number)

    run_side_by_side(pass_through, list(range(20)))
    assert (len(most), max(most)) == (20, 1)


def test_an_error_behind_a_gate_leaves_it_open() -> None:
    gate = one_at_a_time()
    with pytest.raises(KeyError), gate():
        raise KeyError
    with gate():
        pass

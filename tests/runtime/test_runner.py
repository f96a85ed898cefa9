"""The runner keeps order, carries the first error, and leaves no thread behind."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.runtime.runner import Stage, run_serial, run_threaded

pytestmark = pytest.mark.usefixtures("no_thread_is_left")


def add_one(items: Iterator[int]) -> Iterator[int]:
    for item in items:
        yield item + 1


def pair_up(items: Iterator[int]) -> Iterator[int]:
    held: list[int] = []
    for item in items:
        held.append(item)
        if len(held) == 2:
            yield sum(held)
            held.clear()
    yield from held


def fail_at(value: int) -> Stage[int]:
    def stage(items: Iterator[int]) -> Iterator[int]:
        for item in items:
            if item == value:
                raise RuntimeError("broken stage")
            yield item

    return stage


def endless() -> Iterator[int]:
    value = 0
    while True:
        yield value
        value += 1


def broken_source() -> Iterator[int]:
    yield 1
    raise OSError("broken source")


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_threads_give_what_one_thread_gives(count: int, depth: int) -> None:
    stages: list[Stage[int]] = [add_one, pair_up, add_one]
    threaded = list(run_threaded(range(count), stages, depth=depth))
    assert threaded == list(run_serial(range(count), stages))


@pytest.mark.parametrize(
    ("source", "stages", "error"),
    [
        pytest.param(broken_source, [add_one], OSError, id="the source breaks"),
        pytest.param(endless, [add_one, fail_at(5), add_one], RuntimeError, id="a stage breaks"),
        pytest.param(endless, [fail_at(0)], RuntimeError, id="the first item breaks a stage"),
    ],
)
def test_the_first_error_reaches_the_caller(
    source: Callable[[], Iterator[int]], stages: list[Stage[int]], error: type[Exception]
) -> None:
    with pytest.raises(error, match="broken"):
        list(run_threaded(source(), stages))


def test_items_made_before_an_error_come_first() -> None:
    seen: list[int] = []
    with pytest.raises(OSError, match="broken source"):
        for item in run_threaded(broken_source(), [add_one]):
            seen.append(item)
    assert seen == [2]


def test_a_consumer_may_walk_away_from_an_endless_source() -> None:
    running = run_threaded(endless(), [add_one, add_one])
    assert [next(running) for _ in range(3)] == [2, 3, 4]
    running.close()


def test_a_consumer_that_raises_stops_every_thread() -> None:
    with pytest.raises(KeyError):
        for item in run_threaded(endless(), [add_one]):
            if item == 10:
                raise KeyError(item)


def test_a_stage_that_stops_early_stops_the_source() -> None:
    def first_three(items: Iterator[int]) -> Iterator[int]:
        for _ in range(3):
            yield next(items)

    assert list(run_threaded(endless(), [first_three])) == [0, 1, 2]


def test_a_generator_is_closed_in_the_thread_that_ran_it() -> None:
    closed_in: list[str] = []

    def remembers(items: Iterator[int]) -> Iterator[int]:
        try:
            yield from items
        finally:
            closed_in.append(threading.current_thread().name)

    running = run_threaded(endless(), [remembers])
    next(running)
    running.close()
    assert closed_in == ["stage-0"]


def test_without_depth_every_thread_holds_one_item() -> None:
    made: list[int] = []

    def counted() -> Iterator[int]:
        for value in range(1000):
            made.append(value)
            yield value

    running = run_threaded(counted(), [add_one, add_one])
    next(running)
    time.sleep(0.2)
    # One is with the consumer, one with each stage, one with the source.
    assert made == [0, 1, 2, 3]
    running.close()


def test_a_slow_consumer_bounds_what_is_made_ahead() -> None:
    made: list[int] = []

    def counted() -> Iterator[int]:
        for value in range(1000):
            made.append(value)
            yield value

    running = run_threaded(counted(), [add_one], depth=2)
    next(running)
    time.sleep(0.2)
    assert len(made) <= 1 + 2 * (2 + 1) + 1
    running.close()

"""How busy each part is follows from who waits for whom; told with a clock that only the test moves."""

import threading
import time
from collections.abc import Iterator

import pytest

from app.runtime.occupancy import Occupancy, WorkClock
from app.runtime.runner import Stage, run_threaded


class FakeTime:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def now() -> FakeTime:
    return FakeTime()


def test_work_counts_and_waiting_does_not(now: FakeTime) -> None:
    clock = WorkClock(now)
    now.now_s += 10
    with clock.at_work():
        now.now_s += 2
        with clock.waiting():
            now.now_s += 5
        now.now_s += 1
        assert clock.busy_s == 3
    now.now_s += 10
    assert clock.busy_s == 3


def test_work_under_way_counts_already(now: FakeTime) -> None:
    clock = WorkClock(now)
    with clock.at_work():
        now.now_s += 4
        assert clock.busy_s == 4


def test_two_at_work_at_once_count_once(now: FakeTime) -> None:
    clock = WorkClock(now)
    with clock.at_work():
        now.now_s += 1
        with clock.at_work():
            now.now_s += 1
        now.now_s += 1
    assert clock.busy_s == 3


def test_an_error_ends_the_work(now: FakeTime) -> None:
    clock = WorkClock(now)
    with pytest.raises(KeyError), clock.at_work():
        now.now_s += 1
        with clock.waiting():
            raise KeyError
    now.now_s += 5
    assert clock.busy_s == 1


def test_shares_are_of_the_time_since_the_start(now: FakeTime) -> None:
    reading, device = WorkClock(now), WorkClock(now)
    with device.at_work():
        now.now_s += 7  # of an earlier job
    occupancy = Occupancy({"decode": reading, "device": device}, now)
    with reading.at_work():
        now.now_s += 1
    with device.at_work():
        now.now_s += 3
    assert occupancy.overall() == {"decode": 0.25, "device": 0.75}


def test_nothing_is_known_before_any_time_has_passed(now: FakeTime) -> None:
    assert Occupancy({"decode": WorkClock(now)}, now).overall() == {}


def test_what_was_long_ago_is_no_longer_lately(now: FakeTime) -> None:
    clock = WorkClock(now)
    occupancy = Occupancy({"encode": clock}, now)
    with clock.at_work():
        for _ in range(20):
            now.now_s += 0.5
            occupancy.lately()
    for _ in range(10):
        now.now_s += 0.5
        lately = occupancy.lately()
    assert lately == {"encode": 0.0}
    assert occupancy.overall() == {"encode": pytest.approx(10 / 15, abs=1e-3)}


def test_lately_needs_no_more_than_a_handful_of_marks(now: FakeTime) -> None:
    occupancy = Occupancy({"encode": WorkClock(now)}, now)
    for _ in range(10_000):
        now.now_s += 0.5
        occupancy.lately()
    assert len(occupancy._marks) <= 12


def test_seldom_asked_it_tells_of_the_time_since_the_last_answer(now: FakeTime) -> None:
    clock = WorkClock(now)
    occupancy = Occupancy({"encode": clock}, now)
    now.now_s += 60
    occupancy.lately()
    with clock.at_work():
        now.now_s += 60
    assert occupancy.lately() == {"encode": 1.0}


class Pipeline:
    """A source and two stages; in each round one of them works for a second while the others wait."""

    def __init__(self, slow: str) -> None:
        self.now = FakeTime()
        self.slow = slow
        self.clocks = [WorkClock(self.now) for _ in range(3)]
        self.running: set[str] = set()

    def work(self, name: str) -> None:
        if name != self.slow:
            return
        # Only once the others wait for this one does the second pass.
        others = [c for c, n in zip(self.clocks, ("source", "a", "b"), strict=True) if n != name]
        deadline = time.monotonic() + 20
        while len(self.running) < 3 or any(clock._workers for clock in others):
            assert time.monotonic() < deadline
            time.sleep(0.0005)
        self.now.now_s += 1

    def source(self) -> Iterator[int]:
        self.running.add("source")
        for item in range(5):
            self.work("source")
            yield item

    def stage(self, name: str) -> Stage[int]:
        def run(items: Iterator[int]) -> Iterator[int]:
            self.running.add(name)
            for item in items:
                self.work(name)
                yield item

        return run


@pytest.mark.parametrize("slow", ["source", "a", "b"])
def test_who_holds_the_others_up_is_the_only_one_at_work(slow: str) -> None:
    line = Pipeline(slow)
    stages = [line.stage("a"), line.stage("b")]
    assert list(run_threaded(line.source(), stages, clocks=line.clocks)) == list(range(5))
    busy = dict(zip(("source", "a", "b"), (clock.busy_s for clock in line.clocks), strict=True))
    assert busy == {name: 5.0 if name == slow else 0.0 for name in ("source", "a", "b")}


def test_a_slow_consumer_leaves_everybody_waiting() -> None:
    line = Pipeline("nobody")
    running = run_threaded(line.source(), [line.stage("a")], clocks=line.clocks[:2])
    for _ in running:
        deadline = time.monotonic() + 20
        while any(clock._workers for clock in line.clocks[:2]) and time.monotonic() < deadline:
            time.sleep(0.0005)
        line.now.now_s += 1
    assert [clock.busy_s for clock in line.clocks[:2]] == [0, 0]
    assert not [each for each in threading.enumerate() if each.name.startswith(("source", "stage"))]

import threading
import time

import pytest

from app.core.errors import Cancelled
from app.runtime.turns import Turns


def never() -> bool:
    return False


def test_nobody_in_line_holds_nobody_up() -> None:
    turns = Turns()
    started = time.monotonic()
    turns.give_way(never)
    with turns.call(never):
        pass
    assert time.monotonic() - started < 0.05


def test_calls_go_one_at_a_time_in_the_order_in_which_they_came() -> None:
    turns, order, inside = Turns(), [], []

    def call(number: int) -> None:
        with turns.call(never):
            inside.append(number)
            assert len(inside) == 1
            time.sleep(0.02)
            order.append(number)
            inside.remove(number)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=call, args=(number,)))
        threads[-1].start()
        time.sleep(0.005)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_the_job_waits_for_the_call_under_way_and_not_for_the_next() -> None:
    turns, first_may_end, second_may_end = Turns(), threading.Event(), threading.Event()

    def call(may_end: threading.Event) -> None:
        with turns.call(never):
            assert may_end.wait(10)

    threads = [threading.Thread(target=call, args=(e,)) for e in (first_may_end, second_may_end)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    passed = threading.Event()
    job = threading.Thread(target=lambda: (turns.give_way(never), passed.set()))
    job.start()
    assert not passed.wait(0.1)
    first_may_end.set()
    assert passed.wait(1)
    second_may_end.set()
    for thread in (*threads, job):
        thread.join()


def test_who_is_called_off_leaves_the_line() -> None:
    turns, unwanted, may_end = Turns(), threading.Event(), threading.Event()
    ended: list[str] = []

    def holder() -> None:
        with turns.call(never):
            assert may_end.wait(10)

    def waiter() -> None:
        try:
            with turns.call(unwanted.is_set):
                ended.append("held the turn")
        except Cancelled:
            ended.append("called off")

    threads = [threading.Thread(target=holder), threading.Thread(target=waiter)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    unwanted.set()
    threads[1].join()
    assert ended == ["called off"]
    may_end.set()
    threads[0].join()
    with turns.call(never):
        pass


def test_a_job_that_has_to_stop_waits_for_no_call() -> None:
    turns = Turns()
    with turns.call(never):
        started = time.monotonic()
        turns.give_way(lambda: True)
        assert time.monotonic() - started < 1


def test_a_call_that_fails_gives_its_turn_up() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="broken"), turns.call(never):
        raise ValueError("broken")
    with turns.call(never):
        pass

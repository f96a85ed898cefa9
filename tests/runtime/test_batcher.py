"""Calls are put together, answered in order, and never lost."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import AppError, Cancelled, DeviceError, ModelError, OutOfDeviceMemoryError
from app.inference.spec import Feeds, ModelId, Outputs
from app.runtime.batch_sizes import BatchSizes, SweepLimits
from app.runtime.batcher import BatchingZoo
from app.runtime.device_queue import DeviceQueue, QueueOptions
from tests.inference.faulty import FakeZoo, FaultySession, rows

NET = ModelId("net")
SOON_S = 20.0


@contextmanager
def queue_over(
    session: FaultySession, *, best: int = 16, **options: float
) -> Iterator[DeviceQueue]:
    queue = DeviceQueue(
        lambda _, feeds: session.run(feeds), lambda *_: best, QueueOptions(**options)
    )
    try:
        yield queue
    finally:
        session.release.set()
        queue.close()


def call(queue: DeviceQueue, *values: float, interactive: bool = False) -> list[float]:
    outputs = queue.call(NET, rows(*values), is_interactive=interactive)
    return [float(value) for value in np.atleast_2d(outputs["y"])[:, 0]]


class Held:
    """Holds the device in its first batch until told, so that calls pile up behind it."""

    def __init__(self, session: FaultySession) -> None:
        self.is_held = threading.Event()
        self.go = threading.Event()
        session.on_run = self._hold

    def _hold(self, _: Feeds) -> None:
        if not self.is_held.is_set():
            self.is_held.set()
            assert self.go.wait(SOON_S)


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + SOON_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def piled(queue: DeviceQueue, count: int) -> Callable[[], bool]:
    return lambda: len(queue._people) + len(queue._jobs) == count


def test_no_rows_and_one_row_come_back() -> None:
    with queue_over(FaultySession()) as queue:
        assert call(queue, 3.0) == [6.0]
        assert queue.call(NET, {"x": np.ones((0, 2), np.float32)}, is_interactive=False)[
            "y"
        ].shape == (0, 2)


def test_more_rows_than_a_batch_takes_come_back_in_order() -> None:
    session = FaultySession()
    with queue_over(session, best=4) as queue:
        assert call(queue, *range(10)) == [2.0 * value for value in range(10)]
    assert session.batches == [4, 4, 2]


def test_calls_that_wait_go_together_and_each_gets_its_own() -> None:
    session = FaultySession()
    held = Held(session)
    with queue_over(session) as queue, ThreadPoolExecutor(8) as pool:
        first = pool.submit(call, queue, 0.0)
        assert held.is_held.wait(SOON_S)
        others = [pool.submit(call, queue, float(n), n + 0.5) for n in range(1, 5)]
        wait_until(piled(queue, 4))
        held.go.set()
        assert first.result() == [0.0]
        assert [other.result() for other in others] == [[2.0 * n, 2 * n + 1] for n in range(1, 5)]
    assert session.batches == [1, 8]
    assert session.threads == {"device"}


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"x": np.ones((1, 3), np.float32)}, id="another size"),
        pytest.param({"x": np.ones((1, 2), np.float64)}, id="other numbers"),
        pytest.param({**rows(1), "strength": np.float32([2])}, id="another strength"),
    ],
)
def test_calls_that_differ_do_not_share_a_batch(second: Feeds) -> None:
    session = FaultySession()
    held = Held(session)
    with queue_over(session) as queue, ThreadPoolExecutor(4) as pool:
        pool.submit(call, queue, 0.0)
        assert held.is_held.wait(SOON_S)
        a = pool.submit(queue.call, NET, rows(1), is_interactive=False)
        b = pool.submit(queue.call, NET, second, is_interactive=False)
        wait_until(piled(queue, 2))
        held.go.set()
        assert a.result()["y"].shape == (1, 2)
        assert b.result()["y"].shape == second["x"].shape
    assert session.batches == [1, 1, 1]


def test_four_jobs_of_four_faces_a_frame_gain_at_least_3_2_times() -> None:
    frames, cost = 12, {"fixed_s": 0.005, "row_s": 0.001}
    single = FaultySession(**cost)
    started = time.perf_counter()
    for value in range(4 * frames):
        single.run(rows(value))
    one_by_one_s = (time.perf_counter() - started) / (4 * frames)

    def job(queue: DeviceQueue) -> None:
        for value in range(frames):
            assert call(queue, *[float(value)] * 4) == [2.0 * value] * 4

    session = FaultySession(**cost)
    with queue_over(session) as queue, ThreadPoolExecutor(4) as pool:
        started = time.perf_counter()
        for done in [pool.submit(job, queue) for _ in range(4)]:
            done.result()
        together_s = (time.perf_counter() - started) / (4 * 4 * frames)
    assert one_by_one_s / together_s >= 3.2, session.batches


def test_one_job_with_a_window_of_four_frames_gains_as_much() -> None:
    session = FaultySession(fixed_s=0.005, row_s=0.001)
    with queue_over(session) as queue:
        started = time.perf_counter()
        for _ in range(4):
            call(queue, *range(16))
        took_s = time.perf_counter() - started
    assert 4 * 16 * 0.006 / took_s >= 3.2


def test_a_person_waits_for_at_most_one_batch() -> None:
    session = FaultySession()
    held = Held(session)
    with queue_over(session, best=4) as queue, ThreadPoolExecutor(4) as pool:
        job = pool.submit(call, queue, *range(40))
        assert held.is_held.wait(SOON_S)
        has_person: list[bool] = []
        session.on_run = lambda feeds: has_person.append(bool((feeds["x"] == 99).any()))
        person = pool.submit(call, queue, 99.0, interactive=True)
        wait_until(piled(queue, 2))
        held.go.set()
        assert person.result() == [198.0]
        assert job.result() == [2.0 * value for value in range(40)]
    # Of the batches after the one that was running: the person's row is in the very next, filled up with the job's.
    assert has_person == [True] + [False] * 9
    assert session.batches == [4] * 10 + [1]


def test_a_crowd_of_people_does_not_starve_a_job() -> None:
    session = FaultySession(row_s=0.001)
    stop = threading.Event()

    def view(queue: DeviceQueue) -> None:
        while not stop.is_set():
            queue.call(ModelId("live"), rows(1), is_interactive=True)

    with queue_over(session) as queue, ThreadPoolExecutor(4) as pool:
        views = [pool.submit(view, queue) for _ in range(3)]
        try:
            assert pool.submit(call, queue, 5.0).result(SOON_S) == [10.0]
        finally:
            stop.set()
        for one in views:
            one.result()


def test_one_bad_item_fails_alone() -> None:
    session = FaultySession(poison=13)
    held = Held(session)
    with queue_over(session) as queue, ThreadPoolExecutor(8) as pool:
        pool.submit(call, queue, 0.0)
        assert held.is_held.wait(SOON_S)
        good = [pool.submit(call, queue, float(n)) for n in (1, 2)]
        bad = pool.submit(call, queue, 13.0)
        wait_until(piled(queue, 3))
        held.go.set()
        assert [each.result() for each in good] == [[2.0], [4.0]]
        with pytest.raises(ModelError, match="bad item"):
            bad.result()
        assert call(queue, 7.0) == [14.0]


def test_a_bad_row_ends_its_own_long_call_and_no_other() -> None:
    with queue_over(FaultySession(poison=5), best=2) as queue:
        with pytest.raises(ModelError, match="bad item"):
            call(queue, *range(10))
        assert call(queue, 1.0) == [2.0]


def test_outputs_that_are_not_by_row_are_not_shared() -> None:
    session = FaultySession(fault="scalar")
    held = Held(session)
    with queue_over(session) as queue, ThreadPoolExecutor(4) as pool:
        first = pool.submit(call, queue, 0.0)
        assert held.is_held.wait(SOON_S)
        others = [pool.submit(call, queue, float(n)) for n in (1, 2)]
        wait_until(piled(queue, 2))
        held.go.set()
        assert [each.result() for each in (first, *others)] == [[0.0], [2.0], [4.0]]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param("crash", DeviceError, id="a lost device"),
        pytest.param("oom", OutOfDeviceMemoryError, id="no memory"),
        pytest.param("bug", KeyError, id="an error of nobody's"),
    ],
)
def test_what_goes_wrong_reaches_the_caller(fault: str, error: type[Exception]) -> None:
    session = FaultySession(fault=fault)
    with queue_over(session) as queue:
        with pytest.raises(error):
            call(queue, 1.0)
        session.fault = ""
        assert call(queue, 1.0) == [2.0]


def test_a_device_that_hangs_is_given_up_and_takes_no_more() -> None:
    session = FaultySession(fault="hang")
    with queue_over(session, hang_s=0.2) as queue:
        with pytest.raises(DeviceError, match="not answered"):
            call(queue, 1.0)
        with pytest.raises(DeviceError, match="not answered"):
            call(queue, 2.0)


def test_closing_refuses_what_waits_and_ends_the_thread() -> None:
    session = FaultySession()
    held = Held(session)
    with queue_over(session) as queue, ThreadPoolExecutor(4) as pool:
        running = pool.submit(call, queue, 1.0)
        assert held.is_held.wait(SOON_S)
        waiting = pool.submit(call, queue, 2.0)
        wait_until(piled(queue, 1))
        closing = pool.submit(queue.close)
        with pytest.raises(Cancelled):
            waiting.result(SOON_S)
        held.go.set()
        closing.result(SOON_S)
        assert running.result() == [2.0]
        with pytest.raises(Cancelled):
            call(queue, 3.0)
    assert not [thread for thread in threading.enumerate() if thread.name == "device"]


def test_a_caller_that_walks_away_leaves_nothing_in_the_queue() -> None:
    session = FaultySession()
    held = Held(session)

    class WalkedAwayError(Exception):
        pass

    class Impatient(DeviceQueue):
        def _check_alive(self) -> None:
            if threading.current_thread().name == "walker":
                raise WalkedAwayError

    queue = Impatient(lambda _, feeds: session.run(feeds), lambda *_: 16)
    seen: list[BaseException] = []

    def walk() -> None:
        try:
            call(queue, 2.0)
        except WalkedAwayError as error:
            seen.append(error)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(call, queue, 1.0)
        assert held.is_held.wait(SOON_S)
        walker = threading.Thread(target=walk, name="walker")
        walker.start()
        walker.join(SOON_S)
        assert len(seen) == 1
        assert piled(queue, 0)()
        held.go.set()
        assert first.result() == [2.0]
    queue.close()
    assert session.batches == [1]


def test_many_threads_with_faults_all_get_an_answer() -> None:
    """No deadlock: 8 threads, rows of many lengths, a poisoned one now and then, one closing in the middle."""
    session = FaultySession(poison=13, row_s=0.0001)
    random = np.random.default_rng(0)
    plans = [random.integers(0, 20, (40, 3)) for _ in range(8)]

    def work(queue: DeviceQueue, plan: np.ndarray) -> int:
        done = 0
        for values in plan:
            with suppress(AppError):
                got = call(queue, *map(float, values), interactive=bool(values[0] % 2))
                assert got == [2.0 * value for value in values]
            done += 1
        return done

    with queue_over(session, best=8) as queue, ThreadPoolExecutor(8) as pool:
        working = [pool.submit(work, queue, plan) for plan in plans]
        time.sleep(0.05)
        queue.close()
        assert [each.result(SOON_S) for each in working] == [40] * 8


# ---- the zoo --------------------------------------------------------------------------------------------------------


def test_a_zoo_batches_the_calls_of_its_sessions() -> None:
    session = FaultySession()
    held = Held(session)
    sizes = BatchSizes(None, "fake", limits=SweepLimits(sizes=(1,)))
    batching = BatchingZoo(FakeZoo({"net": session}), sizes)
    with batching, ThreadPoolExecutor(4) as pool:
        opened = batching.jobs.session(NET)
        first = pool.submit(opened.run, rows(1))
        assert held.is_held.wait(SOON_S)
        person = pool.submit(batching.people.session(NET).run, rows(2))
        held.go.set()
        assert first.result()["y"][0, 0] == 2
        assert person.result()["y"][0, 0] == 4


def test_other_work_takes_its_turn_in_the_one_thread_and_its_error_is_its_own() -> None:
    sizes = BatchSizes(None, "fake", limits=SweepLimits(sizes=(1,)))
    threads: list[str] = []

    def work() -> Outputs:
        threads.append(threading.current_thread().name)
        return {"crops": np.full((3, 2), len(threads))}

    def fails() -> Outputs:
        raise ModelError("bad")

    with BatchingZoo(FakeZoo({"net": FaultySession()}), sizes) as batching:
        with ThreadPoolExecutor(4) as pool:
            runs = [batching.run_job, batching.run_for_people] * 4
            given = [each.result() for each in [pool.submit(run, work) for run in runs]]
        assert sorted(int(each["crops"][0, 0]) for each in given) == list(range(1, 9))
        with pytest.raises(ModelError, match="bad"):
            batching.run_job(fails)
        assert batching.jobs.session(NET).run(rows(1))["y"][0, 0] == 2
    assert set(threads) == {"device"}


# ---- the sweep ------------------------------------------------------------------------------------------------------


class Device:
    """A clock that a session of known cost moves on."""

    def __init__(self, cost: Callable[[int], float], room: int = 1000) -> None:
        self.now_s = 0.0
        self.runs: list[int] = []
        self._cost, self._room = cost, room

    def run(self, feeds: Feeds) -> Outputs:
        size = len(feeds["x"])
        self.runs.append(size)
        if size > self._room:
            raise OutOfDeviceMemoryError("full")
        self.now_s += self._cost(size)
        return {"y": feeds["x"]}

    def sizes(self, path: Path | None = None, **limits: float) -> BatchSizes:
        return BatchSizes(
            path, "gpu", limits=SweepLimits(**limits), clock=lambda: self.now_s  # type: ignore[arg-type]
        )  # fmt: skip


@pytest.mark.parametrize(
    ("device", "best"),
    [
        pytest.param(Device(lambda n: 0.005 + n * 0.0001), 64, id="a large device"),
        pytest.param(Device(lambda n: n * 0.001), 1, id="nothing to gain"),
        pytest.param(Device(lambda n: 0.002 + n * 0.001 if n <= 8 else n * 0.01), 8, id="a cliff"),
        pytest.param(Device(lambda n: 0.005 + n * 0.0001, room=16), 16, id="memory ends"),
        pytest.param(Device(lambda n: 0.03 + n * 0.01), 8, id="a person would wait too long"),
        pytest.param(Device(lambda n: 1.0), 1, id="a network that takes a second"),
    ],
)
def test_the_sweep_finds_the_best_batch(device: Device, best: int) -> None:
    assert device.sizes().best(NET, rows(1), device.run) == best


def test_a_sweep_is_short() -> None:
    device = Device(lambda n: 0.1)
    device.sizes(budget_s=0.5).best(NET, rows(1), device.run)
    assert device.now_s <= 0.8


def test_a_best_batch_is_remembered_by_device_and_size_of_picture(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "sizes.json"
    device = Device(lambda n: 0.005 + n * 0.0001)
    assert device.sizes(path).best(NET, rows(1), device.run) == 64
    fresh = Device(lambda n: n * 0.001)
    assert fresh.sizes(path).best(NET, rows(1), fresh.run) == 64
    assert fresh.runs == []
    wider = {"x": np.ones((1, 5), np.float32)}
    assert fresh.sizes(path).best(NET, wider, fresh.run) == 1
    other = BatchSizes(path, "another gpu", clock=lambda: fresh.now_s)
    assert other.best(NET, rows(1), fresh.run) == 1


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b'{"gpu": {"net:2": -3}}', b'{"gpu": 7}'], ids=repr
)
def test_a_file_of_nonsense_is_swept_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sizes.json"
    path.write_bytes(content)
    device = Device(lambda n: n * 0.001)
    assert device.sizes(path).best(NET, rows(1), device.run) == 1


def test_a_network_that_cannot_run_at_all_says_so() -> None:
    device = Device(lambda n: 0.0, room=0)
    with pytest.raises(OutOfDeviceMemoryError):
        device.sizes().best(NET, rows(1), device.run)

"""Networks come and go within a device's memory, and running out of it ends one call at most."""

import numpy as np
import pytest

from app.core.errors import DeviceError, MissingModelError, OutOfDeviceMemoryError
from app.inference.residency import Residency, ResidentSession, Room
from app.inference.spec import Feeds, ModelId, Outputs, Session
from tests.inference.faulty import FaultySession, rows

A, B, C = ModelId("a"), ModelId("b"), ModelId("c")


class Device:
    """A device of 100 bytes on which each network takes 40."""

    def __init__(self, *, room: int = 100, cost: int = 40) -> None:
        self.room, self.cost = room, cost
        self.opened: list[ModelId] = []
        self.sessions: dict[ModelId, Session] = {}
        self.others_bytes = 0
        self.residency = Residency(self._open, lambda _: cost, Room(free_bytes=self.free_bytes))

    def free_bytes(self) -> int:
        return self.room - self.others_bytes - self.cost * len(self.residency.resident)

    def _open(self, model_id: ModelId) -> Session:
        self.opened.append(model_id)
        return self.sessions.setdefault(model_id, FaultySession())


def test_a_network_is_opened_once() -> None:
    device = Device()
    first = device.residency.session(A)
    assert device.residency.session(A) is first
    assert device.opened == [A]


def test_the_one_that_was_not_used_for_longest_makes_room() -> None:
    device = Device()
    for model_id in (A, B, A, C):
        device.residency.session(model_id)
    assert device.residency.resident == (A, C)
    device.residency.session(B)
    assert device.residency.resident == (C, B)
    assert device.opened == [A, B, C, B]


def test_what_other_processes_take_counts() -> None:
    device = Device()
    device.residency.session(A)
    device.others_bytes = 40
    device.residency.session(B)
    assert device.residency.resident == (B,)


def test_a_budget_counts_where_more_is_free() -> None:
    residency = Residency(
        lambda _: FaultySession(),
        lambda _: 40,
        Room(free_bytes=lambda: 10_000, budget_bytes=90),
    )
    for model_id in (A, B, C):
        residency.session(model_id)
    assert residency.resident == (B, C)


def test_a_network_too_large_for_the_device_is_tried_all_the_same() -> None:
    """The cost is a guess; only the device knows."""
    device = Device(room=10)
    device.residency.session(A)
    assert device.residency.resident == (A,)


def test_opening_without_memory_lets_the_others_go_and_tries_again() -> None:
    opened: list[ModelId] = []

    def open_session(model_id: ModelId) -> Session:
        opened.append(model_id)
        if opened == [A, B]:
            raise OutOfDeviceMemoryError("full")
        return FaultySession()

    residency = Residency(open_session, lambda _: 1, Room(free_bytes=lambda: 1000))
    residency.session(A)
    residency.session(B)
    assert residency.resident == (B,)


def test_opening_without_memory_and_nothing_to_let_go_fails() -> None:
    def open_session(_: ModelId) -> Session:
        raise OutOfDeviceMemoryError("full")

    residency = Residency(open_session, lambda _: 1, Room(free_bytes=lambda: 1000))
    with pytest.raises(OutOfDeviceMemoryError):
        residency.session(A)


def test_a_missing_model_is_told_and_nothing_stays_open() -> None:
    def open_session(_: ModelId) -> Session:
        raise MissingModelError("a is not installed")

    residency = Residency(open_session, lambda _: 1, Room(free_bytes=lambda: 1000))
    with pytest.raises(MissingModelError):
        residency.session(A)
    assert residency.resident == ()


def resident(session: Session, **others: Session) -> tuple[ResidentSession, Residency]:
    sessions = {A: session, **{ModelId(name): other for name, other in others.items()}}
    residency = Residency(
        lambda model_id: sessions[model_id], lambda _: 1, Room(free_bytes=lambda: 1000)
    )
    for model_id in sessions:
        residency.session(model_id)
    return ResidentSession(A, residency), residency


@pytest.mark.parametrize(
    ("count", "room", "batches"),
    [
        pytest.param(8, 8, [8], id="all fit"),
        pytest.param(8, 4, [4, 4], id="half"),
        pytest.param(8, 1, [1] * 8, id="one at a time"),
        pytest.param(7, 3, [3, 2, 2], id="odd"),
        pytest.param(1, 1, [1], id="one"),
        pytest.param(0, 4, [0], id="none"),
    ],
)
def test_a_batch_is_halved_until_it_fits_and_stays_in_order(
    count: int, room: int, batches: list[int]
) -> None:
    session = FaultySession(room=room)
    running, _ = resident(session)
    feeds = {"x": np.arange(2 * count, dtype=np.float32).reshape(count, 2)}
    assert np.array_equal(running.run(feeds)["y"], feeds["x"] * 2)
    assert session.batches == batches


def test_what_fits_is_remembered_and_tried_larger_after_a_while() -> None:
    session = FaultySession(room=2)
    running, _ = resident(session)
    running.run(rows(*range(8)))
    assert running.largest_batch == 2
    session.batches.clear()
    running.run(rows(*range(8)))
    assert session.batches == [2, 2, 2, 2]
    session.room = None
    for _ in range(64):
        running.run(rows(*range(8)))
    assert running.largest_batch == 4


def test_where_one_row_does_not_fit_the_other_networks_make_room() -> None:
    session = FaultySession(fault="oom")
    running, residency = resident(session, b=FaultySession(), c=FaultySession())

    def free_when_alone(_: Feeds) -> None:
        session.fault = "" if residency.resident == (A,) else "oom"

    session.on_run = free_when_alone
    assert running.run(rows(3))["y"][0, 0] == 6
    assert residency.resident == (A,)


def test_where_nothing_helps_the_call_fails_with_advice_and_the_next_one_runs() -> None:
    session = FaultySession(fault="oom")
    running, _ = resident(session, b=FaultySession())
    with pytest.raises(OutOfDeviceMemoryError, match="--device cpu") as caught:
        running.run(rows(1, 2, 3))
    assert caught.value.code == "device.out_of_memory"
    session.fault = ""
    assert running.run(rows(1))["y"][0, 0] == 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [pytest.param("crash", DeviceError, id="crash"), pytest.param("bug", KeyError, id="bug")],
)
def test_other_failures_are_passed_on_at_once(fault: str, error: type[Exception]) -> None:
    session = FaultySession(fault=fault)
    running, _ = resident(session)
    with pytest.raises(error):
        running.run(rows(1, 2))
    assert len(session.batches) == 1


def test_a_network_that_was_let_go_is_opened_again_by_its_next_run() -> None:
    opened: list[ModelId] = []

    class Counting:
        def run(self, feeds: Feeds) -> Outputs:
            return {"y": feeds["x"]}

    def open_session(model_id: ModelId) -> Session:
        opened.append(model_id)
        return Counting()

    residency = Residency(open_session, lambda _: 1, Room(free_bytes=lambda: 1000))
    running = ResidentSession(A, residency)
    running.run(rows(1))
    residency.let_go()
    running.run(rows(1))
    assert opened == [A, A]

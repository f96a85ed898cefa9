import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.core.errors import (
    AppError,
    Cancelled,
    EngineBusyError,
    EngineNotRunningError,
    IntimateContentError,
    MediaNotFoundError,
)
from app.jobs.lease import LeaseClock
from app.pipeline.spec import RenderSpec
from app.runtime.caller import EngineCaller
from app.runtime.calls import FindFaces, FindPeople, MakePreview, Refused, receive_said
from app.runtime.endpoint import Endpoint, EndpointOptions, socket_address
from app.runtime.turns import Turns
from tests.jobs.fakes import FakeDesk, Volume, open_volume, people_seen

ROOT = Path(__file__).resolve().parents[2]
PHOTO = Path("photo.png")
SPEC = RenderSpec(sources=(PHOTO,), target=PHOTO, output=PHOTO, consent="self")


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return tmp_path / "engine.sock"


@contextmanager
def open_endpoint(
    address: Path, desk: FakeDesk, options: EndpointOptions | None = None
) -> Iterator[EngineCaller]:
    with Endpoint(address, desk, Turns(), options):
        yield EngineCaller(address, silence_s=5)


def wait_until(condition: Callable[[], object], within_s: float = 20) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def connected(address: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    connection.connect(str(address))
    return connection


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_every_kind_of_call_is_answered(address: Path) -> None:
    desk = FakeDesk(people=3, faces=2)
    with open_endpoint(address, desk) as caller:
        assert [face.number for face in caller.find_faces(PHOTO).faces] == [1, 2]
        assert caller.find_people(PHOTO) == people_seen(3)
        made = caller.make_preview(SPEC, 1.25)
    assert (made.picture, made.time_s) == (b"JPEG", 1.25)
    assert desk.answered == [
        FindFaces(path=PHOTO),
        FindPeople(path=PHOTO),
        MakePreview(spec=SPEC, time_s=1.25),
    ]


def test_only_its_owner_may_use_the_socket(address: Path) -> None:
    with open_endpoint(address, FakeDesk()):
        assert stat.S_IMODE(address.stat().st_mode) == 0o600
        assert stat.S_ISSOCK(address.stat().st_mode)


@pytest.mark.parametrize("length", [10, 80, 200])
def test_the_folder_may_lie_as_deep_as_it_likes(tmp_path: Path, length: int) -> None:
    folder = tmp_path / ("d" * length) / ("e" * length)
    folder.mkdir(parents=True)
    with open_endpoint(folder / "engine.sock", FakeDesk()) as caller:
        assert caller.find_faces(PHOTO).meant == 1
    with socket_address(folder / "engine.sock") as address:
        assert len(os.fsencode(address)) < 108


def test_what_an_engine_that_died_has_left_is_replaced(address: Path) -> None:
    with open_endpoint(address, FakeDesk(faces=1)):
        pass
    assert address.exists()
    with open_endpoint(address, FakeDesk(faces=4)) as caller:
        assert len(caller.find_faces(PHOTO).faces) == 4
    address.unlink()
    address.write_text("some file")
    with open_endpoint(address, FakeDesk(faces=4)) as caller:
        assert len(caller.find_faces(PHOTO).faces) == 4


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        pytest.param(
            MediaNotFoundError("/data/media/ab/original: no such file"),
            MediaNotFoundError,
            "original: no such file",
            id="an error of ours, without its path",
        ),
        pytest.param(IntimateContentError("0.9"), IntimateContentError, "0.9", id="a refusal"),
        pytest.param(ValueError("/home/me/secret"), AppError, "", id="a surprise tells nothing"),
        pytest.param(OSError(5, "/home/me/secret"), AppError, "", id="the system's errors, too"),
    ],
)
def test_an_error_in_a_call_is_told_and_the_engine_lives_on(
    address: Path, error: Exception, kind: type[AppError], message: str
) -> None:
    desk = FakeDesk(error=error)
    with open_endpoint(address, desk) as caller:
        with pytest.raises(AppError) as told:
            caller.find_faces(PHOTO)
        assert (type(told.value), told.value.message) == (kind, message)
        desk.error = None
        assert caller.find_faces(PHOTO).meant == 1


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(struct.pack("!I", 5) + b"{}", id="cut off"),
        pytest.param(struct.pack("!I", 2) + b"{}", id="no call"),
        pytest.param(struct.pack("!I", 3) + b"\xff\xfe\x00", id="no text"),
        pytest.param(struct.pack("!I", 0xFFFFFFFF) + b"x" * 1000, id="endless"),
        pytest.param(
            struct.pack("!I", 20) + b'{"kind":"find_faces"', id="no JSON of the promised length"
        ),
    ],
)
def test_junk_on_the_socket_costs_nothing_but_its_connection(address: Path, junk: bytes) -> None:
    with open_endpoint(address, FakeDesk()) as caller:
        with connected(address) as connection:
            connection.sendall(junk)
            connection.shutdown(socket.SHUT_WR)
            assert is_closed(connection)
        assert caller.find_faces(PHOTO).meant == 1


def test_whoever_connects_and_says_nothing_is_not_waited_for(address: Path) -> None:
    # Long enough that the next line comes in time on the busiest machine.
    options = EndpointOptions(max_calls=1, question_s=2.0)
    with open_endpoint(address, FakeDesk(), options) as caller, connected(address) as silent:
        with pytest.raises(EngineBusyError):
            caller.find_faces(PHOTO)
        assert is_closed(silent)
        assert caller.find_faces(PHOTO).meant == 1


def test_many_calls_at_once_are_all_answered_or_told_to_come_back(address: Path) -> None:
    desk = FakeDesk(step_s=0.01)
    outcomes: list[str] = []
    with open_endpoint(address, desk, EndpointOptions(max_calls=8)) as caller:

        def call() -> None:
            try:
                caller.find_people(PHOTO)
                outcomes.append("answered")
            except EngineBusyError:
                outcomes.append("busy")

        threads = [threading.Thread(target=call) for _ in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 60
        assert outcomes.count("answered") == len(desk.answered) >= 8
        assert caller.find_people(PHOTO) == people_seen(2)


def test_a_caller_that_hangs_up_ends_the_work(address: Path) -> None:
    desk = FakeDesk(steps=10_000, step_s=0.01)
    stop = threading.Event()
    ended: list[str] = []
    with open_endpoint(address, desk) as caller:

        def call() -> None:
            try:
                caller.find_people(PHOTO, should_stop=stop.is_set)
            except Cancelled:
                ended.append("called off")

        asking = threading.Thread(target=call)
        asking.start()
        wait_until(lambda: desk.answered)
        stop.set()
        asking.join(5)
        assert ended == ["called off"]
        desk.steps = 1
        started = time.monotonic()
        # The turn is free again.
        assert caller.find_faces(PHOTO).meant == 1
        assert time.monotonic() - started < 2


def test_a_call_says_how_far_it_is(address: Path) -> None:
    heard: list[float] = []
    with open_endpoint(
        address, FakeDesk(steps=20, step_s=0.02), EndpointOptions(news_s=0.05)
    ) as caller:
        caller.ask(FindPeople(path=PHOTO), on_progress=heard.append)
    assert len(heard) >= 3
    assert heard == sorted(heard)
    assert heard[-1] > 0.5


def test_waiting_in_line_is_no_silence(address: Path) -> None:
    """A call that waits for another longer than a caller's patience with a mute engine is answered all the same."""
    options = EndpointOptions(news_s=0.1)
    with Endpoint(address, FakeDesk(steps=100, step_s=0.01), Turns(), options):
        caller = EngineCaller(address, silence_s=0.6)
        first = threading.Thread(target=caller.find_people, args=(PHOTO,))
        first.start()
        time.sleep(0.1)
        assert caller.find_faces(PHOTO).meant == 1
        first.join()


def test_an_engine_that_is_stuck_is_not_waited_for_forever(address: Path) -> None:
    with (
        Endpoint(address, FakeDesk(steps=1, step_s=1.0), Turns()),
        pytest.raises(EngineBusyError, match="said nothing"),
    ):
        EngineCaller(address, silence_s=0.3).find_faces(PHOTO)


def test_without_an_engine_a_call_says_so_at_once(address: Path) -> None:
    for there in ("no socket", "a socket that nobody listens on", "a file"):
        if there == "a socket that nobody listens on":
            with open_endpoint(address, FakeDesk()):
                pass
        if there == "a file":
            address.unlink()
            address.touch()
        with pytest.raises(EngineNotRunningError):
            EngineCaller(address).find_faces(PHOTO)


def test_a_folder_that_is_gone_reads_as_no_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineNotRunningError):
        EngineCaller(tmp_path / ("gone" * 40) / "engine.sock").find_faces(PHOTO)


def test_an_endpoint_that_closes_calls_off_what_is_under_way(address: Path) -> None:
    desk = FakeDesk(steps=10_000, step_s=0.01)
    told: list[type[BaseException]] = []

    def call(caller: EngineCaller) -> None:
        try:
            caller.find_people(PHOTO)
        except AppError as error:
            told.append(type(error))

    with open_endpoint(address, desk) as caller:
        asking = threading.Thread(target=call, args=(caller,))
        asking.start()
        wait_until(lambda: desk.answered)
    asking.join(5)
    assert told == [EngineNotRunningError]


# In processes of their own.


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    with open_volume(tmp_path / "data", clock=LeaseClock.of_this_machine()) as opened:
        yield opened


@contextmanager
def engine_process(volume: Volume, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
    data = str(volume.folders.root)
    command = [sys.executable, "-m", "tests.runtime.engine_process", "--data", data, *more]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        caller = EngineCaller(volume.folders.socket_of("engine-0"))
        wait_until(lambda: can_be_called(caller) or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait()


def can_be_called(caller: EngineCaller) -> bool:
    try:
        caller.find_faces(PHOTO)
    except EngineNotRunningError:
        return False
    return True


def test_an_engine_killed_in_mid_call_is_told_and_the_next_one_answers(volume: Volume) -> None:
    caller = EngineCaller(volume.folders.socket_of("engine-0"))
    told: list[BaseException] = []

    def call() -> None:
        try:
            caller.find_people(PHOTO)
        except AppError as error:
            told.append(error)

    with engine_process(volume, "--call-steps", "20") as process:
        asking = threading.Thread(target=call)
        asking.start()
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        asking.join(5)
        assert not asking.is_alive()
    assert [type(error) for error in told] == [EngineNotRunningError]
    with pytest.raises(EngineNotRunningError):
        caller.find_people(PHOTO)
    with engine_process(volume):
        assert caller.find_people(PHOTO) == people_seen(2)


def test_an_engine_that_is_suspended_in_mid_call_is_given_up(volume: Volume) -> None:
    with engine_process(volume, "--call-steps", "20") as process:
        impatient = EngineCaller(volume.folders.socket_of("engine-0"), silence_s=0.5)
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(EngineBusyError):
            impatient.find_people(PHOTO)
        process.send_signal(signal.SIGCONT)
        assert EngineCaller(volume.folders.socket_of("engine-0")).find_people(PHOTO) == people_seen(
            2
        )


def test_a_crowd_of_processes_and_junk_leave_a_real_engine_alive(volume: Volume) -> None:
    with engine_process(volume) as process:
        caller = EngineCaller(volume.folders.socket_of("engine-0"))
        stop = threading.Event()

        def throw_junk() -> None:
            while not stop.is_set():
                with connected(volume.folders.socket_of("engine-0")) as connection:
                    connection.sendall(os.urandom(64))
                time.sleep(0.01)

        thrower = threading.Thread(target=throw_junk)
        thrower.start()
        job = volume.submit()
        answers = 0
        for _ in range(30):
            try:
                answers += len(caller.find_people(PHOTO).people)
            except EngineBusyError:
                time.sleep(0.02)
        stop.set()
        thrower.join()
        *_, done = volume.studio.watch(job.id)
        assert done.result is not None
        assert answers > 0
        assert process.poll() is None


def test_a_refusal_travels_before_anything_was_asked(address: Path) -> None:
    options = EndpointOptions(max_calls=1, question_s=2)
    with open_endpoint(address, FakeDesk(), options), connected(address):
        time.sleep(0.1)
        with connected(address) as turned_away:
            said = receive_said(turned_away)
    assert isinstance(said, Refused)
    assert said.code == "engine.busy"


def test_a_second_engine_is_asked_while_the_first_is_at_work_or_away(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sock", tmp_path / "b.sock"
    slow, other = FakeDesk(steps=20, step_s=0.05), FakeDesk()
    caller = EngineCaller(first, second, silence_s=5)
    with Endpoint(second, other, Turns()):
        with Endpoint(first, slow, Turns()):
            asking = threading.Thread(target=caller.find_people, args=(PHOTO,))
            asking.start()
            wait_until(lambda: slow.answered)
            caller.find_faces(PHOTO)
            assert (len(slow.answered), len(other.answered)) == (1, 1)
            asking.join()
            caller.find_faces(PHOTO)
            assert (len(slow.answered), len(other.answered)) == (2, 1), (
                "the first again, once it is free"
            )
        caller.find_faces(PHOTO)
        assert len(other.answered) == 2, "the first is away"
    with pytest.raises(EngineNotRunningError):
        caller.find_faces(PHOTO)

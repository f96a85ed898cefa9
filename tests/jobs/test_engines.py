from pathlib import Path

from app.jobs.database import Database
from app.jobs.engines import EngineRegister
from app.jobs.lease import LeaseClock
from tests.jobs.fakes import Volume


def test_a_new_volume_has_no_engine(volume: Volume) -> None:
    assert volume.engines.all() == ()


def test_an_engine_lives_while_it_is_heard_of(volume: Volume) -> None:
    volume.engines.supervised("engine-0", state="starting")
    assert [(e.state, e.is_alive) for e in volume.engines.all()] == [("starting", False)]
    volume.engines.seen("engine-0", state="idle", pid=42)
    assert [(e.state, e.is_alive, e.pid) for e in volume.engines.all()] == [("idle", True, 42)]
    volume.time.seconds += 11
    assert not volume.engines.all()[0].is_alive


def test_an_engine_of_before_the_machine_started_anew_is_dead(volume: Volume) -> None:
    volume.engines.seen("engine-0", state="idle", pid=42)
    rebooted = EngineRegister(volume.database, clock=LeaseClock(now=volume.time, boot="boot-2"))
    assert not rebooted.all()[0].is_alive


def test_the_supervisor_tells_how_it_ended(volume: Volume) -> None:
    volume.engines.seen("engine-0", state="busy", pid=42)
    volume.engines.supervised("engine-0", state="stopped", last_exit=-9, restarts=2)
    (engine,) = volume.engines.all()
    assert (engine.state, engine.is_alive, engine.last_exit) == ("stopped", False, -9)
    volume.engines.seen("engine-0", state="idle", pid=43, problem="model.missing")
    (engine,) = volume.engines.all()
    assert (engine.last_exit, engine.restarts, engine.problem) == (-9, 2, "model.missing")


def test_an_engine_tells_its_device(volume: Volume) -> None:
    volume.engines.supervised("engine-0", state="starting")
    assert volume.engines.all()[0].device is None
    volume.engines.seen("engine-0", state="idle", pid=42, device="cuda")
    assert volume.engines.all()[0].device == "cuda"


def test_a_register_of_before_devices_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    with Database(path) as database:
        EngineRegister(database).seen("engine-0", state="idle", pid=42, device="cpu")
        with database.write() as db:
            db.execute("ALTER TABLE engines DROP COLUMN device")
            db.execute("PRAGMA user_version = 1")
    with Database(path) as database:
        register = EngineRegister(database)
        assert register.all()[0].device is None
        register.seen("engine-0", state="idle", pid=42, device="cuda")
        assert register.all()[0].device == "cuda"


def test_engines_of_another_life_are_forgotten(volume: Volume) -> None:
    for number in range(3):
        volume.engines.supervised(f"engine-{number}", state="stopped", last_exit=5)
    volume.engines.keep_only(["engine-0", "engine-7"])
    assert [engine.name for engine in volume.engines.all()] == ["engine-0"]

"""The register of engines: each says now and then that it lives, and its supervisor says how it died."""

import sqlite3
from collections.abc import Collection

from app.jobs.database import Database
from app.jobs.job import EngineStatus
from app.jobs.lease import LeaseClock


class EngineRegister:
    """Who runs jobs here; safe to use from any thread of any process of this machine."""

    def __init__(
        self, database: Database, *, silence_s: float = 10.0, clock: LeaseClock | None = None
    ) -> None:
        """Look at the register.

        Args:
            database: Where it is kept.
            silence_s: An engine not heard of for longer counts as dead.
            clock: For tests.
        """
        self._database = database
        self._silence_s = silence_s
        self._clock = clock or LeaseClock.of_this_machine()

    def seen(
        self,
        name: str,
        *,
        state: str,
        pid: int,
        problem: str | None = None,
        device: str | None = None,
    ) -> None:
        """The engine itself says that it lives, what it does (`idle` or `busy`), and on what device."""
        with self._database.write() as db:
            db.execute(
                "INSERT INTO engines (name, state, pid, seen_boot, seen_at, problem, device)"
                " VALUES (:name, :state, :pid, :boot, :now, :problem, :device)"
                " ON CONFLICT (name) DO UPDATE SET state = :state, pid = :pid,"
                " seen_boot = :boot, seen_at = :now, problem = :problem, device = :device",
                {
                    "name": name,
                    "state": state,
                    "pid": pid,
                    "boot": self._clock.boot,
                    "now": self._clock.now(),
                    "problem": problem,
                    "device": device,
                },
            )

    def supervised(
        self,
        name: str,
        *,
        state: str,
        last_exit: int | None = None,
        restarts: int = 0,
        problem: str | None = None,
    ) -> None:
        """The supervisor says that a process is `starting` or has `stopped`; it has yet to be heard of."""
        with self._database.write() as db:
            db.execute(
                "INSERT INTO engines (name, state, last_exit, restarts, problem)"
                " VALUES (:name, :state, :last_exit, :restarts, :problem)"
                " ON CONFLICT (name) DO UPDATE SET state = :state, last_exit = :last_exit,"
                " restarts = :restarts, pid = NULL, seen_boot = NULL, seen_at = NULL, problem = :problem",
                {
                    "name": name,
                    "state": state,
                    "last_exit": last_exit,
                    "restarts": restarts,
                    "problem": problem,
                },
            )

    def keep_only(self, names: Collection[str]) -> None:
        """Forget engines that were run in another life, with other devices."""
        with self._database.write() as db:
            known = [row["name"] for row in db.execute("SELECT name FROM engines")]
            gone = [(name,) for name in known if name not in names]
            db.executemany("DELETE FROM engines WHERE name = ?", gone)

    def all(self) -> tuple[EngineStatus, ...]:
        """Every engine that was ever started on this data volume, by name."""
        with self._database.read() as db:
            rows = db.execute("SELECT * FROM engines ORDER BY name").fetchall()
        return tuple(self._status(row) for row in rows)

    def _status(self, row: sqlite3.Row) -> EngineStatus:
        is_heard = (
            row["seen_at"] is not None
            and row["seen_boot"] == self._clock.boot
            and self._clock.now() - row["seen_at"] <= self._silence_s
        )
        return EngineStatus(
            name=row["name"],
            state=row["state"],
            is_alive=is_heard,
            pid=row["pid"],
            last_exit=row["last_exit"],
            restarts=row["restarts"],
            problem=row["problem"],
            device=row["device"],
        )

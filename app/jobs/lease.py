"""Leases: who may run a job, and until when."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Names this start of the machine; empty where the system has no such name."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseClock:
    """The clock of leases: it only runs forward, whatever somebody does to the wall clock.

    The monotonic clock is one for all processes of a machine, but starts anew with it. So a time is kept
    together with the machine's start, and a lease of an earlier start has ended.

    Attributes:
        now: Seconds, monotonic.
        boot: This start of the machine.
    """

    now: Callable[[], float] = time.monotonic
    boot: str

    @classmethod
    def of_this_machine(cls) -> "LeaseClock":
        """The real one."""
        return cls(boot=boot_id())


def new_token() -> str:
    """An id that nobody guesses and nobody has had before: 128 random bits in hexadecimal."""
    return secrets.token_hex(16)

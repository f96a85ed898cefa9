"""How many processor cores this process may really use."""

import math
import os
from pathlib import Path

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota_file: Path = _CGROUP_QUOTA) -> int:
    """Cores that this process may keep busy, at least 1.

    The affinity mask alone does not know a container's `--cpus`: with 2 of 64 cores allowed, 64 threads
    would take turns on two and be stopped by the kernel in the middle of each other.

    Args:
        quota_file: Control group version 2's "quota period" in microseconds, or "max period".
    """
    return max(1, min(_affinity_cores(), _quota_cores(quota_file)))


def _affinity_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota_cores(quota_file: Path) -> int:
    try:
        quota, period = quota_file.read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return os.cpu_count() or 1

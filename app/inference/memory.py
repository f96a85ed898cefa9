"""How much memory is really free on a device."""

from pathlib import Path

from app.inference.gpu import free_gpu_bytes
from app.inference.providers import DeviceKind

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_UNKNOWN_BYTES = 4 << 30
"""Where nothing can be asked, such as on DirectML: what a small graphics card has to spare."""


def free_bytes(device: DeviceKind, *, meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int:
    """Free memory of a device; for the CPU, of what the container may use.

    Args:
        device: Kind of device.
        meminfo: The kernel's table.
        cgroup: The container's control group, version 2.
    """
    if device in ("cuda", "tensorrt"):
        free = free_gpu_bytes()
        return _UNKNOWN_BYTES if free is None else free
    if device in ("cpu", "openvino", "coreml"):
        known = [free for free in (_machine(meminfo), _container(cgroup)) if free is not None]
        return min(known, default=_UNKNOWN_BYTES)
    return _UNKNOWN_BYTES


def _machine(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = values.get("MemAvailable", "").split()
    return int(fields[0]) * 1024 if fields and fields[0].isdigit() else None


def _container(cgroup: Path) -> int | None:
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = (cgroup / "memory.current").read_text().strip()
    except OSError:
        return None
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None

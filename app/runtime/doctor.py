"""Looks at the machine and says what works, what does not, and what to do about it."""

import platform
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from app import __version__
from app.inference.inventory import Inventory
from app.inference.providers import report as device_report

_ENOUGH_DISK_BYTES = 5 << 30
_LIBRARIES = ("onnxruntime-gpu", "onnxruntime", "opencv-python-headless", "av", "gradio", "numpy")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        text: What was found; when it is not fine, what to do.
        is_needed: Nothing works without it.
    """

    subject: str
    is_fine: bool
    text: str
    is_needed: bool = True


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings."""

    findings: tuple[Finding, ...]

    @property
    def is_fine(self) -> bool:
        """True when nothing keeps a swap from working."""
        return all(finding.is_fine for finding in self.findings if finding.is_needed)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {"is_fine": self.is_fine, "findings": [asdict(each) for each in self.findings]}


def examine(inventory: Inventory, data_dir: Path) -> Diagnosis:
    """Try every device, check every embedded model, look at disk and versions."""
    return Diagnosis(
        (
            Finding("FaceDock", True, f"{__version__} on Python {platform.python_version()}"),
            Finding("libraries", True, ", ".join(_versions())),
            *_devices(),
            *_models(inventory),
            _disk(data_dir),
        )
    )


def _versions() -> Iterable[str]:
    for name in _LIBRARIES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def _devices() -> Iterable[Finding]:
    devices = device_report().devices
    usable = next((d for d in devices if d.works and d.is_automatic), None)
    for device in devices:
        # A missing GPU is a fact, not a fault, as long as something runs.
        text = "works" if device.works else device.detail
        if device is usable:
            text += "; used by default"
        yield Finding(f"device {device.device}", usable is not None, text)


def _models(inventory: Inventory) -> Iterable[Finding]:
    for status in inventory.statuses():
        is_embedded = status.spec.bundle == "embedded"
        if status.state == "missing" and not is_embedded:
            continue
        text: str = status.state
        if is_embedded and not status.is_installed:
            text += "; run `python -m app models pull embedded`"
        elif status.detail:
            text = status.detail
        if status.why_single:
            text += f"; runs one picture at a time ({status.why_single})"
        is_fine = status.is_installed and not status.why_single
        is_needed = is_embedded and not status.is_installed
        yield Finding(f"model {status.spec.id}", is_fine, text, is_needed=is_needed)


def _disk(data_dir: Path) -> Finding:
    existing = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 1e9:.1f} GB free for data"
    if free < _ENOUGH_DISK_BYTES:
        text += "; make room, or set FACEDOCK_DATA_DIR to a larger disk"
    return Finding("disk", free >= _ENOUGH_DISK_BYTES, text, is_needed=False)

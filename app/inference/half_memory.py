"""Remembers which networks passed the self-test of half precision on a device, and their halved files.

Halving a large network takes half a minute, which no start should pay twice. A halved file is used only if it has the
hash that was kept when it was made.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from app.inference.fetch.store import write_atomically

_UNFIT = "unfit"


class HalfMemory:
    """A folder with an index and the halved files.

    Args:
        folder: `None` remembers nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / "half"

    def recall(self, key: str) -> bytes | None:
        """The halved file; empty for a network that failed its test, `None` where nothing is known or whole."""
        known = self._index().get(key)
        if known is None or self._folder is None:
            return None
        if known == _UNFIT:
            return b""
        try:
            content = (self._folder / f"{known[:32]}.onnx").read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == known else None

    def keep(self, key: str, half: bytes) -> None:
        """Remember the halved file of a network that passed, or empty bytes for one that failed."""
        if self._folder is None:
            return
        sha256 = hashlib.sha256(half).hexdigest() if half else _UNFIT
        # A place that is closed to us costs a test at the next start, no more.
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            if half:
                write_atomically(self._folder / f"{sha256[:32]}.onnx", half)
            index = {**self._index(), key: sha256}
            text = json.dumps(index, sort_keys=True, indent=1)
            write_atomically(self._folder / "index.json", text.encode())

    def _index(self) -> dict[str, str]:
        if self._folder is None:
            return {}
        try:
            stored = json.loads((self._folder / "index.json").read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(stored, dict):
            return {}
        return {str(key): value for key, value in stored.items() if isinstance(value, str)}

"""Whether a file without an index ends where its header says: all that tells a cut one from a whole one.

Sources: RFC 8794 (EBML), RFC 9559 (Matroska), the AVI RIFF file reference.
"""

from pathlib import Path
from typing import Final

from app.core.errors import DamagedMediaError
from app.media.ebml import segment_end
from app.media.sniff import MediaKind

_MATROSKA: Final = frozenset({MediaKind.MATROSKA, MediaKind.WEBM})


def missing_share(path: Path, kind: MediaKind) -> float:
    """The share of the file's declared bytes that is not there; 0 where the header declares nothing.

    Live recordings declare no length, transport streams have none.
    """
    declared = _declared_end(path, kind)
    held = path.stat().st_size
    return 0.0 if declared is None or declared <= held else 1 - held / declared


def _declared_end(path: Path, kind: MediaKind) -> int | None:
    if kind in _MATROSKA:
        try:
            return segment_end(path)
        except DamagedMediaError:
            return None
    if kind is MediaKind.AVI:
        with path.open("rb") as file:
            return 8 + int.from_bytes(file.read(8)[4:], "little")
    return None

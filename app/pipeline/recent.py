"""Faces that were made lately: previews and jobs ask for the same photos again and again."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from app.core.types import Identity, Notice

MadeFace = tuple[Identity, tuple[Notice, ...]]
_Key = tuple[tuple[bytes, ...], str, int | None]


class RecentFaces:
    """Keeps the faces that were made last, known by what their photos hold, not by what these are called.

    For several threads: at worst two make the same face at once.

    Args:
        most: Faces kept; one takes some megabytes.
    """

    def __init__(self, most: int = 8) -> None:
        self._most: Final = most
        self._kept: dict[_Key, MadeFace] = {}

    def get(
        self, photos: tuple[Path, ...], label: str, face: int | None, make: Callable[[], MadeFace]
    ) -> MadeFace:
        """The face of these photos, made anew unless it is kept.

        Raises:
            AppError: It cannot be made; nothing is kept then.
        """
        digests = tuple(_digest(photo) for photo in photos)
        if None in digests:
            return make()
        key = (tuple(each for each in digests if each is not None), label, face)
        made = self._kept.pop(key, None) or make()
        self._kept[key] = made
        for oldest in list(self._kept)[: -self._most]:
            self._kept.pop(oldest, None)
        return made


def _digest(photo: Path) -> bytes | None:
    """Of the file's bytes; `None` where it cannot be read, which the maker says better."""
    try:
        with photo.open("rb") as opened:
            return hashlib.file_digest(opened, "blake2b").digest()
    except OSError:
        return None

"""What an AVI file says of its own length and where its index lies, read without a demuxer.

Source: the AVI RIFF file reference, the OpenDML AVI file format extensions (several RIFF chunks in a row).
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

_HEAD_BYTES: Final = 8
_LIST_BYTES: Final = 12


class RiffChunk(NamedTuple):
    """One chunk: its name, and where its content begins and, by its own word, ends."""

    name: bytes
    start: int
    end: int


def declared_end(path: Path) -> int | None:
    """Where the file ends by its own word; `None` where a recording was never finished."""
    end = None
    with path.open("rb") as file:
        for chunk in _chunks(file, 0, path.stat().st_size):
            if chunk.name != b"RIFF" or chunk.end == chunk.start:
                break
            end = chunk.end
    return end


def cut_index_at(path: Path) -> int | None:
    """Where an index begins that the file does not hold whole; `None` for a whole one, or none at all.

    A demuxer that is given half an index takes it for all there is.
    """
    held = path.stat().st_size
    with path.open("rb") as file:
        for chunk in _chunks(file, _LIST_BYTES, held):
            if chunk.name == b"idx1" and chunk.end > held:
                return chunk.start - _HEAD_BYTES
    return None


class FileHead(io.RawIOBase):
    """The first bytes of a file, as if it ended there.

    Args:
        path: The file; closed with this.
        length: How many bytes there seem to be.
    """

    def __init__(self, path: Path, length: int) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._length = length

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; the end is where this one ends."""
        if whence == io.SEEK_END:
            return self._file.seek(self._length + offset)
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, and none behind the end."""
        left = max(0, self._length - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _chunks(file: BinaryIO, at: int, held: int) -> Iterator[RiffChunk]:
    """The chunks that lie one after the other from a place on, each on an even byte."""
    while at + _HEAD_BYTES <= held:
        file.seek(at)
        head = file.read(_HEAD_BYTES)
        start = at + _HEAD_BYTES
        end = start + int.from_bytes(head[4:], "little")
        yield RiffChunk(head[:4], start, end)
        at = end + end % 2

"""How this process's C library hands memory back."""

import ctypes
import sys
from typing import Final

_MMAP_THRESHOLD: Final = -3
"""`M_MMAP_THRESHOLD` of glibc's `malloc.h`."""
_BLOCK_BYTES: Final = 1 << 20


def return_large_blocks() -> bool:
    """Give every block of a megabyte or more back to the system as soon as it is freed.

    By itself glibc raises that bound to the size of the largest block ever freed. Then planes of 4K frames, made in one
    thread and freed in another, leave holes in every thread's heap: 140 MB of 1460 for a 4K swap.

    Returns:
        False where the C library is another one; nothing has changed then.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES))

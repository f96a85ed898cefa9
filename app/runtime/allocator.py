"""How this process's C library hands memory back."""

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
"""`M_TRIM_THRESHOLD` of glibc's `malloc.h`."""
_MMAP_THRESHOLD: Final = -3
"""`M_MMAP_THRESHOLD`, there too."""
_LARGE_BYTES: Final = 1 << 20
_KEPT_BYTES: Final = 16 << 20


def return_large_blocks() -> bool:
    """Give every block of a megabyte or more back to the system as soon as it is freed, and keep the smaller ones.

    By itself glibc raises the first bound to the size of the largest block ever freed. Then planes of 4K frames, made
    in one thread and freed in another, leave holes in every thread's heap: 140 MB of 1460 for a 4K swap. Of a heap's
    unused end it keeps 128 KiB, less than the crops of a few faces: the system then clears the same pages for every
    frame anew, a tenth of a swap's processor time.

    Returns:
        False where the C library is another one; nothing has changed then.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    bounds = {_MMAP_THRESHOLD: _LARGE_BYTES, _TRIM_THRESHOLD: _KEPT_BYTES}
    return mallopt is not None and all(mallopt(name, bound) for name, bound in bounds.items())

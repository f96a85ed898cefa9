"""Pillow fails in many ways; the rest of the program hears of five."""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import cv2
from PIL import Image

from app.core.errors import (
    DamagedMediaError,
    MediaTooLargeError,
    TruncatedMediaError,
    UnsupportedTypeError,
)

_FAILURES = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RuntimeError,
    Warning,
    struct.error,
    zlib.error,
    cv2.error,
)
"""What Pillow's plug-ins let through for hostile bytes; warnings are here for programs that turn them into errors."""


_RARE_PIXELS = ("unknown pixel mode", "unknown raw mode", "unknown data organization")


@contextmanager
def pillow_errors(name: str) -> Iterator[None]:
    """Turn whatever a decoder raises inside into an error of ours.

    Args:
        name: The file's format, for the message.

    Raises:
        MediaTooLargeError: The picture does not fit in memory, or over a decoder's own bound.
        TruncatedMediaError: The data end early.
        UnsupportedTypeError: The decoder knows the format, but not this type of pixels.
        DamagedMediaError: The data make no picture.
    """
    try:
        yield
    except (MemoryError, Image.DecompressionBombError) as error:
        raise MediaTooLargeError(
            f"the {name} picture is too large to decode; scale it down first"
        ) from error
    except _FAILURES as error:
        if isinstance(error, EOFError) or "truncated" in str(error).lower():
            raise TruncatedMediaError(
                f"the {name} picture ends before its content does; copy or upload it again"
            ) from error
        if any(words in str(error) for words in _RARE_PIXELS):
            raise UnsupportedTypeError(
                f"the {name} picture has pixels of a rare type; save it anew as gray or RGB of 8 or 16 bits"
            ) from error
        raise DamagedMediaError(
            f"the {name} picture cannot be decoded; open it in another program and save it anew"
        ) from error

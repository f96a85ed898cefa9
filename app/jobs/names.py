"""Names that people give their files: shown and offered for download, never used as a path."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from app.core.errors import BadNameError

MAX_NAME_BYTES = 255
_NOTHING: Mapping[str, object] = MappingProxyType({})
_FALLBACK = "file"

# An override or isolate makes "exe.gpj" read as "jpg.exe".
_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)

_MEDIA_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".jpe": "image/jpeg",
    ".jfif": "image/jpeg",
    ".gif": "image/gif",
    ".apng": "image/apng",
    ".bmp": "image/bmp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".avif": "image/avif",
    ".heic": "image/heic",
    ".heif": "image/heif",
    ".mp4": "video/mp4",
    ".m4v": "video/x-m4v",
    ".mov": "video/quicktime",
    ".qt": "video/quicktime",
    ".3gp": "video/3gpp",
    ".mkv": "video/x-matroska",
    ".webm": "video/webm",
    ".avi": "video/x-msvideo",
    ".ts": "video/mp2t",
    ".m2ts": "video/mp2t",
    ".mts": "video/mp2t",
}

# By the names of `app.media.sniff.MediaKind`; the first ending is the usual one.
_SUFFIXES = {
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "png": (".png",),
    "apng": (".png", ".apng"),
    "webp": (".webp",),
    "animated-webp": (".webp",),
    "gif": (".gif",),
    "bmp": (".bmp",),
    "tiff": (".tif", ".tiff"),
    "avif": (".avif",),
    "heic": (".heic", ".heif"),
    "mp4": (".mp4", ".m4v"),
    "mov": (".mov", ".qt"),
    "3gp": (".3gp",),
    "matroska": (".mkv",),
    "webm": (".webm",),
    "avi": (".avi",),
    "mpegts": (".ts", ".m2ts", ".mts"),
}

# What a result becomes where its input's format cannot carry the label, or is not written.
_RESULT_SUFFIXES = {
    "bmp": ".png",
    "3gp": ".mp4",
    "avi": ".mp4",
    "mpegts": ".mp4",
    "mov": ".mov",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedFile:
    """A file ready to be handed out.

    Attributes:
        path: Where it lies on this machine.
        name: What it is called when somebody saves it.
        media_type: For HTTP.
    """

    path: Path
    name: str
    media_type: str


def plain_text(raw: str, what: str) -> str:
    """One line of text that is safe to show, in its composed form and without blanks around it.

    Args:
        raw: As it was typed.
        what: What it names, for the message.

    Raises:
        BadNameError: Control characters, or characters that reverse the reading order.
    """
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in _BIDI_CONTROLS for c in raw):
        raise BadNameError(f"{what}: it holds control characters; choose another")
    return unicodedata.normalize("NFC", raw).strip()


def display_name(raw: str) -> str:
    """Reduce what a client calls a file to a name that is safe to show and to save under.

    Folders in front are dropped, be they POSIX or Windows ones.

    Raises:
        BadNameError: Control characters, characters that reverse the reading order, or too long.
    """
    name = re.split(r"[/\\]", plain_text(raw, "file name"))[-1].strip()
    length = len(name.encode())
    if length > MAX_NAME_BYTES or len(raw) > 16 * MAX_NAME_BYTES:
        raise BadNameError(
            f"file name: got {length} bytes, at most {MAX_NAME_BYTES} are taken; rename the file"
        )
    return _FALLBACK if name.strip(".") == "" or re.fullmatch(r"[A-Za-z]:", name) else name


def suffix_for(container: str, name: str) -> str:
    """The ending a file of this container should have: the name's own where it fits.

    Args:
        container: As the probe calls it.
        name: The display name.
    """
    own = PurePosixPath(name).suffix.lower()
    known = _SUFFIXES.get(container)
    if known is None:
        return own
    return own if own in known else known[0]


def result_suffix(container: str, name: str, info: Mapping[str, object] = _NOTHING) -> str:
    """The ending of what a file of this container becomes: the same where it can be written with a label.

    Args:
        container: As the probe calls it.
        name: The display name.
        info: What else the probe says; a HEIC with transparency or over 8 bits a channel does not fit into a JPEG.
    """
    if container == "heic":
        is_plain = info.get("bits", 8) == 8 and not info.get("has_alpha")
        return ".jpg" if is_plain else ".png"
    return _RESULT_SUFFIXES.get(container) or suffix_for(container, name)


def swapped_name(name: str, suffix: str) -> str:
    """The download name of a result: the target's name with `_swapped`, and the ending of what it really is.

    The stem is cut, at a whole character, where the name would grow too long.
    """
    stem = PurePosixPath(name).stem
    tail = f"_swapped{suffix}"
    room = MAX_NAME_BYTES - len(tail.encode())
    return stem.encode()[:room].decode(errors="ignore") + tail


def media_type(suffix: str) -> str:
    """The HTTP media type for a file ending; bytes without meaning for one that we never make."""
    return _MEDIA_TYPES.get(suffix.lower(), "application/octet-stream")

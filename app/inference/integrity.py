"""Bytes are used only after they were compared with the hash that the manifest pins."""

import hashlib
from pathlib import Path

from app.core.errors import ModelIntegrityError

_BLOCK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in lower-case hex; about 1 GB a second."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def check_bytes(name: str, content: bytes, *, sha256: str, size: int, advice: str) -> None:
    """Refuse bytes that are not the pinned ones.

    Args:
        name: What the bytes are, for the message.
        content: The bytes.
        sha256: Pinned hash, lower-case hex.
        size: Pinned length in bytes.
        advice: What to do about it.

    Raises:
        ModelIntegrityError: Length or hash differ.
    """
    if len(content) != size:
        raise ModelIntegrityError(f"{name}: got {len(content)} bytes, wanted {size}; {advice}")
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise ModelIntegrityError(
            f"{name}: sha256 is {got[:12]}, the manifest says {sha256[:12]}; {advice}"
        )

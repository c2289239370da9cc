"""Files on their way to the Hub: bytes in memory, or a path where they are large."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

Content = bytes | Path
_CHUNK: Final = 1 << 20


def size(content: Content) -> int:
    """Number of bytes."""
    return content.stat().st_size if isinstance(content, Path) else len(content)


def chunks(content: Content) -> Iterator[bytes]:
    """The bytes, some at a time."""
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part


def sha256(content: Content) -> str:
    """By what the Hub knows a large file."""
    digest = hashlib.sha256()
    for part in chunks(content):
        digest.update(part)
    return digest.hexdigest()


def blob_id(content: Content) -> str:
    """By what git, and so the Hub, knows any other file."""
    digest = hashlib.sha1(b"blob %d\0" % size(content))
    for part in chunks(content):
        digest.update(part)
    return digest.hexdigest()


def contains(content: Content, needle: bytes) -> bool:
    """Whether the bytes occur in the content."""
    tail = b""
    for part in chunks(content):
        if needle in tail + part:
            return True
        tail = part[-len(needle) :]
    return False

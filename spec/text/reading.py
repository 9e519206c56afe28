"""Reads files of any size, and sources without an end, such as pipes and devices."""

from __future__ import annotations

import os
from pathlib import Path

from uop.spec.errors import MalformedError

MOST_BYTES = 1 << 28
"""The most bytes of a file of programs."""
MOST_OF_DOCUMENT = 1 << 26
"""The most bytes of JSON or TOML: parsed, they take many times as much memory."""
_PART = 1 << 20


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file, or of a pipe or a device until its end.

    OSError if it cannot be read, MalformedError for more than `most` bytes.
    """
    parts: list[bytes] = []
    count = 0
    # Python's own buffer would be filled beyond what is asked for.
    with open(path, "rb", buffering=0) as file:
        is_larger = os.fstat(file.fileno()).st_size > most
        while not is_larger and (part := file.read(_PART)):
            parts.append(part)
            count += len(part)
            is_larger = count > most
    if is_larger:
        raise MalformedError(f"expected at most {most:,} bytes, found more", path=str(path))
    return b"".join(parts)

"""Compressed data as one word of a file: `zlib:SHA256:BASE64`, with the checksum of the data."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import sys
import zlib

from uop.spec.errors import MalformedError
from uop.spec.text.literal import Word

COMPRESSED_FROM = 1 << 16
"""Data of more bytes than this are compressed in files."""
PREFIX = "zlib:"
_FORM = re.compile(r"zlib:([0-9a-f]{64}):([A-Za-z0-9+/=]*)")


def compress(data: bytes) -> Word:
    """Compress data to a word."""
    packed = base64.b64encode(zlib.compress(data, 9)).decode("ascii")
    return Word(f"{PREFIX}{hashlib.sha256(data).hexdigest()}:{packed}")


def decompress(word: str, most: int) -> bytes:
    """The data of a word, at most `most` bytes; MalformedError for a word without such data."""
    found = _FORM.fullmatch(word)
    if found is None:
        raise MalformedError("expected zlib:SHA256:BASE64, a sum of 64 hex digits")
    unpacker = zlib.decompressobj()
    try:
        # The limit keeps a small word from unpacking to a huge buffer.
        limit = min(most + 1, sys.maxsize)
        data = unpacker.decompress(base64.b64decode(found[2], validate=True), limit)
    except binascii.Error as error:
        raise MalformedError(f"bytes that are no base64: {error}") from None
    except zlib.error as error:
        raise MalformedError(f"compressed data that are damaged: {error}") from None
    if len(data) > most:
        raise MalformedError(f"expected at most {most} bytes, found more in the compressed data")
    if not unpacker.eof:
        raise MalformedError("compressed data that are cut off")
    if unpacker.unused_data:
        raise MalformedError("expected the end of the compressed data, found more")
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != found[1]:
        raise MalformedError(f"expected data of sha256 {found[1]}, found {sha256}")
    return data

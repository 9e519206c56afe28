"""Arrays as little-endian bytes in row-major order, and their literals; without numpy.

Compressed data are one word, `zlib:SHA256:BASE64`, with the checksum of the data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uop.spec.dtype import DType, Kind, Number, Scalar
from uop.spec.errors import MalformedError
from uop.spec.text.codec import decode_scalar, encode_scalar, shown
from uop.spec.text.literal import Line, Literal, Word, print_literal

Shape = tuple[int, ...]

LIST_LIMIT = 256
"""An array of up to this many elements is written as a list of values, a larger one as bytes."""
SHORT = 16
"""A longer array whose elements are equal, or count in equal steps, is written as a recipe."""
FILL, RANGE = "fill:", "range:"
RECIPES = (FILL, RANGE)
"""The starts of recipes: `fill:0x1p+0`; `range:0:2` for 0, 2, 4, ..."""
MOST_COUNTED = 1 << 16
"""The most elements of a range."""
COMPRESSED_FROM = 1 << 16
"""Data of more bytes than this are compressed in files."""
PLAIN, PREFIX = "base64:", "zlib:"
_FORM = re.compile(r"zlib:([0-9a-f]{64}):([A-Za-z0-9+/=]*)")
_RANGE = re.compile(r"range:([-+]?\d{1,20}):([-+]?\d{1,20})")


@dataclass(frozen=True, slots=True)
class Array:
    """Elements in storage layout: `itemsize` bytes each, little-endian; a bool is a byte 0 or 1."""

    dtype: DType
    shape: Shape
    data: bytes

    @classmethod
    def of(cls, values: Iterable[Number], dtype: DType, shape: Shape | None = None) -> Array:
        """Encode values in row-major order, each rounded once; the default shape is one axis."""
        return cls.of_bits([dtype.encode(v) for v in values], dtype, shape)

    @classmethod
    def of_bits(cls, bits: Iterable[int], dtype: DType, shape: Shape | None = None) -> Array:
        """Build an array from the bits of its elements."""
        data = b"".join(b.to_bytes(dtype.itemsize, "little") for b in bits)
        return cls(dtype, (len(data) // dtype.itemsize,) if shape is None else shape, data)

    @property
    def bits(self) -> list[int]:
        """The bits of every element."""
        size = self.dtype.itemsize
        return [
            int.from_bytes(self.data[i : i + size], "little")
            for i in range(0, len(self.data), size)
        ]

    @property
    def values(self) -> list[Scalar]:
        """Every element, decoded."""
        return [self.dtype.decode(b) for b in self.bits]


def encode_array(array: Array) -> Literal:
    """The literal of an array: a recipe, nested lists for a small one, else its bytes in base64,
    compressed for a large one.
    """
    if recipe := _recipe(array):
        return recipe
    if len(array.data) > COMPRESSED_FROM:
        return compress(array.data)
    if math.prod(array.shape) > LIST_LIMIT:
        return Word(PLAIN + base64.b64encode(array.data).decode())
    items: list[Literal] = [encode_scalar(b, array.dtype) for b in array.bits]
    literal: Literal = nested(items, array.shape, tuple)
    return literal


def nested(
    items: Sequence[Any], shape: Shape, rows: Callable[[Sequence[Any]], Sequence[Any]]
) -> Any:
    """Row-major items as nested lists, which `rows` makes; a single item for the shape ()."""
    for axis in reversed(range(1, len(shape))):
        dim, count = shape[axis], math.prod(shape[:axis])
        items = [rows(items[k * dim : (k + 1) * dim]) for k in range(count)]
    return rows(items) if shape else items[0]


def _recipe(array: Array) -> Word | None:
    """The word for an array of equal elements, or of those of a range."""
    size, count = array.dtype.itemsize, math.prod(array.shape)
    if count <= SHORT:
        return None
    if array.data == array.data[:size] * count:
        (bits,) = replace(array, shape=(), data=array.data[:size]).bits
        return Word(FILL + print_literal(encode_scalar(bits, array.dtype), "[]"))
    first = replace(array, shape=(3,), data=array.data[: 3 * size]).values
    start, step = first[0], first[1] - first[0]
    is_whole = all(n == n and abs(n) < 1 << 53 and n == int(n) for n in first)
    if array.dtype.kind is Kind.BOOL or not is_whole or first[2] - first[1] != step:
        return None
    counted = _counted(int(start), int(step), array.dtype, count)
    return Word(f"{RANGE}{int(start)}:{int(step)}") if counted == array.data else None


def _counted(start: int, step: int, dtype: DType, count: int) -> bytes | None:
    """The bytes of start, start + step, ...; None for too many, or where the dtype lacks one."""
    last = start + step * (count - 1)
    if count > MOST_COUNTED or dtype.kind is Kind.BOOL:
        return None
    if not (_holds(dtype, start) and _holds(dtype, last)):
        return None
    numbers = [start + step * k for k in range(count)]
    array = Array.of(numbers, dtype)
    return array.data if array.values == numbers else None


def _holds(dtype: DType, number: int) -> bool:
    return dtype.is_float or bool(dtype.min <= number <= dtype.max)


def decode_array(literal: Literal, dtype: DType, shape: Shape) -> Array:
    """The array of a literal, which is nested lists of this shape, a flat list, or bytes."""
    what, size = f"{dtype.name}[{','.join(map(str, shape))}]", math.prod(shape)
    if isinstance(literal, Word) and literal.startswith(FILL):
        bits = _bits(_one_value(literal.removeprefix(FILL)), dtype)
        return Array(dtype, shape, bits.to_bytes(dtype.itemsize, "little") * size)
    if isinstance(literal, Word) and literal.startswith(RANGE):
        found = _RANGE.fullmatch(literal)
        data = None if found is None else _counted(int(found[1]), int(found[2]), dtype, size)
        if data is None:
            form = f"range:START:STEP, of integers that {what} holds, of {MOST_COUNTED:,} at most"
            raise MalformedError(f"expected {form}; found {shown(literal)}")
        return Array(dtype, shape, data)
    if isinstance(literal, str) and literal.startswith((PLAIN, PREFIX)):
        is_plain, most = literal.startswith(PLAIN), size * dtype.itemsize
        data = _base64(literal.removeprefix(PLAIN)) if is_plain else decompress(literal, most)
        if len(data) != size * dtype.itemsize:
            expected = f"{shown(size * dtype.itemsize)} bytes for {what}"
            raise MalformedError(f"expected {expected}, found {len(data)}")
        array = Array(dtype, shape, data)
        _check_patterns(array)
        return array
    leaves = _leaves(literal, shape, what)
    if len(leaves) != size:
        raise MalformedError(f"expected {shown(size)} values for {what}, found {len(leaves)}")
    return Array.of_bits([_bits(leaf, dtype) for leaf in leaves], dtype, shape)


def _one_value(text: str) -> Literal:
    line = Line(text)
    try:
        value = line.literal("[]")
        line.need_end()
    except MalformedError as error:
        raise MalformedError(f"expected fill:VALUE; {error.message}") from None
    return value


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise MalformedError(f"bytes that are no base64: {error}") from None


def _check_patterns(array: Array) -> None:
    """MalformedError for a bool byte other than 0 and 1; other dtypes use all their patterns."""
    try:
        if array.dtype.bits % 8:
            array.values  # noqa: B018 - decoding is the check
    except ValueError as error:
        raise MalformedError(str(error)) from None


def _leaves(literal: Literal, shape: Shape, what: str) -> list[Literal]:
    if not isinstance(literal, tuple):
        if shape:
            raise MalformedError(f"expected a list for {what}, found {shown(literal)}")
        return [literal]
    if not any(isinstance(item, tuple) for item in literal):
        return list(literal)
    level: list[Literal] = [literal]
    for dim in shape:
        below: list[Literal] = []
        for item in level:
            if not isinstance(item, tuple) or len(item) != dim:
                raise MalformedError(f"expected a list of {dim} in {what}, found {shown(item)}")
            below.extend(item)
        level = below
    return level


def _bits(leaf: Literal, dtype: DType) -> int:
    if isinstance(leaf, tuple):
        raise MalformedError(f"expected a value of {dtype.name}, found {shown(leaf)}")
    try:
        return decode_scalar(leaf, dtype)
    except ValueError as error:
        raise MalformedError(str(error)) from None


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
        data = unpacker.decompress(_base64(found[2]), min(most + 1, sys.maxsize))
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

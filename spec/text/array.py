"""Arrays as little-endian bytes in row-major order, and their literals; without numpy."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable
from dataclasses import dataclass

from uop.spec.dtype import DType, Number, Scalar
from uop.spec.errors import MalformedError
from uop.spec.text.codec import decode_scalar, encode_scalar, shown
from uop.spec.text.compressed import COMPRESSED_FROM, PREFIX, compress, decompress
from uop.spec.text.literal import Literal, Word

Shape = tuple[int, ...]

LIST_LIMIT = 256
"""An array of up to this many elements is written as a list of values, a larger one as bytes."""


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
    """The literal of an array: nested lists for a small one, else its bytes in base64, compressed
    for a large one.
    """
    if len(array.data) > COMPRESSED_FROM:
        return compress(array.data)
    if math.prod(array.shape) > LIST_LIMIT:
        return Word("base64:" + base64.b64encode(array.data).decode())
    items: list[Literal] = [encode_scalar(b, array.dtype) for b in array.bits]
    for axis in reversed(range(1, len(array.shape))):
        dim, count = array.shape[axis], math.prod(array.shape[:axis])
        items = [tuple(items[k * dim : (k + 1) * dim]) for k in range(count)]
    return tuple(items) if array.shape else items[0]


def decode_array(literal: Literal, dtype: DType, shape: Shape) -> Array:
    """The array of a literal, which is nested lists of this shape, a flat list, or bytes."""
    what, size = f"{dtype.name}[{','.join(map(str, shape))}]", math.prod(shape)
    if isinstance(literal, str) and literal.startswith(("base64:", PREFIX)):
        is_plain = literal.startswith("base64:")
        data = _base64(literal) if is_plain else decompress(literal, size * dtype.itemsize)
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


def _base64(literal: str) -> bytes:
    try:
        return base64.b64decode(literal.partition(":")[2], validate=True)
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

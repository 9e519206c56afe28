"""Encodes dataclasses as JSON and decodes them, by the types of their fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from uop.interpreter.numeric.storage import STORAGE, STORED, Array

Json = dict[str, Any]
T = TypeVar("T")


class Arrays:
    """The arrays of a message: their bytes follow its JSON, in order."""

    def __init__(self, body: bytes = b"") -> None:
        self.body, self.position = body, 0
        self.parts: list[bytes] = []

    def write(self, a: Array) -> Any:
        self.parts.append(a.tobytes())
        return [STORED[a.dtype].name, list(a.shape)]

    def read(self, described: Any) -> Array:
        name, shape = described
        storage, count = STORAGE[name], math.prod(shape)
        a = np.frombuffer(self.body, storage, count, self.position).reshape(shape)
        self.position += count * storage.itemsize
        return a


@dataclass(frozen=True, slots=True)
class Codec:
    """Writes and reads values of one type."""

    write: Callable[[Any, Arrays], Any]
    read: Callable[[Any, Arrays], Any]


PLAIN = (bool, int, float, str, Json, Any)
"""Types that JSON has, and values that are JSON already."""

CODECS: dict[Any, Codec] = {}
"""Cached codecs by type."""


def to_json(value: object) -> Any:
    """Encode a dataclass without arrays as an object with its fields, in order.

    Fields named in its `LEAVES_OUT` are omitted where they are None.
    """
    return codec(type(value)).write(value, Arrays())


def from_json(kind: type[T], data: Any) -> T:
    """The inverse. A missing key gives the default of its field; unknown keys are ignored."""
    value: T = codec(kind).read(data, Arrays())
    return value


def codec(kind: Any) -> Codec:
    """The codec of a type, as a type hint spells it."""
    if kind not in CODECS:
        CODECS[kind] = _made(kind)
    return CODECS[kind]


def _made(kind: Any) -> Codec:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(args)
    if origin is tuple:
        return _items(codec(args[0]), tuple, list)
    if origin is frozenset:
        return _items(codec(args[0]), frozenset, sorted)
    if origin is Mapping:
        return _mapping(*args)
    # The alias itself: what `get_origin` makes of it differs between versions of numpy.
    if kind == Array:
        return Codec(lambda a, arrays: arrays.write(a), lambda data, arrays: arrays.read(data))
    if is_dataclass(kind):
        return _object(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(lambda member, _: member.value, lambda data, _: kind(data))
    if kind is Path:
        return Codec(lambda path, _: str(path), lambda data, _: Path(data))
    if kind not in PLAIN and origin is not Literal:
        raise TypeError(f"no codec for a field of type {kind}")
    return Codec(lambda value, _: value, lambda data, _: data)


def _object(kind: Any) -> Codec:
    parts: list[tuple[str, Codec]] = []
    leaves_out = getattr(kind, "LEAVES_OUT", ())

    def known() -> list[tuple[str, Codec]]:
        # Looked up at the first use: a class may have fields of its own type.
        if not parts:
            hints = get_type_hints(kind)
            parts.extend((f.name, codec(hints[f.name])) for f in fields(kind))
        return parts

    def write(value: Any, arrays: Arrays) -> Any:
        values = ((name, part, getattr(value, name)) for name, part in known())
        return {
            name: part.write(one, arrays)
            for name, part, one in values
            if one is not None or name not in leaves_out
        }

    def read(data: Any, arrays: Arrays) -> Any:
        values = {name: part.read(data[name], arrays) for name, part in known() if name in data}
        return kind(**values)

    return Codec(write, read)


def _union(kinds: tuple[Any, ...]) -> Codec:
    """One type or null; a pair of name and fields for one of several dataclasses."""
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    if len(kinds) == 1:
        one = codec(kinds[0])
        return Codec(
            lambda value, arrays: None if value is None else one.write(value, arrays),
            lambda data, arrays: None if data is None else one.read(data, arrays),
        )
    named = {kind.__name__: codec(kind) for kind in kinds}

    def write(value: Any, arrays: Arrays) -> Any:
        name = type(value).__name__
        return [name, named[name].write(value, arrays)]

    return Codec(write, lambda data, arrays: named[data[0]].read(data[1], arrays))


def _items(one: Codec, made: Callable[[Any], Any], written: Callable[[Any], list[Any]]) -> Codec:
    return Codec(
        lambda values, arrays: [one.write(value, arrays) for value in written(values)],
        lambda data, arrays: made([one.read(value, arrays) for value in data]),
    )


def _mapping(key: type, of: Any) -> Codec:
    """An object where keys are strings, else a list of pairs."""
    one = codec(of)
    made: Callable[[Any], Any] = dict if key is str else list
    return Codec(
        lambda values, arrays: made((k, one.write(v, arrays)) for k, v in values.items()),
        lambda data, arrays: {
            k: one.read(v, arrays) for k, v in (data.items() if key is str else data)
        },
    )

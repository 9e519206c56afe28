"""Typed data as JSON and back, by the types of the fields of dataclasses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from uop.interpreter.numeric.storage import STORAGE, Array

Json = dict[str, Any]
NAMES = {storage: name for name, storage in STORAGE.items() if name != "index"}
T = TypeVar("T")


class Arrays:
    """The arrays of a message, which stand behind its JSON as bytes, in order."""

    def __init__(self, body: bytes = b"") -> None:
        self.body, self.position = body, 0
        self.parts: list[bytes] = []

    def write(self, a: Array) -> Any:
        self.parts.append(a.tobytes())
        return [NAMES[a.dtype], list(a.shape)]

    def read(self, described: Any) -> Array:
        name, shape = described
        storage, count = STORAGE[name], math.prod(shape)
        a = np.frombuffer(self.body, storage, count, self.position).reshape(shape)
        self.position += count * storage.itemsize
        return a


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of one type are written and read."""

    write: Callable[[Any, Arrays], Any]
    read: Callable[[Any, Arrays], Any]


CODECS: dict[Any, Codec] = {}
"""Those that have been made, by type."""


def to_json(value: object) -> Any:
    """A dataclass without arrays as an object: its fields, in order.

    Those that its `LEAVES_OUT` names are not written where they are None.
    """
    return codec(type(value)).write(value, Arrays())


def from_json(kind: type[T], found: Any) -> T:
    """The inverse. A key that is missing has the default of its field; others are passed over."""
    value: T = codec(kind).read(found, Arrays())
    return value


def codec(kind: Any) -> Codec:
    """That of a type as it stands in a type hint."""
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
    if origin is np.ndarray:
        return Codec(lambda a, arrays: arrays.write(a), lambda found, arrays: arrays.read(found))
    if is_dataclass(kind):
        return _object(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(lambda member, _: member.value, lambda found, _: kind(found))
    if kind is Path:
        return Codec(lambda path, _: str(path), lambda found, _: Path(found))
    return Codec(lambda value, _: value, lambda found, _: found)


def _object(kind: Any) -> Codec:
    parts: list[tuple[str, Codec]] = []
    leaves_out = getattr(kind, "LEAVES_OUT", ())

    def known() -> list[tuple[str, Codec]]:
        # Looked up at the first use: a class may hold values of itself.
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

    def read(found: Any, arrays: Arrays) -> Any:
        given = {name: part.read(found[name], arrays) for name, part in known() if name in found}
        return kind(**given)

    return Codec(write, read)


def _union(kinds: tuple[Any, ...]) -> Codec:
    """One type or null; of several dataclasses the name stands before the fields."""
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    if len(kinds) == 1:
        one = codec(kinds[0])
        return Codec(
            lambda value, arrays: None if value is None else one.write(value, arrays),
            lambda found, arrays: None if found is None else one.read(found, arrays),
        )
    named = {kind.__name__: codec(kind) for kind in kinds}

    def write(value: Any, arrays: Arrays) -> Any:
        name = type(value).__name__
        return [name, named[name].write(value, arrays)]

    return Codec(write, lambda found, arrays: named[found[0]].read(found[1], arrays))


def _items(one: Codec, made: Callable[[Any], Any], written: Callable[[Any], list[Any]]) -> Codec:
    return Codec(
        lambda values, arrays: [one.write(value, arrays) for value in written(values)],
        lambda found, arrays: made([one.read(value, arrays) for value in found]),
    )


def _mapping(key: type, of: Any) -> Codec:
    """An object by names, else pairs."""
    one = codec(of)
    made: Callable[[Any], Any] = dict if key is str else list
    return Codec(
        lambda values, arrays: made((k, one.write(v, arrays)) for k, v in values.items()),
        lambda found, arrays: {
            k: one.read(v, arrays) for k, v in (found.items() if key is str else found)
        },
    )

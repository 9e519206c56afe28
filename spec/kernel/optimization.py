"""Optimizations of kernels as data, and their text.

`SPLIT(0, 4, LOCAL, INNER); PADTO(1, 8); SWAP(0, 1); NOLOCALS(); TC(2, m16n8k16)` is a sequence. A
SPLIT without a side is INNER, of a THREAD OUTER. An axis of a kernel is one of its RANGEs; axes are
numbered from 0 in the order of their ids (D-093).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar

from uop.spec.args import AxisType
from uop.spec.conditions.labels import Condition
from uop.spec.errors import InvalidError, MalformedError, users_line


class Side(Enum):
    """The position of the new axis of a SPLIT: inside or outside the rest of the old one."""

    INNER = "INNER"
    OUTER = "OUTER"


@dataclass(frozen=True, slots=True)
class _Step:
    """The base of the optimizations: a word with the fields as its arguments."""

    word: ClassVar[str]

    def __str__(self) -> str:
        values = (getattr(self, f.name) for f in fields(self))
        return f"{self.word}({', '.join(getattr(v, 'name', str(v)) for v in values)})"

    def illegal(self, clause: str, found: str) -> InvalidError:
        """The error for a condition of this word that a kernel breaks."""
        return illegal(f"{self.word}.{clause}", str(self), found)


@dataclass(frozen=True, slots=True)
class Split(_Step):
    """Axis n becomes (n / factor, factor), or (factor, n / factor) with the new one outside."""

    word = "SPLIT"
    axis: int
    factor: int
    target: AxisType
    side: Side = Side.INNER


@dataclass(frozen=True, slots=True)
class PadTo(_Step):
    """The bound of an axis is rounded up to a multiple; added iterations have no effect."""

    word = "PADTO"
    axis: int
    multiple: int


@dataclass(frozen=True, slots=True)
class Swap(_Step):
    """Two axes of one loop nest are exchanged."""

    word = "SWAP"
    axis: int
    other: int


@dataclass(frozen=True, slots=True)
class NoLocals(_Step):
    """Workgroups have one work item, now and later in the sequence."""

    word = "NOLOCALS"


@dataclass(frozen=True, slots=True)
class MatrixUnit(_Step):
    """TC: the fold over an axis and the outputs around it run on a matrix unit of this shape."""

    word = "TC"
    axis: int
    shape: str


Optimization = Split | PadTo | Swap | NoLocals | MatrixUnit


@dataclass(frozen=True, slots=True)
class Origin:
    """The axis types that an axis of some type may be split from, and the allowed sides."""

    types: tuple[AxisType, ...]
    sides: tuple[Side, ...]


_PARALLEL = (AxisType.GLOBAL, AxisType.LOOP)

SPLIT_FROM: Mapping[AxisType, Origin] = {
    AxisType.LOCAL: Origin(_PARALLEL, (Side.INNER,)),
    AxisType.THREAD: Origin((AxisType.GLOBAL,), (Side.OUTER,)),
    AxisType.GROUP_REDUCE: Origin((AxisType.REDUCE,), (Side.INNER, Side.OUTER)),
    AxisType.UPCAST: Origin((*_PARALLEL, AxisType.LOCAL), (Side.INNER,)),
    AxisType.UNROLL: Origin((AxisType.REDUCE, AxisType.GROUP_REDUCE), (Side.INNER,)),
}
"""By target type of a SPLIT. Only TC makes WARP axes, only earlier stages the other types."""

CONDITIONS: Mapping[str, Condition] = {
    c.label: c
    for c in (
        Condition("SPLIT.c1", "the axis is one of the kernel"),
        Condition("SPLIT.c2", "the factor is at least 1 and divides the bound, a CONST"),
        Condition("SPLIT.c3", "the new type splits from that of the axis, on that side"),
        Condition("SPLIT.c4", "no axis of a workgroup is made after NOLOCALS"),
        Condition("SPLIT.c5", "a fold that a workgroup shares stands in no other fold"),
        Condition("PADTO.c1", "the axis is one of the kernel"),
        Condition("PADTO.c2", "the multiple is at least 1, both bounds are values of an index"),
        Condition("SWAP.c1", "both axes are of the kernel"),
        Condition("SWAP.c2", "both axes are closed by one nest of ENDs, or by one REDUCE"),
        Condition("NOLOCALS.c1", "no axis of a workgroup has been made before"),
        Condition("TC.c1", "TC is the first of a sequence"),
        Condition("TC.c2", "the axis is one of the kernel"),
        Condition(
            "TC.c3",
            "the axis is folded by a sum of exact products of two factors cast from one small "
            "float",
        ),
        Condition("TC.c4", "the instruction exists for the factors, and its sizes divide the axes"),
        Condition("OPTIMIZE.c1", "every sequence has a kernel"),
    )
}
"""The conditions under which an optimization is legal, by label."""


def illegal(label: str, subject: str, found: str) -> InvalidError:
    """The error for a broken condition, at the line that asked for the value."""
    return CONDITIONS[label].error(subject, found, users_line())


def print_optimizations(sequence: Iterable[Optimization]) -> str:
    """The text of a sequence."""
    return "; ".join(map(str, sequence))


def parse_optimizations(text: str) -> tuple[Optimization, ...]:
    """The inverse of `print_optimizations`. MalformedError with the column of the first error."""
    sequence: list[Optimization] = []
    start = 0
    for part in text.split(";") if text.strip() else ():
        column = start + len(part) - len(part.lstrip()) + 1
        sequence.append(_parsed(part.strip(), column))
        start += len(part) + 1
    return tuple(sequence)


def _parsed(text: str, column: int) -> Optimization:
    match = re.fullmatch(r"([A-Z]+)\(([^()]*)\)", text)
    if match is None or match[1] not in _READ:
        known = ", ".join(_READ)
        raise MalformedError(f"expected one of {known} with its arguments: {text!r}", 1, column)
    words = [w.strip() for w in match[2].split(",")] if match[2].strip() else []
    fields, make = _READ[match[1]]
    required = sum(not field.startswith("[") for field in fields)
    if not required <= len(words) <= len(fields):
        wanted = ", ".join(fields)
        raise MalformedError(f"expected {match[1]}({wanted}), found {text!r}", 1, column)
    try:
        return make(*words)
    except (KeyError, ValueError) as error:
        wanted = ", ".join(fields)
        message = f"expected {match[1]}({wanted}), found {text!r} with {error}"
        raise MalformedError(message, 1, column) from error


def _natural(word: str) -> int:
    """A natural number without leading zeros."""
    if not re.fullmatch(r"0|[1-9][0-9]*", word):
        raise ValueError(f"{word!r}, which is no natural number")
    return int(word)


def _split(axis: str, factor: str, target: str, side: str = "") -> Optimization:
    new = AxisType[target]
    usual = SPLIT_FROM[new].sides[0] if new in SPLIT_FROM else Side.INNER
    return Split(_natural(axis), _natural(factor), new, Side[side] if side else usual)


_READ: Mapping[str, tuple[tuple[str, ...], Callable[..., Optimization]]] = {
    "SPLIT": (("axis", "factor", "type", "[side]"), _split),
    "PADTO": (("axis", "multiple"), lambda axis, n: PadTo(_natural(axis), _natural(n))),
    "SWAP": (("axis", "other"), lambda axis, n: Swap(_natural(axis), _natural(n))),
    "NOLOCALS": ((), NoLocals),
    "TC": (("axis", "shape"), lambda axis, shape: MatrixUnit(_natural(axis), shape)),
}

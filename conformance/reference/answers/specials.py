"""Tables of what an op gives on special values, and of the values and probes of a knob."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from uop.conformance.profile.points import knob_points
from uop.conformance.reference.words import Section
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted, NaN
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.show import accepted_words, word
from uop.interpreter.values import Value
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.latitude import KNOBS, STRICT
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.text.profile_text import knob_values
from uop.spec.uop import UOp, param

INF, NAN, LARGEST, LEAST = float("inf"), float("nan"), 3.4028234663852886e38, 2.0**-149
UNARY = (-INF, -2.5, -1.0, -0.0, 0.0, LEAST, 0.5, 1.0, 2.5, LARGEST, INF, NAN)
CASTED = (-INF, -1.7, -0.9, -0.0, 0.0, LEAST, 0.5, 2.7, 3.5, 300.0, LARGEST, INF, NAN)
PAIRED = (-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN)
TRIPLES = (
    (INF, 0.0, 1.0),
    (INF, 1.0, -INF),
    (1.0, NAN, 0.0),
    (-0.0, 1.0, 0.0),
    (-0.0, 1.0, -0.0),
    (LARGEST, 2.0, -INF),
)
INTEGERS = (-128, -1, 0, 1, 7, 127)
COUNTS = (-1, 0, 1, 7, 8)
CAST_TARGETS = tuple(
    getattr(dtypes, name) for name in ("bool", "int8", "uint8", "float16", "bfloat16", "fp8e4m3")
)
FOLDED = ((1.0, NAN), (INF, -INF), (-0.0, -0.0), (-0.0, 0.0), (LARGEST, LARGEST))
MOST_VALUES = 12
"""The most special values on which two ops differ that are shown."""
PROGRAMS = 6
"""A section shows at most this many programs, each on its first element."""


def special_values(declaration: OpDef) -> tuple[Section, ...]:
    """The tables of an op; none for an op that only moves elements."""
    op = declaration.op
    if op is Op.CAST:
        return tuple(_casts(dtype) for dtype in (dtypes.float32, dtypes.int32))
    if op is Op.BITCAST:
        return (_bitcasts(),)
    if op is Op.REDUCE:
        return (_folds(), _empty_folds())
    if not declaration.takes_values:
        return ()
    chosen = [d for d in (dtypes.float32, dtypes.int8) if d in declaration.dtypes]
    return tuple(_table(declaration, dtype) for dtype in chosen or declaration.dtypes[:1])


def differing_values(a: OpDef, b: OpDef) -> Iterator[tuple[str, str, str]]:
    """The special values on which two ops differ, as far as they have tables of one form."""
    others = {section.title: section for section in special_values(b)}
    found = []
    for section in special_values(a):
        other = others.get(section.title)
        if other is not None and section.header[:-1] == other.header[:-1]:
            dtype = section.title.rpartition(" ")[2]
            pairs = zip(_cells(section), _cells(other), strict=True)
            found += [(f"{dtype} {at}", x, y) for (at, x), (_, y) in pairs if x != y]
    shown = min(len(found), MOST_VALUES)
    yield from (found[k * len(found) // shown] for k in range(shown))
    if len(found) > shown:
        yield f"{len(found) - shown} more", "...", "..."


def _cells(section: Section) -> Iterator[tuple[str, str]]:
    """The operands and the result of each entry of a table of special values."""
    for row in section.table:
        if section.header[0] == "A \\ B":
            yield from (
                (f"({row[0]}, {b})", x) for b, x in zip(section.header[1:], row[1:], strict=True)
            )
        else:
            yield f"({', '.join(row[:-1])})", row[-1]


def cell(accepted: Accepted, i: int) -> str:
    """The reference, or the accepted set where it also holds another kind of value."""
    reference = _word(accepted.value, i)
    if accepted.any.reshape(-1)[i] or accepted.single.reshape(-1)[i]:
        return reference
    lo, hi = (np.asarray(end).reshape(-1)[i] for end in (accepted.lo, accepted.hi))
    if accepted.dtype.kind is Kind.BOOL or lo == hi:
        return accepted_words(accepted, i)
    if NaN(int(np.asarray(accepted.nan).reshape(-1)[i])) is NaN.MAY:
        return accepted_words(accepted, i)
    return f"≈ {reference}"


def _table(declaration: OpDef, dtype: DType) -> Section:
    kinds = operand_dtypes(declaration, dtype)
    title = f"Special values, {dtype.name}"
    if len(kinds) == 2:
        return _matrix(title, declaration.op, kinds)
    rows = [(v,) for v in _values(dtype)] if len(kinds) == 1 else _triples(kinds)
    columns = [np.array([row[k] for row in rows], np_dtype(d)) for k, d in enumerate(kinds)]
    accepted = _accepted(declaration.op, kinds, columns)
    names = tuple(name.rstrip("?*") for name in declaration.src)
    return Section(title, (*names, declaration.op.name), _lines(columns, [accepted]))


def _matrix(title: str, op: Op, kinds: Sequence[DType]) -> Section:
    first, second = (_values(d, paired=True) for d in kinds)
    if DECLARATIONS[op].is_shift:
        second = COUNTS
    pairs = list(product(first, second))
    columns = [np.array([p[k] for p in pairs], np_dtype(d)) for k, d in enumerate(kinds)]
    accepted = _accepted(op, kinds, columns)
    heads = [_plain(columns[1], i) for i in range(len(second))]
    lines = [
        (
            _plain(columns[0], row * len(second)),
            *(cell(accepted, row * len(second) + k) for k in range(len(second))),
        )
        for row in range(len(first))
    ]
    return Section(title, ("A \\ B", *heads), tuple(lines))


def _casts(dtype: DType) -> Section:
    values = CASTED if dtype.is_float else (-129, -1, 0, 1, 255, 256, 65520)
    column = np.array(values, np_dtype(dtype))
    made = [_accepted(Op.CAST, [dtype], [column], DTypeArg(target)) for target in CAST_TARGETS]
    header = ("T", *(d.name for d in CAST_TARGETS))
    return Section(f"Special values, {dtype.name}", header, _lines([column], made))


def _lines(columns: Sequence[Array], made: Sequence[Accepted]) -> tuple[tuple[str, ...], ...]:
    """A line for each element: the operands, then each result."""
    return tuple(
        (*(_plain(column, i) for column in columns), *(cell(accepted, i) for accepted in made))
        for i in range(len(columns[0]))
    )


def _bitcasts() -> Section:
    column = np.array(UNARY, np.float32)
    accepted = _accepted(Op.BITCAST, [dtypes.float32], [column], DTypeArg(dtypes.uint32))
    lines = [(_plain(column, i), f"{int(accepted.lo[i]):#010x}") for i in range(len(UNARY))]
    return Section("Special values, float32 to uint32", ("T", "BITCAST"), tuple(lines))


def _folds() -> Section:
    ops = (Op.ADD, Op.MUL, Op.MAX)
    lines = []
    for values in FOLDED:
        column = np.array(values, np.float32)
        made = [_accepted(Op.REDUCE, [dtypes.float32], [column], ReduceArg(op, (0,))) for op in ops]
        shown = ", ".join(_plain(column, i) for i in range(len(values)))
        lines.append((f"[{shown}]", *(cell(accepted, 0) for accepted in made)))
    header = ("T", *(op.name for op in ops))
    return Section("Special values, float32", header, tuple(lines))


def _empty_folds() -> Section:
    kinds = (dtypes.float32, dtypes.fp8e4m3, dtypes.int8, dtypes.uint8, dtypes.bool)
    lines = []
    for op in (Op.ADD, Op.MUL, Op.MAX):
        made = [
            _accepted(Op.REDUCE, [d], [np.zeros(0, np_dtype(d))], ReduceArg(op, (0,)))
            for d in kinds
        ]
        lines.append((op.name, *(cell(accepted, 0) for accepted in made)))
    return Section("Of nothing", ("op", *(d.name for d in kinds)), tuple(lines))


def _accepted(
    op: Op,
    kinds: Sequence[DType],
    columns: Sequence[Array],
    arg: DTypeArg | ReduceArg | None = None,
) -> Accepted:
    params = [
        param(k, column.shape, d) for k, (d, column) in enumerate(zip(kinds, columns, strict=True))
    ]
    (accepted,) = accept(UOp(op, *params, arg=arg), dict(enumerate(columns)))
    return accepted


def _values(dtype: DType, *, paired: bool = False) -> tuple[float | int | bool, ...]:
    if dtype.is_float:
        return PAIRED if paired else UNARY
    if dtype.kind is Kind.BOOL:
        return (False, True)
    return INTEGERS if dtype.is_signed else (0, 1, int(dtype.max))


def _triples(kinds: Sequence[DType]) -> list[tuple[float | int | bool, ...]]:
    if kinds[0].kind is Kind.BOOL:
        ends: tuple[float | int, float | int] = (1.0, NAN) if kinds[1].is_float else (1, 2)
        return [(False, *ends), (True, *ends)]
    if kinds[0].is_float:
        return list(TRIPLES)
    return [(7, -7, 1), (127, 2, 0), (-128, -1, -1)]


def _plain(column: Array, i: int) -> str:
    return _word(Value(column), i)


def _word(value: Value, i: int) -> str:
    """An element; a table does not show the bits of a NaN."""
    free = replace(value, free_nan=np.ones(value.data.shape, np.bool_))
    return word(free.map(lambda a: a.reshape(-1)), i)


def knobs_of(op: Op) -> list[tuple[str, str]]:
    """The knobs about an op: their sentence names it, or a program that shows them ends in it."""
    ends = {(p.knob, w.root.op) for p in knob_points() for w in p.witnesses}
    return [
        (name, says)
        for name, says in KNOBS.items()
        if op.name in says.replace(",", "").split() or (name, op) in ends
    ]


def knob_sections(name: str) -> Iterator[Section]:
    """The values of a knob, and its points."""
    strict = getattr(STRICT, name)
    yield Section(
        "Values",
        ("", ""),
        (
            ("may be", knob_values(name)),
            ("strict", "none" if isinstance(strict, frozenset) else str(strict).lower()),
        ),
    )
    for point in knob_points():
        if point.knob != name:
            continue
        by_program = {w.expression(0): w for w in reversed(point.witnesses)}
        rows = [
            (program, " | ".join((*w.answers[0], *filter(None, (w.ended, w.otherwise)))))
            for program, w in reversed(by_program.items())
        ]
        yield Section(f"Probed by: {point.name}", ("program", "answers"), tuple(rows[:PROGRAMS]))

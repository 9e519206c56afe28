"""Generate level graph, rewrites: the left-hand sides of the rewrites that compilers have.

A rewrite that is wrong for some dtype, constant or special value is wrong here. `rewrites.toml`
lists those of rule files, `compositions.toml` what wrong rewrites of bug reports were about.
"""

from __future__ import annotations

import ast
import math
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import product
from math import prod
from typing import Any
from zlib import crc32

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.op.elementwise import guarded, rewrite_constants
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import constant as value_of
from uop.spec.args import ConstArg, PadFill
from uop.spec.dtype import DTYPES, INTS, VALUES, DType, Number, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import CONVERSIONS, Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, param

Argument = UOp | DType | Number | Shape
"""What a name stands for, and what a form takes."""
TABLES = {"rewrites": 3, "compositions": 1}
"""The files with patterns, each a group, and its programs of most dtypes in a smoke run."""
VARIANTS, STRIDE = 4, 3
"""Into how many dtypes a default run converts where a pattern converts to any, and how far apart
these are in the list of dtypes."""
WHOLE = {"bool", "index", *("int8", "int16", "int32"), *("uint8", "uint32", "uint64")}
WHOLE |= {"float16", "float32", "float64"}
"""The dtypes that meet each pattern in a smoke run: three of each kind that has so many."""
MEETING = {"rewrites": WHOLE, "compositions": WHOLE - {"int16", "uint8", "uint64"}}
"""Those of them that meet each pattern of a file."""
ROUNDS = 3
"""How often a dtype meets each in a full run, with other constants; the only dtype of its kind does
so in a default run too.
"""
LENGTHS = pairs.LENGTH, pairs.LENGTH - 1
"""The elements of a vector, by turns: no multiple of what a device computes at once, and one."""
BRACES = re.compile(r"[{}]")
SIDES = (3, 4)
INPUTS: dict[str, Shape] = {
    **dict.fromkeys("xyzpq", ()),
    **dict.fromkeys("st", SIDES),
    **{"r": (1, 4), "o": (1, 1)},
    **dict.fromkeys("kl", (3, 3, 3)),
    **dict.fromkeys("mn", (3, 3)),
    **{"v": (3,), "w": (3, 1)},
}
"""The shapes of the inputs; () is a vector."""
SLOTS = {name: slot for slot, name in enumerate(INPUTS)}
BOOLS = "pq"
FREE = "cd"
"""The constants that change."""
SECTIONS: dict[str, frozenset[str]] = {
    "numbers": frozenset({"int", "uint", "float", "index"}),
    "signed": frozenset({"int", "float", "index"}),
    "floats": frozenset({"float"}),
    "integers": frozenset({"int", "uint", "index"}),
    "int": frozenset({"int"}),
    "bits": frozenset({"int", "uint", "bool"}),
    "bool": frozenset({"bool"}),
    "values": frozenset({"int", "uint", "float", "bool", "index"}),
}
"""The kinds of dtypes of each section of the table."""
TOO_LARGE = ("CAST", "lowest", "large", "REDUCE(MUL")
"""What may leave 64 bits, where an index has no meaning."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(VALUES):
        for name, few in TABLES.items():
            if listed := rewrites(dtype, vocabulary, name):
                once = -(-sum(not row.variant for row in listed) // pairs.TOGETHER)
                programs = -(-len(listed) // pairs.TOGETHER)
                rounds = 1 if dtype.is_float or dtype.is_int else ROUNDS
                smoke = once if dtype.name in MEETING[name] else min(few, once)
                counts = (smoke, rounds * programs, ROUNDS * programs)
                args = (dtype, vocabulary, name)
                yield group("graph", None, dtype, name, counts, _rewrites, *args)


def _rewrites(
    dtype: DType, vocabulary: Vocabulary, name: str, choices: Choices, index: int
) -> Generated:
    """Build the next left-hand sides; after the last the first one follows."""
    listed = rewrites(dtype, vocabulary, name)
    made = []
    for k in range(pairs.TOGETHER * index, pairs.TOGETHER * (index + 1)):
        row = listed[k % len(listed)]
        turn = row.turn + pairs.turn_of(dtype, k // len(listed))
        made.append(built(row.pattern, dtype, vocabulary, turn, LENGTHS[index % len(LENGTHS)]))
    root = nodes.outputs(*dict.fromkeys(u for u in made if u is not None))
    return program(root, *pairs.data_for(root, choices))


@cache
def table(name: str) -> dict[str, dict[str, str]]:
    """Return the compilers of each pattern of a file, by section.

    A row with `{MAX|MIN}` is two patterns.
    """
    text = (files(__package__) / f"{name}.toml").read_text("utf-8")
    return {
        section: {p: compilers for row, compilers in rows.items() for p in alternatives(row)}
        for section, rows in tomllib.loads(text).items()
    }


def alternatives(row: str) -> Iterator[str]:
    """Return the patterns that a row with braces is."""
    parts = (part.split("|") for part in BRACES.split(row))
    return map("".join, product(*parts))


@dataclass(frozen=True, slots=True)
class PatternRow:
    """A pattern of the table. Where it converts to any dtype, its variants convert to others."""

    pattern: str
    variant: int = 0

    @property
    def turn(self) -> int:
        """What chooses its constants, and the dtype that it converts to.

        A hash of its text: a new pattern does not change the others.
        """
        return crc32(self.pattern.encode()) + STRIDE * self.variant


@cache
def rewrites(
    dtype: DType, vocabulary: Vocabulary, name: str = "rewrites"
) -> tuple[PatternRow, ...]:
    """Return the patterns that a dtype and a vocabulary have, from its share on; variants last."""
    kind = dtype.kind.value
    listed = [p for section, rows in table(name).items() if kind in SECTIONS[section] for p in rows]
    if dtype is dtypes.index:
        listed = [p for p in listed if not any(part in p for part in TOO_LARGE)]
    if dtype is dtypes.index or not vocabulary.is_whole:
        listed = [p for p in listed if built(p, dtype, vocabulary, 0) is not None]
    rows = list(map(PatternRow, listed))
    begin = pairs.own_share(dtype, len(rows))
    free = [row for row in rows if _is_free(row.pattern)]
    variants = (replace(row, variant=k) for k in range(1, VARIANTS) for row in free)
    return (*rows[begin:], *rows[:begin], *variants)


@cache
def _is_free(pattern: str) -> bool:
    """Return whether a node of a pattern converts to any dtype."""
    names = {op.name for op in CONVERSIONS}
    return any(
        isinstance(e, ast.Call)
        and isinstance(e.func, ast.Name)
        and e.func.id in names
        and len(e.args) == 1
        for e in ast.walk(_parsed(pattern))
    )


def built(
    pattern: str, dtype: DType, vocabulary: Vocabulary, turn: int, length: int = LENGTHS[0]
) -> UOp | None:
    """Return a graph of a pattern; the turn chooses constants and targets of conversions."""
    for k in range(len(VALUES)):
        try:
            made = Builder(dtype, vocabulary, turn + k, length).node(_parsed(pattern), dtype)
        except (InvalidError, ValueError):
            continue
        if vocabulary.speaks(made):
            return made
    return None


@cache
def _parsed(pattern: str) -> ast.expr:
    return ast.parse(pattern, mode="eval").body


def _checked(u: UOp) -> UOp:
    """Return a node; ValueError where its constant divisor, or count of a shift, has no meaning."""
    if u.declaration.is_partial and u.src[1].op is Op.CONST:
        assert isinstance(u.src[1].arg, ConstArg)
        value = value_of(u.src[1].arg.bits, u.src[1].dtype).reshape(1)
        if guarded(u.op, (u.dtype, u.src[1].dtype), [value, value])[1] != value:
            raise ValueError(f"{u.op.name} has no meaning for a second operand of {value[0]}")
    return u


@dataclass(slots=True)
class Builder:
    """Builds the nodes of patterns."""

    home: DType
    vocabulary: Vocabulary
    turn: int
    length: int
    constants: dict[tuple[str, DType], UOp] = field(default_factory=dict)
    names: dict[str, Argument] = field(default_factory=dict)
    """What further names stand for."""
    forms: dict[str, Callable[..., UOp]] = field(default_factory=lambda: COMPOSED)

    def node(self, e: ast.expr, like: DType) -> UOp:
        """Return the node of an expression; a constant has the dtype `like`."""
        if not isinstance(e, ast.Call):
            return self._leaf(e, like)
        assert isinstance(e.func, ast.Name)
        if e.func.id in self.forms:
            return self.forms[e.func.id](*self._arguments(e.args, like))
        op = Op.__members__[e.func.id]
        if op in CONVERSIONS:
            return self._converted(op, e.args)
        if op is Op.REDUCE:
            assert isinstance(e.args[0], ast.Name)
            return _folded(Op.__members__[e.args[0].id], *self._arguments(e.args[1:], like))
        if op in MOVED:
            form = MOVED[op] if len(e.args) == 1 else WITH_NUMBERS[op]
            return form(*self._arguments(e.args, like))
        return _checked(UOp(op, *self._operands(op, e.args, like)))

    def _arguments(self, args: list[ast.expr], like: DType) -> list[Any]:
        """Return the arguments of a form: nodes, numbers and several numbers."""
        return [self._argument(arg, like) for arg in args]

    def _argument(self, e: ast.expr, like: DType) -> Argument:
        if isinstance(e, ast.Name):
            return self.names[e.id] if e.id in self.names else self.node(e, like)
        return self.node(e, like) if isinstance(e, ast.Call) else _literal(e)

    def _operands(self, op: Op, args: list[ast.expr], like: DType) -> list[UOp]:
        """Build the computed operands first: constants take their dtype."""
        made = {k: self.node(arg, like) for k, arg in enumerate(args) if self._is_computed(arg)}
        is_choice = op is Op.WHERE
        others = [u.dtype for k, u in made.items() if not (is_choice and k == 0)]
        common = others[0] if others else like
        for k, arg in enumerate(args):
            if k not in made:
                made[k] = self.node(arg, dtypes.bool if is_choice and k == 0 else common)
        return [made[k] for k in range(len(args))]

    def _converted(self, op: Op, args: list[ast.expr]) -> UOp:
        """Convert to the dtype of the second operand, or to one of those that the turn chooses."""
        value = self.node(args[0], self.home)
        if len(args) > 1:
            target = self._target(args[1])
        else:
            kinds = pairs.targets(op, value.dtype, self.vocabulary)
            others = [d for d in kinds if d is not value.dtype]
            if not others:
                raise ValueError(f"no other dtype to {op.name} {value.dtype.name} to")
            target = others[self.turn % len(others)]
        return nodes.cast(value, target) if op is Op.CAST else nodes.bitcast(value, target)

    def _target(self, e: ast.expr) -> DType:
        """Return the dtype of a name, or of an operand."""
        if isinstance(e, ast.Name) and e.id in DTYPES:
            return DTYPES[e.id]
        named = self._argument(e, self.home)
        assert isinstance(named, UOp | DType)
        return named.dtype if isinstance(named, UOp) else named

    def _is_computed(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Name) and e.id in self.names:
            return isinstance(self.names[e.id], UOp)
        return isinstance(e, ast.Call) or (isinstance(e, ast.Name) and e.id in INPUTS)

    def _leaf(self, e: ast.expr, like: DType) -> UOp:
        if not isinstance(e, ast.Name):
            return const(_number(_literal(e), like), like)
        if e.id in self.names:
            named = self.names[e.id]
            return named if isinstance(named, UOp) else const(_number(named, like), like)
        if e.id in INPUTS:
            shape = INPUTS[e.id] or (self.length,)
            return param(SLOTS[e.id], shape, dtypes.bool if e.id in BOOLS else self.home)
        if e.id in FREE:
            return self.constants.setdefault((e.id, like), self._free(e.id, like))
        return const(NAMED[e.id](like), like)

    def _free(self, name: str, dtype: DType) -> UOp:
        """Return one of the constants that rewrites look for, by turns; two names differ."""
        column = rewrite_constants(dtype)
        place = self.turn if name == FREE[0] else 7 * self.turn + 1
        return nodes.constant(column[place % len(column)], dtype)


def _literal(e: ast.expr) -> Any:
    return ast.literal_eval(e)


def _number(value: Any, dtype: DType) -> Number:
    """Return a number for a dtype; of a float with its sign."""
    return bool(value) if dtype is dtypes.bool else float(value) if dtype.is_float else value


def _power(dtype: DType) -> Number:
    return 1 << (dtype.bits // 2) if dtype.is_int else 4.0


def _large(dtype: DType) -> Number:
    """Three quarters of the largest: twice of it is too much."""
    if dtype.is_int:
        return dtype.max - dtype.max // 4
    return 0.75 * float(dtype.format.finite(dtype.format.max_bits))


NAMED: dict[str, Callable[[DType], Number]] = {
    "power": _power,
    "lowest": lambda d: d.min,
    "highest": lambda d: d.max,
    "ones": lambda d: -1 if d.is_signed else d.max,
    "large": _large,
    "width": lambda d: d.bits - 1,
    "inf": lambda d: math.inf,
    "nan": lambda d: math.nan,
}
"""The constants that follow from a dtype."""


def _product(a: UOp, b: UOp) -> UOp:
    terms = UOp(Op.MUL, nodes.reshape(a, (3, 3, 1)), nodes.reshape(b, (1, 3, 3)))
    return nodes.reshape(nodes.fold(Op.ADD, terms, (1,)), (3, 3))


def _folded(op: Op, u: UOp, axes: int | Shape | None = None) -> UOp:
    """Fold some axes, or the first one longer than 1."""
    if axes is None:
        axes = next((k for k, s in enumerate(u.shape) if s > 1), 0)
    return nodes.fold(op, u, (axes,) if isinstance(axes, int) else axes)


def _expanded(u: UOp) -> UOp:
    """Expand the first axis of size 1."""
    u = u if u.shape else nodes.reshape(u, (1, 1))
    axis = u.shape.index(1)
    return nodes.expand(u, (SIDES[k] if k == axis else s for k, s in enumerate(u.shape)))


def _padded(u: UOp) -> UOp:
    return nodes.pad(u, (1,) * len(u.shape), (s + 3 for s in u.shape), PadFill.ZERO)


def _parts(u: UOp) -> UOp:
    """Read the bits of each element as two integers, of a byte as one of another dtype."""
    bits = max(u.dtype.bits // 2, 8)
    return nodes.bitcast(u, next(d for d in INTS if d.bits == bits and d is not u.dtype))


def _wider(dtype: DType) -> DType:
    """Return the next wider dtype in which an accumulator is; of the widest itself."""
    if dtype.is_float:
        return dtypes.float32 if dtype.bits < 32 else dtypes.float64
    return next((d for d in INTS if d.kind is dtype.kind and d.bits > dtype.bits), dtype)


MOVED: dict[Op, Callable[[UOp], UOp]] = {
    Op.PERMUTE: lambda u: nodes.permute(u, (1, 0) if len(u.shape) == 2 else (1, 2, 0)),
    Op.RESHAPE: lambda u: nodes.reshape(u, u.shape[::-1]),
    Op.FLIP: lambda u: nodes.flip(u, (k == 0 or len(u.shape) < 3 for k in range(len(u.shape)))),
    Op.EXPAND: _expanded,
    Op.PAD: _padded,
    Op.SHRINK: lambda u: nodes.shrink(u, (1,) * len(u.shape), (s - 1 for s in u.shape)),
}
"""The one form of each view; of a cube PERMUTE turns all axes and FLIP turns one round."""
WITH_NUMBERS: dict[Op, Callable[..., UOp]] = {
    Op.PERMUTE: lambda u, *order: nodes.permute(u, order),
    Op.RESHAPE: lambda u, *shape: nodes.reshape(u, shape),
    Op.FLIP: lambda u, *flags: nodes.flip(u, map(bool, flags)),
    Op.EXPAND: lambda u, *shape: nodes.expand(u, shape),
    Op.PAD: lambda u, before, sizes: nodes.pad(u, before, sizes, PadFill.ZERO),
    Op.SHRINK: nodes.shrink,
}
"""The views where a pattern has the numbers of each."""
COMPOSED: dict[str, Callable[..., UOp]] = {
    "DOT": _product,
    "SUM1": lambda u: nodes.fold(Op.ADD, u, (1,)),
    "LARGEST1": lambda u: nodes.fold(Op.MAX, u, (1,)),
    "SUM": lambda u: nodes.fold(Op.ADD, u, range(len(u.shape))),
    "LARGEST": lambda u: nodes.fold(Op.MAX, u, range(len(u.shape))),
    "ABSENT": lambda u: nodes.pad(
        u, (1,) * len(u.shape), (s + 3 for s in u.shape), PadFill.INVALID
    ),
    "TAIL": lambda u: nodes.shrink(u, (1,) * len(u.shape), (s - 1 for s in u.shape)),
    "MIDDLE": lambda u: nodes.shrink(u, (1,) * len(u.shape), (s - 2 for s in u.shape)),
    "TURNED": nodes.flip_all,
    "ROWS": lambda u: nodes.reshape(u, (u.shape[0], prod(u.shape[1:]))),
    "SPREAD": lambda u: nodes.expand(
        u, (n if s == 1 else s for s, n in zip(u.shape, SIDES, strict=True))
    ),
    "PARTS": _parts,
    "WIDE": lambda u: nodes.cast(u, _wider(u.dtype)),
    "OTHER": lambda u: nodes.cast(
        u, next(d for d in INTS if d.bits == u.dtype.bits and d is not u.dtype)
    ),
    "BITS": lambda u: nodes.bitcast(u, next(d for d in INTS if d.bits == u.dtype.bits)),
}
"""What has no op of its own: a product of matrices, folds along the second axis and of all axes, a
PAD with absent elements, all but the first of each axis, all but the first and last, a FLIP of all
axes, two axes made of all, every axis of size 1 repeated, the halves of each element, a wider
dtype, an integer of the other kind, and the bits as a signed integer."""

"""Each rule of the compiler's table keeps the value of what it replaces.

The programs are generated from its left sides, over every dtype, the special values and the
constants that its guard takes; both sides run in the interpreter, index arithmetic on counters in
Python's integers. A proof in which a left side never fires is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from tests.compiler.counters import PLACES, G, R, value
from uop.compiler.rewriting.patterns import BOOLS, CONSTANTS, PLACE, Pattern, patterns, rule_of
from uop.compiler.rewriting.rewrite import Rule, RuleSet
from uop.compiler.rewriting.simplify import SIMPLIFY
from uop.conformance.locate.firing import Firing, accepted_of, change_of, first_outside, values_of
from uop.conformance.suite.values import INDEX_LIMIT, every_pattern, specials
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import AddrSpace, DTypeArg, ParamArg, RangeArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, UndefinedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const, param

RULES = {"simplify": SIMPLIFY}
ROWS = [(pattern, RULES[stage]) for stage in RULES for pattern in patterns(stage)]
NUMBERS = (*range(-7, 8), -12, 12, 24, 1 << 31, -(1 << 62), (1 << 62))
"""The values of integer constants."""
MOST = 1 << 14
"""The most combinations of the operands' values; up to here they are all there are."""
MOST_ALONE = 64
"""The most of these that are evaluated one by one."""
MOST_CONSTANTS = 500
"""The most values of the constants."""
ACCESSES = (Op.LOAD, Op.STORE)
COUNTED: Mapping[str, UOp] = {
    "x": UOp(Op.SUB, G, index_const(7)),
    "y": R,
    "z": UOp(Op.MUL, R, index_const(3)),
    "p": UOp(Op.CMPLT, G, index_const(9)),
    "q": UOp(Op.CMPLT, index_const(2), R),
}
"""What names of index arithmetic stand for in kernels."""


class UnprovedError(AssertionError):
    """A rule without a proof: it changes a value, or nothing was shown."""


@dataclass(slots=True)
class Memory:
    """The operands of a left side: tensors of all combinations of values, numbers, or elements of
    memory in a kernel.
    """

    pattern: Pattern
    dtype: DType
    form: str
    held: dict[str, UOp] = field(default_factory=dict)

    def leaf(self, name: str) -> UOp:
        dtype = dtypes.bool if name in BOOLS else self.dtype
        held = dtypes.int64 if dtype is dtypes.index else dtype
        slot = len(self.held)
        if self.form == "kernel":
            arg = ParamArg(slot, held, None, AddrSpace.GLOBAL)
            memory = self.held.setdefault(name, UOp(Op.PARAM, dims((9,)), arg=arg))
            place = UOp(Op.INDEX, memory, UOp(Op.RANGE, index_const(9), arg=RangeArg(0)))
            return place if name == PLACE else UOp(Op.LOAD, place)
        shape = (self.size ** len(self.nodes),) if self.form == "tensor" else ()
        u = self.held.setdefault(name, param(slot, shape, held))
        return u if dtype is held else UOp(Op.CAST, u, arg=DTypeArg(dtype))

    @property
    def nodes(self) -> list[str]:
        return [name for name in self.pattern.names if name not in CONSTANTS]

    @property
    def size(self) -> int:
        """How many values each operand has."""
        each = int(MOST ** (1 / max(len(self.nodes), 1)))
        return min(each, max(len(column_of(self.dtype)), 2))

    def inputs(self) -> Iterator[dict[int, Array]]:
        """All combinations of the values of the operands, as tensors or one after the other."""
        columns = []
        for u in self.held.values():
            is_index = self.dtype is dtypes.index and u.dtype is dtypes.int64
            values = column_of(dtypes.index if is_index else u.dtype)
            # From all over the list: it is in the order of classes.
            at = np.linspace(0, len(values) - 1, self.size).round().astype(int)
            columns.append(values[at])
        grids = [grid.reshape(-1) for grid in np.meshgrid(*columns, indexing="ij")]
        if self.form == "tensor" or not grids:
            yield dict(enumerate(grids))
            return
        step = max(len(grids[0]) // MOST_ALONE, 1)
        for values in zip(*(grid[::step] for grid in grids), strict=True):
            yield {slot: np.asarray(value) for slot, value in enumerate(values)}


def column_of(dtype: DType) -> Array:
    """The values of a dtype: all of them up to 8 bits, else the special and small ones."""
    if dtype is dtypes.index:
        return np.array([*range(-64, 65), -INDEX_LIMIT, INDEX_LIMIT], np.int64)
    if dtype.bits <= 8:
        return every_pattern(dtype)
    small = np.arange(-40, 41) if dtype.is_signed or dtype.is_float else np.arange(41)
    return np.concatenate([specials(dtype), small.astype(np_dtype(dtype))])


def forms_of(pattern: Pattern) -> tuple[str, ...]:
    """The programs of a left side, the first of which it fires on is judged."""
    ops = {e.func.id for e in ast.walk(pattern.left)
           if isinstance(e, ast.Call) and isinstance(e.func, ast.Name)}  # fmt: skip
    if ops.intersection(op.name for op in ACCESSES):
        return ("kernel",)
    return ("tensor", "number") if pattern.right or pattern.dtype is None else ("counters",)


def prove(pattern: Pattern, rule: Rule) -> None:
    """Raise UnprovedError unless the rule was seen to keep the values of its left side."""
    fired = False
    chosen = list(pattern.constants(NUMBERS))
    step = len(chosen) // MOST_CONSTANTS + 1
    for dtype, constants in product(pattern.dtypes, chosen[:: step | 1]):
        for form in forms_of(pattern):
            memory = Memory(pattern, dtype, form)
            leaf = COUNTED.__getitem__ if form == "counters" else memory.leaf
            try:
                before = pattern.graph(dtype, constants, leaf)
            except (InvalidError, ValueError):
                break  # The ops have no such dtype, or the dtype no such constant.
            after = rule(before) if before.op in rule.ops else None
            if after is None:
                continue
            what = changed(rule, before, after, memory)
            if what:
                raise UnprovedError(f"{pattern.text}, {dtype.name}, {constants}: {what}")
            fired = True
            break
    if not fired:
        raise UnprovedError(f"{pattern.text}: it fires on no program of its left side")


def changed(rule: Rule, before: UOp, after: UOp, memory: Memory) -> str:
    """Where the replacement has another value; empty if nowhere."""
    if memory.form == "kernel":
        change = change_of(Firing("rangeify", rule.__name__, before, after), {})
        return "" if change is None else f"found {change.found}, accepted {change.accepted}"
    if memory.form == "counters":
        for g, r in PLACES:
            found, expected = value(after, g, r), value(before, g, r)
            if found != expected:
                return f"found {found}, accepted {expected} for {g}, {r}"
        return ""
    if before.dtype is dtypes.index:
        before, after = (UOp(Op.CAST, u, arg=DTypeArg(dtypes.int64)) for u in (before, after))
    for inputs in memory.inputs():
        try:
            accepted = accepted_of(before, inputs, ())
        except UndefinedError:
            continue
        if outside := first_outside(accepted, values_of(after, inputs, ())):
            return outside
    return ""


@pytest.mark.parametrize(("pattern", "rules"), ROWS, ids=lambda row: getattr(row, "text", ""))
def test_a_rule_keeps_the_value(pattern: Pattern, rules: RuleSet) -> None:
    prove(pattern, next(rule for rule in rules.rules if rule.__name__ == pattern.rule))


def test_each_rule_has_a_left_side() -> None:
    for stage, rules in RULES.items():
        assert list(dict.fromkeys(p.rule for p in patterns(stage))) == list(rules.names)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("WHERE(CMPNE(p, True), x, y) -> WHERE(p, x, y)", None),
        ("WHERE(p, x, WHERE(p, y, z)) -> WHERE(p, x, y)", None),
        ("WHERE(p, x, y) -> x", None),
        ("AND(p, q) -> p", None),
        ("AND(p, False) -> p", None),
        ("WHERE(p, False, True) -> p", None),
        ("CMPNE(CMPNE(x, y), True) -> CMPNE(y, x)", None),
        ("CMPNE(x, x) -> False", None),
        ("IDIV(IDIV(x, c), d) -> IDIV(x, c + d) if c > 0 and d > 0", dtypes.index),
        ("IDIV(IDIV(x, c), d) -> IDIV(x, c * d) if d != 0 and c != 0", dtypes.index),
        ("MOD(MOD(x, c), d) -> MOD(x, d) if c > 0 and d > 0", dtypes.index),
        ("MOD(x, c) -> x if c > 24", dtypes.index),
        ("IDIV(MUL(x, c), c) -> x if c > 0", None),
        ("SUB(SUB(x, c), d) -> SUB(x, c - d)", dtypes.index),
        ("ADD(x, NEG(x)) -> MUL(x, SUB(x, x))", None),
        ("SUB(NEG(x), y) -> NEG(ADD(x, y))", None),
        ("LOAD(i, x, False) -> LOAD(i)", None),
        ("STORE(i, x, False) -> STORE(i, x)", None),
        ("LOAD(i, x, p) -> LOAD(i)", None),
    ],
)
def test_a_wrong_pattern_has_no_proof(text: str, dtype: DType | None) -> None:
    pattern = Pattern("wrong", text, dtype)
    with pytest.raises(UnprovedError, match="accepted"):
        prove(pattern, rule_of("wrong", [pattern]))


@pytest.mark.parametrize("text", ["WHERE(p, x, y) -> p", "AND(x, y) -> x if 1 > 2"])
def test_a_pattern_that_never_fires_has_no_proof(text: str) -> None:
    pattern = Pattern("idle", text, dtypes.index)
    with pytest.raises(UnprovedError, match="fires on no program"):
        prove(pattern, rule_of("idle", [pattern]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("IDIV(x, -> x", "was never closed"),
        ("DIVIDE(x, 1) -> x", r"DIVIDE\(x, 1\) is no op with its operands"),
        ("x -> x", "x is no op with its operands"),
        ("IDIV(x, 1.5) -> x", r"1\.5 is no op, name or constant"),
        ("IDIV(a, c) -> a", "a is no op, name or constant"),
        ("IDIV(x, c) -> y", "y is not on the left side"),
        ("IDIV(x, c) -> IDIV(x, c * d)", "d is not on the left side"),
        ("IDIV(x, c) -> IDIV(x, c * x)", r"c \* x is no op, name or number"),
        ("IDIV(x, c) -> x if d > 0", "d is not on the left side"),
    ],
)
def test_a_text_that_is_no_pattern_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rule_of("strange", [Pattern("strange", text, dtypes.index)])

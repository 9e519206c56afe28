"""Backends that choose where the spec lets them, or twice: `choosing_backends:Name`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Problem, ProblemKind, Program
from uop.interpreter.evaluate import evaluate_full
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const

Rule = Callable[[UOp], UOp]
NEUTRAL = {Op.MAX: -inf, Op.MIN: inf}
LEAST = 2.0**-126
"""The smallest normal float32."""


class Choosing(InterpreterBackend):
    """The interpreter on a program whose nodes were replaced by a rule; it declares no profile."""

    dtypes: frozenset[str] | None = None

    def hello(self) -> Hello:
        known = super().hello()
        return replace(
            known,
            name=type(self).__name__.lower(),
            dtypes=self.dtypes or known.dtypes,
            offers=frozenset(),
            profile="",
        )

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self.chosen(program) for program in programs]

    def chosen(self, program: Program) -> Outcome:
        return rewritten(program, self.rule)

    def rule(self, u: UOp) -> UOp:
        raise NotImplementedError


class Numbers(Choosing):
    """A number wins over a NaN."""

    def rule(self, u: UOp) -> UOp:
        return number(u)


class Truncating(Choosing):
    """Division of integers rounds toward zero; that of an index floors.

    It takes no lists of instructions: what makes up a CDIV would not stand there.
    """

    def hello(self) -> Hello:
        return replace(super().hello(), forms=frozenset({"tensor", "kernel"}))

    def rule(self, u: UOp) -> UOp:
        same = {Op.IDIV: Op.CDIV, Op.MOD: Op.CMOD}
        chosen = u.op in same and u.dtype is not dtypes.index
        return UOp(same[u.op], *u.src) if chosen else u


class Contracting(Choosing):
    """A product that is added to or subtracted is not rounded; of floats it has float32 alone."""

    dtypes = frozenset({"float32", "bool", "int32", "index"})

    def rule(self, u: UOp) -> UOp:
        if u.op not in (Op.ADD, Op.SUB, Op.MULACC) or u.dtype is not dtypes.float32:
            return u
        if u.op is Op.MULACC:
            return cast(dtypes.float32, UOp(Op.ADD, wide_product(*u.src[:2]), wide(u.src[2])))
        if all(s.op is not Op.MUL for s in u.src):
            return u
        operands = [wide_product(*s.src) if s.op is Op.MUL else wide(s) for s in u.src]
        return cast(dtypes.float32, UOp(u.op, *operands))


class ContractingSums(Contracting):
    """A product that is added is not rounded; one that is subtracted is, as is that of a MULACC."""

    def rule(self, u: UOp) -> UOp:
        return super().rule(u) if u.op is Op.ADD else u


class Flushing(Choosing):
    """Subnormals are zeros; of floats it has float32 alone."""

    dtypes = frozenset({"float32", "bool", "int32", "index"})

    def rule(self, u: UOp) -> UOp:
        if u.op not in (Op.ADD, Op.MUL, Op.CMPLT) or u.src[0].dtype is not dtypes.float32:
            return u
        made = UOp(u.op, *map(flushed, u.src))
        return made if u.op is Op.CMPLT else flushed(made)


class Wide(Choosing):
    """A float16 is kept as a float32 between one op and the next; a CAST to it rounds."""

    dtypes = frozenset({"float16", "float32", "bool", "int32", "index"})

    def chosen(self, program: Program) -> Outcome:
        root = parse(program.text)
        new: dict[UOp, UOp] = {}
        for u in root.toposort():
            new[u] = self.widened(u, [new[s] for s in u.src])
        return interpret(Program(print_program(stored(new[root], root.dtype)), program.batches))

    def widened(self, u: UOp, src: list[UOp]) -> UOp:
        return cast(u.dtype, src[0]) if u.op is Op.CAST else unrounded(u, src)


class Dropping(Wide):
    """A CAST to float16 changes nothing either."""

    def widened(self, u: UOp, src: list[UOp]) -> UOp:
        return unrounded(u, src)


class Algebraic(Choosing):
    """x * 0 is 0, x - x is 0 and x / x is 1."""

    def rule(self, u: UOp) -> UOp:
        if not u.dtype.is_float or u.op not in (Op.MUL, Op.SUB, Op.ADD, Op.DIV):
            return u
        a, b = u.src
        zero = const(0.0, u.dtype)
        if u.op is Op.MUL:
            folds = zero in (a, b)
        else:
            folds = b.op is Op.NEG and b.src[0] is a if u.op is Op.ADD else a is b
        # What is folded keeps the shape of the operands.
        shaped = where(b, zero, zero) if a is zero else where(a, zero, zero)
        if not folds:
            return u
        return UOp(Op.ADD, shaped, const(1.0, u.dtype)) if u.op is Op.DIV else shaped


class Regrouping(Choosing):
    """x + c - c is x."""

    def rule(self, u: UOp) -> UOp:
        if u.op is not Op.SUB or not u.dtype.is_float or u.src[0].op is not Op.ADD:
            return u
        (x, c), d = u.src[0].src, u.src[1]
        return x if c is d and c.op is Op.CONST else u


class Powers(Choosing):
    """A NaN raised to 0 is NaN, as its decomposition has it; other powers are those of POW."""

    dtypes = frozenset({"float32", "bool", "int32", "index"})

    def rule(self, u: UOp) -> UOp:
        return where(u.src[0], u.src[0], u) if u.op is Op.POW else u


class Trapping(Choosing):
    """A division by zero ends the program."""

    def chosen(self, program: Program) -> Outcome:
        root = parse(program.text)
        divisors = {u.src[1] for u in root.toposort() if u.op in (Op.IDIV, Op.MOD)}
        seen: list[bool] = []
        for batch in program.batches if divisors else ():
            evaluate_full(root, batch, lambda u, v: seen.append(u in divisors and not v.data.all()))
        return Problem(ProblemKind.TRAP, "division by zero") if any(seen) else interpret(program)


class Alternating(Choosing):
    """In every other program with a MAX a number wins over a NaN."""

    count = 0

    def chosen(self, program: Program) -> Outcome:
        self.count += "MAX" in program.text
        return interpret(program) if self.count % 2 else rewritten(program, number)


class Poor(Choosing):
    """Has MAX on float32, and takes the first operand for it."""

    def hello(self) -> Hello:
        ops = frozenset({"PARAM", "MAX"})
        return Hello("poor", "1", "test", ops, frozenset({"float32"}))

    def chosen(self, program: Program) -> Outcome:
        assert "MAX" in program.text
        return Outputs(tuple((batch[0],) for batch in program.batches))


class Odd(Choosing):
    """Gives what nobody asked for."""

    def chosen(self, program: Program) -> Outcome:
        if "MAX" in program.text:
            return Problem(ProblemKind.INTERNAL, "no\nMAX today")
        return Outputs(tuple((np.zeros(7, np.int8),) for _ in program.batches))


def rewritten(program: Program, rule: Rule) -> Outcome:
    """The outcome of a program with every node replaced, sources first.

    It runs as it is where a value would be computed again, of a buffer that has changed.
    """
    root, new = parse(program.text), {}
    for u in root.toposort():
        new[u] = rule(u.with_src(new[s] for s in u.src))
    try:
        return interpret(Program(print_program(new[root]), program.batches))
    except UndefinedError:
        return interpret(program)


def number(u: UOp) -> UOp:
    if not u.dtype.is_float:
        return u
    if isinstance(u.arg, ReduceArg) and u.op is Op.REDUCE and u.arg.op in NEUTRAL:
        neutral = const(NEUTRAL[u.arg.op], u.dtype)
        return u.with_src([where(u.src[0], neutral, u.src[0]), *u.src[1:]])
    if u.op not in NEUTRAL:
        return u
    a, b = u.src
    return where(a, b, where(b, a, u))


def where(x: UOp, instead: UOp, other: UOp) -> UOp:
    """Something instead of a value where x is a NaN."""
    return UOp(Op.WHERE, UOp(Op.CMPNE, x, x), instead, other)


def flushed(x: UOp) -> UOp:
    magnitude = UOp(Op.MAX, x, UOp(Op.NEG, x))
    small = UOp(Op.CMPLT, magnitude, const(LEAST, x.dtype))
    return UOp(Op.WHERE, small, UOp(Op.MUL, x, const(0.0, x.dtype)), x)


def unrounded(u: UOp, src: list[UOp]) -> UOp:
    """A node over others, of which a float16 may be a float32: arithmetic then is in float32."""
    arithmetic = u.declaration.is_elementwise and u.op is not Op.BITCAST
    if arithmetic and dtypes.float16 in (u.dtype, *(s.dtype for s in u.src)):
        wider = [cast(dtypes.float32, s) if s.dtype is dtypes.float16 else s for s in src]
        if u.op is Op.CAST:
            to = dtypes.float32 if u.dtype is dtypes.float16 else u.dtype
            return cast(to, wider[0])
        return UOp(u.op, *wider, arg=u.arg)
    return u.with_src(stored(new, old.dtype) for new, old in zip(src, u.src, strict=True))


def stored(u: UOp, dtype: DType) -> UOp:
    """A value in its own dtype again."""
    return u if u.dtype is dtype else cast(dtype, u)


def cast(dtype: DType, u: UOp) -> UOp:
    return UOp(Op.CAST, u, arg=DTypeArg(dtype))


def wide(u: UOp) -> UOp:
    return cast(dtypes.float64, u)


def wide_product(a: UOp, b: UOp) -> UOp:
    return UOp(Op.MUL, wide(a), wide(b))

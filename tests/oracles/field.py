"""Tensor graphs over a field of choice, element by element: fractions, balls, or dual numbers.

An element that is absent (INVALID) is None. Nothing here uses the interpreter; numpy moves objects
about and does no arithmetic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, cast

import numpy as np
from flint import arb

from uop.spec.args import (
    BinaryArg,
    ConstArg,
    FlipArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Elements = Any
"""A numpy array of objects."""


@dataclass(frozen=True)
class Field:
    """How a graph is read: numbers from constants, and what happens to each float result."""

    number: Callable[[Fraction], Any]
    rounded: Callable[[Any], Any] = lambda x: x


@dataclass(frozen=True)
class Dual:
    """x + d e with e^2 = 0: d follows the derivative by the rules of calculus."""

    x: Any
    d: Any

    def __add__(self, o: Dual) -> Dual:
        return Dual(self.x + o.x, self.d + o.d)

    def __sub__(self, o: Dual) -> Dual:
        return Dual(self.x - o.x, self.d - o.d)

    def __mul__(self, o: Dual) -> Dual:
        return Dual(self.x * o.x, self.x * o.d + self.d * o.x)

    def __truediv__(self, o: Dual) -> Dual:
        return Dual(self.x / o.x, (self.d * o.x - self.x * o.d) / (o.x * o.x))

    def __neg__(self) -> Dual:
        return Dual(-self.x, -self.d)

    def __lt__(self, o: Dual) -> bool:
        return bool(self.x < o.x)

    def __ne__(self, o: object) -> bool:
        return bool(self.x != cast(Dual, o).x)

    def __eq__(self, o: object) -> bool:
        return not self != o

    def exp(self) -> Dual:
        return Dual(self.x.exp(), self.d * self.x.exp())

    def log(self) -> Dual:
        return Dual(self.x.log(), self.d / self.x)

    def sin(self) -> Dual:
        return Dual(self.x.sin(), self.d * self.x.cos())

    def sqrt(self) -> Dual:
        return Dual(self.x.sqrt(), self.d / (self.x.sqrt() * 2))


def evaluate_over(field: Field, root: UOp, inputs: Mapping[UOp, Elements]) -> Elements:
    """The elements of a graph of floats, with integers and bools on the side."""
    values: dict[UOp, Elements] = dict(inputs)
    for u in root.toposort():
        if u not in values:
            values[u] = _value(field, u, [values[s] for s in u.src])
    return values[root]


def elements(values: Any, number: Callable[[Any], Any]) -> Elements:
    """Nested lists, or an array, as objects."""
    given = np.asarray(values)
    found = np.empty(given.shape, object)
    for where in np.ndindex(given.shape):
        found[where] = number(given[where])
    return found


def ln2(like: Any) -> Any:
    two = like - like + (Dual(arb(2), arb(0)) if isinstance(like, Dual) else 2)
    return two.log()


class TieError(Exception):
    """Equal numbers with different derivatives: their maximum has none."""


def larger(a: Any, b: Any) -> Any:
    if isinstance(a, Dual) and a == b and a.d != b.d:
        raise TieError
    return b if a < b else a


FUNCTIONS: dict[Op, Callable[..., Any]] = {
    Op.ADD: operator.add,
    Op.MUL: operator.mul,
    Op.SUB: operator.sub,
    # Nothing may come of it: where it is chosen, the result is no number and the test fails.
    Op.DIV: lambda a, b: None if isinstance(b, Fraction) and b == 0 else a / b,
    Op.NEG: operator.neg,
    Op.RECIP: lambda x: x / x / x,
    Op.MULACC: lambda a, b, c: a * b + c,
    Op.MAX: lambda a, b: larger(a, b),
    Op.MIN: lambda a, b: -larger(-a, -b),
    Op.CMPLT: operator.lt,
    Op.CMPGT: lambda a, b: b < a,
    Op.CMPNE: operator.ne,
    Op.CMPEQ: operator.eq,
    Op.SIN: lambda x: x.sin(),
    Op.SQRT: lambda x: x.sqrt(),
    Op.EXP2: lambda x: (x * ln2(x)).exp(),
    Op.LOG2: lambda x: x.log() / ln2(x),
    Op.POW: lambda a, b: (b * a.log()).exp(),
    Op.CAST: lambda x: x,
}


def _value(field: Field, u: UOp, src: list[Elements]) -> Elements:
    if u.op is Op.CONST:
        value = cast(ConstArg, u.arg).value
        exact = field.number(Fraction(value)) if u.dtype.is_float else value
        return elements(0, lambda _: exact)
    if u.op is Op.BINARY:
        return elements(list(cast(BinaryArg, u.arg).data), int)
    if u.op is Op.REDUCE:
        return _folded(field, u, src[0])
    if u.op is Op.WHERE:
        return _choice(*np.broadcast_arrays(*src))
    if u.op is Op.CAST and u.dtype.is_float and not u.src[0].dtype.is_float:
        return elements(src[0], lambda x: None if x is None else field.number(Fraction(x)))
    if u.op in FUNCTIONS:
        function = FUNCTIONS[u.op]
        rounded = field.rounded if u.dtype.is_float else lambda x: x

        def present(*xs: Any) -> Any:
            return None if any(x is None for x in xs) else rounded(function(*xs))

        return elements(np.frompyfunc(present, len(src), 1)(*src), lambda x: x)
    return _moved(field, u, src)


def _choice(p: Elements, a: Elements, b: Elements) -> Elements:
    found = np.empty(p.shape, object)
    for where in np.ndindex(p.shape):
        found[where] = None if p[where] is None else a[where] if p[where] else b[where]
    return found


def _folded(field: Field, u: UOp, t: Elements) -> Elements:
    arg = cast(ReduceArg, u.arg)
    start = {Op.ADD: 0, Op.MUL: 1}.get(arg.op)
    found = np.empty(u.shape, object)
    for where in np.ndindex(u.shape):
        window = tuple(
            slice(None) if a in arg.axes else slice(i, i + 1) for a, i in enumerate(where)
        )
        terms = [x for x in t[window].reshape(-1) if x is not None]
        empty = field.number(Fraction(start)) if start is not None else None
        step = FUNCTIONS[arg.op]
        found[where] = reduce(lambda a, b: field.rounded(step(a, b)), terms) if terms else empty
    return found


def _moved(field: Field, u: UOp, src: list[Elements]) -> Elements:
    t: Elements = src[0] if src else np.empty((0,), object)
    match u.op:
        case Op.PERMUTE:
            return t.transpose(cast(PermuteArg, u.arg).order)
        case Op.FLIP:
            flags = cast(FlipArg, u.arg).flags
            return t[tuple(slice(None, None, -1 if f else 1) for f in flags)]
        case Op.RESHAPE:
            return t.reshape(u.shape)
        case Op.EXPAND:
            return np.broadcast_to(t, u.shape)
        case Op.PAD:
            zero = cast(PadArg, u.arg).fill is PadFill.ZERO
            found = np.full(u.shape, field.number(Fraction(0)) if zero else None, object)
            found[_window(src[1], u.src[0].shape)] = t
            return found
        case Op.SHRINK:
            return t[_window(src[1], u.shape)]
        case Op.STACK:
            return np.stack(src) if src else t
        case Op.INDEX:
            return _read(t, src[1:])
        case Op.BITCAST:
            # Only positions are data here: eight bytes to an int64, little-endian.
            rows = t.reshape(*u.shape, 8)
            return elements(rows @ np.array([256**k for k in range(8)], object), int)
        case Op.LOAD if len(src) == 3:
            return _choice(src[2], t, src[1])
        case Op.DETACH:
            return elements(t, lambda x: Dual(x.x, x.d - x.d) if isinstance(x, Dual) else x)
        case Op.REPLICATED:
            axes = cast(ReplicatedArg, u.arg).axes
            return t[tuple(slice(1 if a in axes else None) for a in range(t.ndim))]
        case Op.SLICE:
            start = int(src[1][()])
            return t.reshape(-1)[start : start + cast(SliceArg, u.arg).size]
    assert u.op in (Op.CONTIGUOUS, Op.CONTIGUOUSBACKWARD, Op.LOAD), u.op
    return t


def _window(offset: Elements, shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(int(o), int(o) + d) for o, d in zip(offset, shape, strict=True))


def _read(t: Elements, indices: list[Elements]) -> Elements:
    for axis, i in reversed(list(enumerate(indices))):
        t = np.take(t, np.asarray(i, np.int64), axis)
    return elements(t, lambda x: x)

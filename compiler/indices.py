"""Arithmetic on indices: positions in shapes whose sizes are numbers or computed (in rangeify)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from uop.compiler.rewriting.rewrite import Rewriter
from uop.compiler.rewriting.simplify import linear_form
from uop.spec.args import AxisType, RangeArg
from uop.spec.ops.names import Op
from uop.spec.registry import Sizes
from uop.spec.uop import UOp, index_const

Index = tuple[UOp, ...]
ZERO = index_const(0)
ONE = index_const(1)


class Indices:
    """The indices of one kernel, simplified, and its RANGEs."""

    def __init__(self, simplify: Rewriter) -> None:
        self.simplify = simplify
        self._flat: dict[tuple[Index, Sizes], UOp] = {}
        self._ranges = 0

    def size(self, dim: int | UOp) -> UOp:
        """A size as an index: a constant, or computed from variables."""
        return self.simplify(dim) if isinstance(dim, UOp) else index_const(dim)

    def offsets(self, operand: UOp) -> list[UOp]:
        """The sizes in a shape or offset operand."""
        return [self.simplify(dim) for dim in operand.src]

    def product(self, shape: Sizes) -> UOp:
        """The number of elements of a shape."""
        numbers = math.prod(dim for dim in shape if isinstance(dim, int))
        total = index_const(numbers)
        for dim in shape:
            if isinstance(dim, UOp):
                total = self.alu(Op.MUL, total, dim)
        return total

    def divisor(self, dim: int | UOp) -> UOp:
        """A size to divide by, at least 1: an outer loop may divide although an inner one never
        runs.
        """
        return self.alu(Op.MAX, self.size(dim), index_const(1))

    def range(self, bound: int | UOp, axis_type: AxisType) -> UOp:
        """A new RANGE; the constant 0 for a loop of one iteration."""
        number = self.size(bound)
        if number is ONE:
            return ZERO
        self._ranges += 1
        return UOp(Op.RANGE, number, arg=RangeArg(self._ranges - 1, axis_type))

    def flat(self, at: Index, shape: Sizes) -> UOp:
        """The row-major position of an index. In an empty shape it is the counter of a loop that
        never runs.
        """
        if 0 in shape:
            return at[shape.index(0)]
        if (at, shape) not in self._flat:
            position = ZERO
            for i, dim in zip(at, shape, strict=True):
                if position is not ZERO and dim != 1:
                    position = self.alu(Op.MUL, position, self.size(dim))
                if i is not ZERO:
                    position = i if position is ZERO else self.alu(Op.ADD, position, i)
            self._flat[at, shape] = position
        return self._flat[at, shape]

    def unflat(self, position: UOp, shape: Sizes) -> Index:
        """The index at a row-major position."""
        at, below = [], ONE
        for axis in reversed(range(len(shape))):
            digit, divisor = self.alu(Op.IDIV, position, below), self.divisor(shape[axis])
            # The first digit is the whole quotient, which the simplifier knows of numbers alone.
            if axis or divisor.op is Op.CONST:
                digit = ZERO if divisor is ONE else self.alu(Op.MOD, digit, divisor)
            at.append(digit)
            below = self.alu(Op.MUL, below, divisor)
        return tuple(reversed(at))

    def alu(self, op: Op, *src: UOp) -> UOp:
        """An op on indices or conditions, simplified."""
        return self.simplify(UOp(op, *src))

    def reshaped(self, at: Index, shape: Sizes, to: Sizes) -> Index:
        """An index in another shape. Equal leading dimensions need no arithmetic."""
        wide = [i for i, dim in zip(at, shape, strict=True) if dim != 1]
        if [d for d in shape if d != 1] == [d for d in to if d != 1]:
            rest = iter(wide)
            return tuple(ZERO if dim == 1 else next(rest) for dim in to)
        same = 0
        while same < min(len(shape), len(to)) and shape[same] == to[same]:
            same += 1
        return at[:same] + self.unflat(self.flat(at[same:], shape[same:]), to[same:])

    def both(self, a: UOp | None, b: UOp | None) -> UOp | None:
        """AND of two conditions; None is true."""
        if a is None or b is None:
            return b if a is None else a
        return self.alu(Op.AND, a, b)


@cache
def counting(count: int) -> UOp:
    """The vector 0, 1, ..., count - 1."""
    return UOp(Op.STACK, *(index_const(k) for k in range(count)))


def broadcast_index(at: Index, shape: Sizes) -> Index:
    """The index into an operand of a broadcast: right-aligned, axes of size 1 at 0."""
    aligned = at[len(at) - len(shape) :]
    if 1 not in shape:
        return aligned
    return tuple(ZERO if dim == 1 else i for i, dim in zip(aligned, shape, strict=True))


def linear_steps(index: UOp, loops: Sequence[UOp]) -> list[int | None]:
    """The step of an index along each loop; None where that is no constant."""
    terms, _ = linear_form(index)
    bent = {r for term in terms if term.op is not Op.RANGE for r in term.toposort()}
    return [None if r in bent else terms.get(r, 0) for r in loops]


def largest_divisor(bound: int, most: int) -> int:
    """The largest divisor of a bound up to a limit."""
    return next(d for d in range(max(min(bound, most), 1), 0, -1) if bound % d == 0)

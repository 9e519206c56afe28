"""The loops of a kernel: its RANGEs by id, their nesting, and the positions that they count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from uop.compiler.build import ZERO, add, div, index, mod, mul
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.simplify import linear_form
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.graph import rebuild
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

NESTING: tuple[tuple[AxisType, ...], ...] = (
    (AxisType.LOOP,),
    (AxisType.GLOBAL, AxisType.THREAD),
    (AxisType.WARP,),
    (AxisType.LOCAL, AxisType.GROUP_REDUCE),
    (AxisType.UPCAST,),
    (AxisType.REDUCE,),
    (AxisType.UNROLL,),
)
"""The axis types from outer to inner loops; within a level the axis of the lower id is outside."""
DEPTH: Mapping[AxisType, int] = {t: k for k, types in enumerate(NESTING) for t in types}
ITEMS = (AxisType.LOCAL, AxisType.WARP)
"""The axis types whose iterations are the work items of a group."""
FOLDED = (AxisType.REDUCE, AxisType.GROUP_REDUCE, AxisType.UNROLL)
"""The axis types that a REDUCE folds over."""


def axes(body: UOp) -> list[UOp]:
    """The RANGEs of a kernel, axis 0 first."""
    return sorted((u for u in body.toposort() if u.op is Op.RANGE), key=id_of)


def id_of(r: UOp) -> int:
    return arg_of(r, RangeArg).id


def type_of(r: UOp) -> AxisType:
    return arg_of(r, RangeArg).axis_type


def nesting(r: UOp) -> tuple[int, int]:
    """The place of a RANGE in a nest: outer ones first."""
    return DEPTH[type_of(r)], id_of(r)


def free_id(order: Iterable[UOp]) -> int:
    """An id above those of all RANGEs among these nodes."""
    return 1 + max((id_of(u) for u in order if u.op is Op.RANGE), default=-1)


def ranged(bound: int | UOp, id: int, axis_type: AxisType) -> UOp:
    return UOp(Op.RANGE, index(bound), arg=RangeArg(id, axis_type))


def bound_of(r: UOp) -> int:
    found = int_value(r.src[0])
    assert found is not None, "`apply` optimizes kernels of constant bounds"
    return found


def count_of(ranges: Iterable[UOp]) -> int:
    return math.prod(map(bound_of, ranges))


def row_major(ranges: Iterable[UOp], digits: Iterable[UOp]) -> UOp:
    """The number with these digits, each below the bound of its RANGE, the lowest digit last."""
    number = ZERO
    for r, digit in zip(ranges, digits, strict=True):
        number = add(mul(number, r.src[0]), digit)
    return number


def iterations(bounds: Iterable[UOp]) -> UOp:
    """The number of iterations of a nest: a number, times the bounds that are none."""
    numbers, sizes = 1, []
    for bound in bounds:
        if (n := int_value(bound)) is None:
            sizes.append(bound)
        else:
            numbers *= n
    return reduce(mul, sizes, index(numbers))


def digits(number: UOp, bounds: Sequence[UOp]) -> list[UOp]:
    """The digits of a number, each below a bound, the lowest last."""
    found = []
    for k, bound in enumerate(bounds):
        quotient = div(number, iterations(bounds[k + 1 :]))
        # The simplifier sees that the first digit is the whole quotient only if it is a number.
        is_whole = not k and int_value(bound) is None
        found.append(quotient if is_whole else mod(quotient, bound))
    return found


def nest_of(body: UOp, r: UOp) -> list[UOp]:
    """The RANGEs that end together with this one, by a nest of ENDs or a REDUCE."""
    for u in reversed(body.toposort()):
        closed = u.src[1:] if u.op is Op.REDUCE else _ended(u)[1]
        if r in closed:
            return list(closed)
    return [r]


def folds_in_folds(body: UOp) -> list[UOp]:
    """The REDUCEs of a kernel that run inside another fold."""
    inside = open_ranges(order := body.toposort())
    folds = (u for u in order if u.op is Op.REDUCE)
    return [u for u in folds if any(type_of(r) in FOLDED for r in inside[u])]


def grouped(effects: Sequence[UOp]) -> UOp:
    """Several effects as one."""
    return effects[0] if len(effects) == 1 else UOp(Op.GROUP, *effects)


def in_loops(effect: UOp, ranges: Iterable[UOp]) -> UOp:
    """An effect in loops, the first RANGE outermost; a constant counts no loop."""
    for r in reversed([*ranges]):
        effect = UOp(Op.END, effect, r) if r.op is Op.RANGE else effect
    return effect


def rebuilt(body: UOp, replaced: Mapping[UOp, UOp]) -> UOp:
    """Replace RANGEs of a body by indices, then nest its loops by their types and ids again: those
    over the RANGEs in an index take the place of the loop over the RANGE.
    """
    new: dict[UOp, UOp] = {}

    def nested(u: UOp, src: list[UOp]) -> UOp:
        if u in replaced:
            return replaced[u]
        if u.op is Op.REDUCE:
            return u.with_src([src[0], *_nested(u.src[1:], replaced)])
        if u.op is not Op.END:
            return u.with_src(src)
        inside, closed = _ended(u)
        return in_loops(new[inside], _nested(closed, replaced))

    return rebuild(body, nested, done=new)


def numbered(body: UOp, order: Sequence[UOp]) -> UOp:
    """Renumber the axes of a body in this order: 0, 1, ..."""
    return rebuilt(body, {r: ranged(r.src[0], k, type_of(r)) for k, r in enumerate(order)})


def _ended(end: UOp) -> tuple[UOp, tuple[UOp, ...]]:
    """The body of a nest of ENDs, and their RANGEs."""
    ranges = []
    while end.op is Op.END:
        ranges.append(end.src[1])
        end = end.src[0]
    return end, tuple(ranges)


def _nested(ranges: Sequence[UOp], replaced: Mapping[UOp, UOp]) -> list[UOp]:
    """The RANGEs after replacement, outer ones first."""
    now = [replaced.get(r, r) for r in ranges]
    within = (u for i in now for u in ([i] if i.op is Op.RANGE else i.toposort()))
    return sorted((u for u in within if u.op is Op.RANGE), key=nesting)


def linear_steps(index: UOp, loops: Sequence[UOp]) -> list[int | None]:
    """The step of an index along each loop; None where that is no constant."""
    terms, _ = linear_form(index)
    bent = {r for term in terms if term.op is not Op.RANGE for r in term.toposort()}
    return [None if r in bent else terms.get(r, 0) for r in loops]


def largest_divisor(bound: int, most: int) -> int:
    """The largest divisor of a bound up to a limit."""
    return next(d for d in range(max(min(bound, most), 1), 0, -1) if bound % d == 0)

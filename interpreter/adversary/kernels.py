"""Evaluate kernels, and fold terms, with every liberty that the spec leaves to a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.cells import by_count
from uop.interpreter.accepted.kernels import AcceptedValues
from uop.interpreter.accepted.liberties import GIVEN_BITS
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.rules.folds import folded
from uop.interpreter.accepted.sets import Sets, chosen, intervals, points
from uop.interpreter.kernel.buffers import Buffer
from uop.interpreter.kernel.domain import Access, Arrays
from uop.interpreter.kernel.lanes import Lanes, broadcast
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.reduce import fold, identity
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.masks import made_nan
from uop.interpreter.values import Value
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.latitude import STRICT, MaxNan, Profile
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def member(s: Sets, reference: Array, random: np.random.Generator) -> Array:
    """Select a value of each set: mostly an end, sometimes one end for all, or the reference."""
    weights = ((1.0, 0, 0), (0, 1.0, 0), (0.4, 0.4, 0.2))[random.integers(3)]
    which = random.choice(3, size=s.lo.shape, p=weights)
    one = _one_interval(s, random)
    # The reference is not in these sets if the profile demands something else.
    k = order.keys(reference)
    inside = (order.keys(one.lo) <= k) & (k <= order.keys(one.hi))
    data = np.where(which == 1, one.hi, np.where((which == 2) & inside, reference, one.lo))
    if s.nan is None:
        return data
    only = np.False_ if s.only is None else s.only
    nan = only | (s.nan & (random.random(s.lo.shape) < 0.5))
    made = np.where(nan, s.lo.dtype.type(np.nan), data)
    return made if s.exact is None else np.where(s.exact & only, s.lo, made)


def _one_interval(s: Sets, random: np.random.Generator) -> Sets:
    one, *others = intervals(s)
    for other in others:
        one = chosen(random.random(s.lo.shape) < 0.5, one, other)
    return one


def quieted(u: UOp, value: Value, profile: Profile, random: np.random.Generator) -> Value:
    """Make copies of signalling NaNs quiet at random."""
    if profile.snan == "kept" or u.op in GIVEN_BITS or not u.dtype.is_float:
        return value
    loud = order.is_signalling(value.data)
    if not loud.any() or random.random() < 0.5:
        return value
    return replace(value, data=np.where(loud, order.quieted(value.data), value.data))


def pushed(s: Sets, reference: Array, dtype: DType, random: np.random.Generator) -> Array:
    """Return one value above or below each set, or the reference if there is none."""
    ends = (np.asarray([end]).astype(s.lo.dtype) for end in (dtype.min, dtype.max))
    lowest, highest = (order.keys(end)[0] for end in ends)
    lo, hi = order.keys(s.lo), order.keys(s.hi)
    up, down = hi < highest, lo > lowest
    upwards = up & (~down | (random.random(lo.shape) < 0.5))
    one = lo.dtype.type(1)
    moved = np.where(upwards, hi + one * up, lo - one * down)
    data = order.unkeys(moved, s.lo.dtype)
    if s.only is not None:
        data = np.where(s.only, s.lo.dtype.type(1), data)
    return np.where(up | down | (False if s.only is None else s.only), data, reference)


class MovedInLaunch(Arrays):
    """The domain of arrays that moves each result at random inside its accepted results.

    Results of the op `push`, except indices, are moved one representable value outside instead.
    """

    def __init__(
        self,
        body: UOp,
        lanes: Lanes,
        *,
        random: np.random.Generator,
        push: Op | None,
        profile: Profile,
    ) -> None:
        super().__init__(body, lanes)
        self._random, self._push, self._profile = random, push, profile
        self._accepted = AcceptedValues(body, lanes, held={}, profile=profile)

    def lift(self, u: UOp, value: Value) -> Value:
        return self._outside(u, value, None) if self._is_pushed(u) else value

    def result(self, u: UOp, operands: list[Value]) -> Value:
        single = [Accepted(s.dtype, v) for s, v in zip(u.src, operands, strict=False)]
        accepted = self._accepted.result(u, single)
        value, sets = accepted.value, accepted.sets
        if self._is_pushed(u):
            return self._outside(u, value, sets)
        if sets is None:
            return quieted(u, value, self._profile, self._random)
        data = member(sets, value.data, self._random)
        if u.op is Op.REDUCE:
            terms = self._lanes.terms(u, operands[0].data)
            op, max_nan = arg_of(u, ReduceArg).op, self._profile.max_nan
            data = self._lanes.keepdims(u, fold_somehow(op, u.dtype, terms, self._random, max_nan))
        return replace(value, data=data, free_nan=made_nan(u, data))

    def load(self, access: Access[Value], alt: Value | None) -> Value:
        value = super().load(access, alt)
        return self.lift(access.node, quieted(access.node, value, self._profile, self._random))

    def add(self, access: Access[Value], value: Value) -> None:
        """Add the terms in another order; the old contents are one of them."""
        memory, place, dtype = access.memory, access.place, access.node.src[1].dtype
        moves = dtype.is_float or self._push is Op.ATOMICADD
        if not moves or not isinstance(memory, Buffer):
            super().add(access, value)
            return
        before = memory.data.copy()
        super().add(access, value)
        at = place.selected(place.positions).reshape(-1)
        terms = place.selected(value.data).reshape(-1)
        for positions, rows in by_count(at):
            steps = np.concatenate([before[positions][None], terms[rows]])
            sums = fold_somehow(Op.ADD, dtype, steps, self._random)
            if self._push is Op.ATOMICADD:
                sets = folded(Op.ADD, dtype, STRICT, points(Value(steps), dtype.is_float))
                sums = pushed(sets, sums, dtype, self._random)
            memory.data[positions] = sums

    def _is_pushed(self, u: UOp) -> bool:
        return u.op is self._push and u.dtype is not dtypes.index

    def _outside(self, u: UOp, value: Value, sets: Sets | None) -> Value:
        sets = points(value, u.dtype.is_float) if sets is None else sets
        return replace(value, data=pushed(sets, value.data, u.dtype, self._random), free_nan=None)


Combine = Callable[[Array, Array], Array]


def fold_somehow(
    op: Op, dtype: DType, steps: Array, random: np.random.Generator, max_nan: MaxNan = "either"
) -> Array:
    """Fold the first axis in a random way that a backend may use."""
    if len(steps) < 2 or not dtype.is_float:
        return fold(op, dtype, steps)
    steps = np.ascontiguousarray(random.permutation(steps) if random.random() < 0.7 else steps)
    wide = bool(random.random() < 0.3) and op is not Op.MAX
    # An accumulator wider than float64 is longdouble; where that is no wider, it is legal too.
    storage = steps.dtype if not wide else np.dtype(np.longdouble if dtype.bits == 64 else "f8")
    exact = np.add if op is Op.ADD else np.multiply
    combine = exact if wide else _combine(op, dtype, random, max_nan)
    grouping = GROUPINGS[random.integers(len(GROUPINGS))]
    if random.random() < 0.3:
        start = np.broadcast_to(identity(op, dtype), (1, *steps.shape[1:]))
        steps = np.concatenate([start, steps])
    result = grouping(steps.astype(storage), combine)
    return round_to(result, dtype) if wide else result


def _sequential(steps: Array, combine: Combine) -> Array:
    result = steps[0]
    for step in steps[1:]:
        result = combine(result, step)
    return np.asarray(result)


def _pairwise(steps: Array, combine: Combine) -> Array:
    while len(steps) > 1:
        rest = steps[len(steps) // 2 * 2 :]
        steps = np.concatenate([combine(steps[0:-1:2], steps[1::2]), rest])
    return np.asarray(steps[0])


def _in_lanes(steps: Array, combine: Combine) -> Array:
    """Fold into four partial results side by side and then fold those, as a vector unit does."""
    partial = [_sequential(steps[lane::4], combine) for lane in range(min(4, len(steps)))]
    return _sequential(np.stack(partial), combine)


GROUPINGS = (_sequential, _pairwise, _in_lanes)


def _combine(op: Op, dtype: DType, random: np.random.Generator, max_nan: MaxNan) -> Combine:
    if op is Op.MAX:
        return lambda a, b: maximum_somehow(a, b, random, max_nan)
    node = SimpleNamespace(dtype=dtype)
    return lambda a, b: np.asarray(RULES[op](node, a, b))


def maximum_somehow(
    a: Array, b: Array, random: np.random.Generator, max_nan: MaxNan = "either"
) -> Array:
    """Return a maximum; of two zeros, or a NaN and a number if the knob allows, it is either."""
    first = random.random(broadcast(a.shape, b.shape)) < 0.5
    if max_nan != "either":
        wanted, other = (a, b) if max_nan == "propagate" else (b, a)
        first = (wanted != wanted) | (first & (other == other))
    apart = np.where(a > b, a, b)
    return np.where((a == b) | (a != a) | (b != b), np.where(first, a, b), apart)

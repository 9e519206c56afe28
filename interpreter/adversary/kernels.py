"""The adversarial conformer in kernels: every value, sum and matrix moved inside what it may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.cells import by_count
from uop.interpreter.accepted.kernels import AcceptedKernel
from uop.interpreter.accepted.rules.folds import folded
from uop.interpreter.accepted.sets import Sets, points
from uop.interpreter.addresses import Addresses
from uop.interpreter.adversary.orders import fold_somehow
from uop.interpreter.kernel.buffers import Buffer, Buffers
from uop.interpreter.kernel.launch import Kernel, launch
from uop.interpreter.kernel.program import call_by_name, run_calls
from uop.interpreter.numeric.storage import Array
from uop.interpreter.tensor.masks import made_nan
from uop.interpreter.values import Value
from uop.spec.args import ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def run_adversarially(
    root: UOp,
    given: Mapping[UOp, Value],
    random: np.random.Generator,
    push: Op | None = None,
    profile: Profile = STRICT,
) -> dict[int, Value]:
    """`run_program`, every result moved at random inside what its op may return.

    Every value of the op `push` but an index is moved one representable value outside instead.
    """
    buffers = Buffers(given)
    run_calls(root, buffers, partial(_launch, random=random, push=push, profile=profile))
    return buffers.written()


def member(s: Sets, reference: Array, random: np.random.Generator) -> Array:
    """A value of each set: mostly an end, now and then the same end of all, or the reference."""
    weights = ((1.0, 0, 0), (0, 1.0, 0), (0.4, 0.4, 0.2))[random.integers(3)]
    which = random.choice(3, size=s.lo.shape, p=weights)
    # By a profile that demands something else the reference is not among them.
    k = order.keys(reference)
    inside = (order.keys(s.lo) <= k) & (k <= order.keys(s.hi))
    data = np.where(which == 1, s.hi, np.where((which == 2) & inside, reference, s.lo))
    if s.nan is None:
        return data
    only = np.False_ if s.only is None else s.only
    nan = only | (s.nan & (random.random(s.lo.shape) < 0.5))
    return np.where(nan, s.lo.dtype.type(np.nan), data)


def pushed(s: Sets, reference: Array, dtype: DType, random: np.random.Generator) -> Array:
    """One value above or below each set; the reference where there is none."""
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


def _launch(
    body: UOp,
    arguments: list[Buffer],
    addresses: Addresses,
    *,
    random: np.random.Generator,
    push: Op | None,
    profile: Profile,
) -> None:
    if body.op is Op.CUSTOMFUNCTION:
        call_by_name(body, arguments)
    else:
        kernel = partial(_Kernel, random=random, push=push, profile=profile)
        launch(body, arguments, addresses, None, kernel)


class _Kernel(AcceptedKernel):
    """A launch whose values are members of the sets that the operands, moved already, allow."""

    def __init__(
        self, *args: Any, random: np.random.Generator, push: Op | None, **options: Any
    ) -> None:
        super().__init__(*args, held={}, **options)
        self._random, self._push = random, push

    def run(self) -> None:
        Kernel.run(self)

    def _value(self, u: UOp) -> Value:
        value = Kernel._value(self, u)
        sets = self._widened(u, value)
        if u.op is self._push and u.dtype is not dtypes.index:
            sets = points(value, u.dtype.is_float) if sets is None else sets
            data = pushed(sets, value.data, u.dtype, self._random)
            return replace(value, data=data, free_nan=None)
        if sets is None:
            return value
        data = member(sets, value.data, self._random)
        if u.op is Op.REDUCE:
            terms = self._terms(u, self._of(u.src[0]).data)
            op = cast(ReduceArg, u.arg).op
            max_nan = self._profile.max_nan
            data = self._kept(u, fold_somehow(op, u.dtype, terms, self._random, max_nan))
        return replace(value, data=data, free_nan=made_nan(u, data))

    def _store(self, u: UOp) -> None:
        Kernel._store(self, u)

    def _atomic_add(self, u: UOp) -> None:
        """The terms in another order, the first value among them."""
        gate, dtype = self._gate(u, len(u.src[0].shape)), u.src[1].dtype
        memory, place = self.memory.place(u.src[0], gate, self._of)
        moves = dtype.is_float or self._push is Op.ATOMICADD
        if not moves or not isinstance(memory, Buffer):
            Kernel._atomic_add(self, u)
            return
        before = memory.data.copy()
        Kernel._atomic_add(self, u)
        data = self._of(u.src[1]).data
        everywhere = tuple(a.size if a.is_always_open else 1 for a in self._axes)
        place = place.over(data.shape, (*everywhere, *(1,) * place.rank))
        at = place.selected(place.positions).reshape(-1)
        terms = place.selected(data).reshape(-1)
        for positions, rows in by_count(at):
            steps = np.concatenate([before[positions][None], terms[rows]])
            sums = fold_somehow(Op.ADD, dtype, steps, self._random)
            if self._push is Op.ATOMICADD:
                sets = folded(Op.ADD, dtype, STRICT, points(Value(steps), dtype.is_float))
                sums = pushed(sets, sums, dtype, self._random)
            memory.data[positions] = sums

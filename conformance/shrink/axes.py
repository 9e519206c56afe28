"""Shrinks the axes of a tensor program, with the shapes and places that its ops state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import gcd, prod

from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.reduce import Candidate, Probe, with_used_inputs
from uop.conformance.shrink.search import Search, Step
from uop.spec.args import ConstArg, SliceArg, arg_of
from uop.spec.graph import leaves, outside, over, slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed, index_value, index_values
from uop.spec.uop import UOp, const, dims, index_const
from uop.spec.walk import free_params

New = dict[UOp, UOp]
"""What stands for each node so far."""


def reduce_axes(
    start: Candidate, failure: CaseFailure, probe: Probe
) -> tuple[Candidate, CaseFailure]:
    search = Search(start, failure, probe)
    search.repeat(shorter_axes)
    return search.best, search.failure


def shorter_axes(candidate: Candidate) -> Iterator[Step]:
    """The program with a part of all axes of one length."""
    stated = (u for u in outside(candidate.root) if u.op is Op.EXPAND)
    lengths = {n for u in (*leaves(candidate.root), *stated) for n in fixed(u)}
    for length in sorted(lengths, reverse=True):
        half, third = length // 2, length // 3
        ends = ((0, 1), (0, half), (half, length), (0, third), (0, length - 1))
        for start, stop in dict.fromkeys(ends):
            if 0 < stop - start < length:
                yield partial(_with_axes, candidate, length, slice(start, stop))


def _with_axes(candidate: Candidate, length: int, part: slice) -> Candidate:
    """The program with this part of all axes of its inputs of a length; other shapes follow."""
    count = part.stop - part.start
    new: New = {}
    inputs = dict(candidate.inputs)
    for u in leaves(candidate.root):
        new[u] = _of_shape(u, (count if n == length else n for n in u.shape))
        if slot_of(u) in inputs:
            kept = tuple(part if n == length else slice(None) for n in u.shape)
            inputs[slot_of(u)] = inputs[slot_of(u)][kept]
    return with_used_inputs(_following(candidate.root, new, {length: count}), inputs)


def _of_shape(leaf: UOp, shape: Iterator[int]) -> UOp:
    return UOp(leaf.op, dims(shape), arg=leaf.arg, tag=leaf.tag)


def _following(root: UOp, new: New, shorter: Mapping[int, int]) -> UOp:
    """A graph over new leaves; `shorter` says which length has become which."""
    for u in outside(root):
        if u.op is Op.FUNCTION:
            new[u] = _called(u, new, shorter)
        elif u.op is Op.EXPAND:
            new[u] = _expanded(u, new[u.src[0]], shorter)
        elif u.op is Op.INDEX:
            new[u] = _indexed(u, new)
        elif u.op in FOLLOWING:
            new[u] = FOLLOWING[u.op](u, new[u.src[0]])
        elif u not in new:
            new[u] = over(u, new)
    return new[root]


def _called(u: UOp, new: New, shorter: Mapping[int, int]) -> UOp:
    """The FUNCTION with a body of its own for these arguments."""
    body, *arguments = u.src
    passed = [new[a] for a in arguments]
    params = {p: _of_shape(p, iter(fixed(passed[slot_of(p)]))) for p in free_params(body)}
    return u.with_src((_following(body, params, shorter), *passed))


def _expanded(u: UOp, t: UOp, shorter: Mapping[int, int]) -> UOp:
    axes = zip(fixed(u), fixed(u.src[0]), fixed(t), strict=True)
    shape = (now if n == before else shorter.get(n, n) for n, before, now in axes)
    return UOp(u.op, t, dims(shape), tag=u.tag)


def _indexed(u: UOp, new: New) -> UOp:
    """The same element where the index is a number, or the last one that is left."""
    t = new[u.src[0]]
    sizes = (*fixed(t), *(1 for _ in u.src))
    places = (
        const(min(int(arg_of(i, ConstArg).value), n - 1), i.dtype) if i.op is Op.CONST else new[i]
        for i, n in zip(u.src[1:], sizes, strict=False)
    )
    return UOp(u.op, t, *places, tag=u.tag)


def _reshaped(u: UOp, t: UOp) -> UOp:
    """The same axes, or parts of them, in order, as long as elements are left for them."""
    left, shape = prod(fixed(t)), []
    for n in fixed(u):
        shape.append(gcd(n, left))
        left //= shape[-1] or 1
    return UOp(u.op, t, dims(shape), tag=u.tag)


def _padded(u: UOp, t: UOp) -> UOp:
    """As many absent elements on each side."""
    axes = zip(fixed(u), fixed(u.src[0]), fixed(t), strict=True)
    shape = (n - before + now for n, before, now in axes)
    return UOp(u.op, t, u.src[1], dims(shape), arg=u.arg, tag=u.tag)


def _shrunk(u: UOp, t: UOp) -> UOp:
    axes = zip(index_values(u.src[1]), fixed(u), fixed(u.src[0]), fixed(t), strict=True)
    parts = [_scaled(*axis) for axis in axes]
    return UOp(u.op, t, dims(p.start for p in parts), dims(p.stop - p.start for p in parts))


def _sliced(u: UOp, t: UOp) -> UOp:
    arg, old = arg_of(u, SliceArg), prod(fixed(u.src[0]))
    part = _scaled(index_value(u.src[1]), arg.size, old, prod(fixed(t)))
    shorter = replace(arg, size=part.stop - part.start)
    return UOp(u.op, t, index_const(part.start), arg=shorter, tag=u.tag)


def _scaled(offset: int, size: int, before: int, now: int) -> slice:
    """A part of what had `before` elements and has `now`: about where it was, one at least."""
    start = min(offset * now // (before or 1), max(now - 1, 0))
    return slice(start, start + min(max(size * now // (before or 1), min(size, 1)), now - start))


FOLLOWING: Mapping[Op, Callable[[UOp, UOp], UOp]] = {
    Op.RESHAPE: _reshaped,
    Op.PAD: _padded,
    Op.SHRINK: _shrunk,
    Op.SLICE: _sliced,
}
"""Ops that state shapes or places, and how each follows its operand."""

"""Shrinks the axes, elements and devices of a tensor program.

The shapes and places that its ops state follow the axes of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import gcd, prod

import numpy as np

from uop.conformance.shrink.reduce import (
    PLACED,
    Candidate,
    Found,
    Probe,
    Search,
    Step,
    at_elements,
    devices_of,
    is_computing,
    single_outputs,
    with_used_inputs,
    without_functions,
)
from uop.spec.args import ConstArg, Device, SliceArg, arg_of
from uop.spec.graph import free_params, leaves, outside, outside_bodies, over, rebuild, slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed, index_value, index_values
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, dims, index_const

PARTS = 16
"""The parts that elements are split into. Parts that pass cost little, and one loss finds the part
that does not."""
New = dict[UOp, UOp]
"""What stands for each node so far."""
Cut = Callable[[int, int], slice]
"""The part that is kept of an axis, by its place from the right and its length."""
KEPT: tuple[Callable[[int], int], ...] = (
    lambda n: min(n, 1),
    lambda n: n - n // 2,
    lambda n: max(n - 1, min(n, 1)),
)
"""How much is kept of an axis by its length: one element, half, all but one."""


def shorter_axes(candidate: Candidate) -> Iterator[Step]:
    """The program with a part of all axes of one length, or of all at one place from the right."""
    stated = (u for u in outside(candidate.root) if u.op in GROWING)
    shapes = [fixed(u) for u in (*leaves(candidate.root), *stated)]
    for length in sorted({n for shape in shapes for n in shape}, reverse=True):
        half, third = length // 2, length // 3
        ends = ((0, 1), (0, half), (half, length), (0, third), (0, length - 1))
        for start, stop in dict.fromkeys(ends):
            if 0 < stop - start < length:
                yield partial(_with_axes, candidate, partial(_of_length, {length: (start, stop)}))
    for place in range(max(map(len, shapes), default=0)):
        for keep in KEPT:
            yield partial(_with_axes, candidate, partial(_at_place, place, keep))


def without_last(candidate: Candidate, length: int) -> Candidate:
    """The program with one element less along all axes of a length."""
    return _with_axes(candidate, partial(_of_length, {length: (0, length - 1)}))


def _of_length(parts: Mapping[int, tuple[int, int]], place: int, n: int) -> slice:
    return slice(*parts.get(n, (0, n)))


def _at_place(cut: int, keep: Callable[[int], int], place: int, n: int) -> slice:
    return slice(0, keep(n) if place == cut else n)


def _with_axes(candidate: Candidate, cut: Cut) -> Candidate:
    """The program with parts of the axes of its inputs; other shapes follow."""
    new: New = {}
    inputs = dict(candidate.inputs)
    for u in leaves(candidate.root):
        parts = _parts(fixed(u), cut)
        new[u] = _of_shape(u, (part.stop - part.start for part in parts))
        if slot_of(u) in inputs:
            inputs[slot_of(u)] = inputs[slot_of(u)][parts]
    return with_used_inputs(_following(candidate.root, new, cut), inputs)


def _parts(shape: Shape, cut: Cut) -> tuple[slice, ...]:
    return tuple(cut(len(shape) - 1 - k, n) for k, n in enumerate(shape))


def _of_shape(leaf: UOp, shape: Iterable[int]) -> UOp:
    return UOp(leaf.op, dims(shape), arg=leaf.arg, tag=leaf.tag)


def _following(root: UOp, new: New, cut: Cut) -> UOp:
    """A graph over new leaves."""

    def following(u: UOp, src: list[UOp]) -> UOp:
        if u.op is Op.FUNCTION:
            return _called(u, new, cut)
        if u.op in GROWING:
            return GROWING[u.op](u, src[0], cut)
        if u.op is Op.INDEX:
            return _indexed(u, new)
        return FOLLOWING[u.op](u, src[0]) if u.op in FOLLOWING else over(u, src)

    return rebuild(root, following, outside_bodies, new)


def _called(u: UOp, new: New, cut: Cut) -> UOp:
    """The FUNCTION with a body of its own for these arguments."""
    body, *arguments = u.src
    passed = [new[a] for a in arguments]
    params = {p: _of_shape(p, fixed(passed[slot_of(p)])) for p in free_params(body)}
    return u.with_src((_following(body, params, cut), *passed))


def _expanded(u: UOp, t: UOp, cut: Cut) -> UOp:
    """What is expanded is cut as an axis of an input is."""
    axes = zip(_parts(fixed(u), cut), fixed(u), fixed(u.src[0]), fixed(t), strict=True)
    shape = (now if n == before else part.stop - part.start for part, n, before, now in axes)
    return UOp(u.op, t, dims(shape), tag=u.tag)


def _padded(u: UOp, t: UOp, cut: Cut) -> UOp:
    """What is padded is cut as an axis of an input is, or has as many absent elements as before."""
    parts = _parts(fixed(u), cut)
    axes = zip(parts, fixed(u), fixed(u.src[0]), fixed(t), strict=True)
    shape = [
        max(part.stop - part.start if (part.start, part.stop) != (0, n) else n - before + now, now)
        for part, n, before, now in axes
    ]
    left = zip(index_values(u.src[1]), shape, fixed(t), strict=True)
    offset = (min(o, n - now) for o, n, now in left)
    return UOp(u.op, t, dims(offset), dims(shape), arg=u.arg, tag=u.tag)


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
    """Axes of its operand become what they are there; else parts of axes, as elements are left."""
    left = prod(fixed(t))
    became = dict(zip(fixed(u.src[0]), fixed(t), strict=True))
    shape = [became.get(n, n) for n in fixed(u)]
    if prod(shape) != left:
        for k, n in enumerate(fixed(u)):
            shape[k] = gcd(n, left)
            left //= shape[k] or 1
    return UOp(u.op, t, dims(shape), tag=u.tag)


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
    Op.SHRINK: _shrunk,
    Op.SLICE: _sliced,
}
"""Ops that state shapes or places, and how each follows its operand."""
GROWING: Mapping[Op, Callable[[UOp, UOp, Cut], UOp]] = {Op.EXPAND: _expanded, Op.PAD: _padded}
"""Ops that state longer axes, which are cut as those of inputs are."""


def reduce_elements(found: Found, probe: Probe) -> Found:
    """Shrink the data of a tensor program that fails where the failing elements are not known."""
    search = Search(*found, probe)
    search.take(without_functions(search.best))
    search.take(single_outputs(*search.found))
    search.repeat(parts_of_elements)
    search.repeat(shorter_axes)
    return search.found


def parts_of_elements(candidate: Candidate) -> Iterator[Step]:
    """The program on parts of its elements, if it is elementwise."""
    root = candidate.root
    nodes = outside(root)
    computing = [u for u in nodes if is_computing(u)]
    is_plain = root.op is not Op.TUPLE and all(u.op is not Op.BUFFER for u in nodes)
    if is_plain and root.shape and all(u.declaration.is_elementwise for u in computing):
        for part in np.array_split(np.arange(np.prod(root.shape)), PARTS):
            if part.size:
                yield partial(at_elements, candidate, part)


Where = Callable[[Device], Device]


def fewer_devices(candidate: Candidate) -> Iterator[Step]:
    """The program on no device, without one, or with one in place of another."""
    nodes = candidate.root.toposort()
    devices = dict.fromkeys(name for u in nodes for name in devices_of(u))
    if devices:
        yield partial(_placed, candidate, lambda device: None)
    for gone in reversed([*devices]):
        yield partial(_placed, candidate, partial(_without, gone))
        for kept in devices:
            if kept != gone:
                yield partial(_placed, candidate, partial(_instead, gone, kept))


def _without(gone: str, device: Device) -> Device:
    """The devices of a sharded value but one."""
    if isinstance(device, tuple) and len(device) > 1:
        return tuple(name for name in device if name != gone)
    return device


def _instead(gone: str, kept: str, device: Device) -> Device:
    return kept if device == gone else device


def _placed(candidate: Candidate, where: Where) -> Candidate:
    """The program with its values on other devices, without copies that stay where they are."""

    def placed(u: UOp, src: list[UOp]) -> UOp:
        arg = replace(u.arg, device=where(u.arg.device)) if isinstance(u.arg, PLACED) else u.arg
        return src[0] if _is_copy(u, src, where) else UOp(u.op, *src, arg=arg, tag=u.tag)

    return with_used_inputs(rebuild(candidate.root, placed), candidate.inputs)


def _is_copy(u: UOp, sources: list[UOp], where: Where) -> bool:
    """Whether a node only moves a value to the device where it is."""
    if u.op is Op.REPLICATED:
        return where(u.device) is None
    is_load = u.op is Op.LOAD and u.src[0].addrspace is None
    return is_load and len(sources) == 1 and where(u.device) == sources[0].device

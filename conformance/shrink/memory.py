"""Steps to smaller memory of kernels, and to simpler data in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from uop.conformance.shrink.bodies import edited, with_bodies
from uop.conformance.shrink.reduce import Candidate, with_used_inputs
from uop.conformance.shrink.search import Step
from uop.spec.args import ConstArg, arg_of
from uop.spec.graph import base_of, calls, leaves, slot_of, without_order
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const

PLAIN = (0, 1)
"""The values of simple data."""


@dataclass(frozen=True, slots=True)
class Window:
    """The elements of a memory that are kept."""

    start: int
    count: int
    shift: int
    """By how much indices become less. Where it is not `start`, they access other elements."""


def smaller_memory(candidate: Candidate) -> Iterator[Step]:
    """Memory without an input where nothing reads it, of what is accessed alone, or shorter."""
    root, reads = candidate.root, (Op.LOAD, Op.ATOMICADD, Op.GETADDR)
    for buffer in leaves(root):
        is_read = any(any(_accesses(call, [buffer], reads)) for call in calls(root))
        if buffer.op is Op.BUFFER and not is_read:
            rest = {s: a for s, a in candidate.inputs.items() if s != slot_of(buffer)}
            yield partial(Candidate, root, rest)
    inner = [u for c in calls(root) for u in c.src[0].toposort() if u.op is Op.BUFFER]
    for buffers in dict.fromkeys(_alike(root, u) for u in dict.fromkeys((*leaves(root), *inner))):
        for window in _windows(root, buffers):
            yield partial(_cut, candidate, buffers, window)


def _alike(root: UOp, buffer: UOp) -> tuple[UOp, ...]:
    """The buffers that are arguments for one PARAM in several CALLs: they must have one size."""
    found = {buffer: None}
    known = 0
    while known < len(found):
        known = len(found)
        params = {(c.src[0], p) for c in calls(root) for p in _seen_as(c, found)}
        for call in calls(root):
            for p in call.src[0].toposort():
                if p.op is Op.PARAM and (call.src[0], p) in params:
                    found[without_order(call.src[1 + slot_of(p)])] = None
    return tuple(sorted(found, key=slot_of))


def _seen_as(call: UOp, buffers: Collection[UOp]) -> list[UOp]:
    """The nodes that are one of some buffers in the body of a CALL: PARAMs, and its own memory."""
    nodes = call.src[0].toposort()
    params = [u for u in nodes if u.op is Op.PARAM]
    passed = [p for p in params if without_order(call.src[1 + slot_of(p)]) in buffers]
    return [*passed, *(u for u in nodes if u.op is Op.BUFFER and u in buffers)]


def _accesses(call: UOp, buffers: Collection[UOp], ops: Sequence[Op]) -> Iterator[UOp]:
    """The nodes of some ops in a kernel whose first operand is a view of some buffers."""
    seen = _seen_as(call, buffers)
    for u in call.src[0].toposort():
        # What has no address space is a value that an INDEX takes elements of.
        if u.op in ops and u.src[0].addrspace and base_of(u.src[0]) in seen:
            yield u


def _windows(root: UOp, buffers: Sequence[UOp]) -> Iterator[Window]:
    size = prod(buffers[0].shape)
    places = (u.src[1] for c in calls(root) for u in _accesses(c, buffers, (Op.INDEX,)))
    intervals = [place.min_max for place in places]
    accessed = [interval for interval in intervals if interval is not None]
    if accessed:
        start = max(0, min(int(i.min) for i in accessed))
        stop = min(size, max(int(i.max) for i in accessed) + 1)
        yield Window(start, stop - start, start)
    for count in (1, 2, size // 2, size - 1):
        if 0 < count < size:
            yield Window(0, count, 0)
            yield Window(size - count, count, 0)


def _cut(candidate: Candidate, buffers: Sequence[UOp], window: Window) -> Candidate | None:
    """The program on some elements of some memory alone."""
    bodies: dict[UOp, UOp | None] = {}
    for call in calls(candidate.root):
        accesses = set(_accesses(call, buffers, (Op.INDEX,)))

        def moved(old: UOp, u: UOp, accesses: Collection[UOp] = accesses) -> UOp:
            if old not in accesses:
                return u
            return u.with_src((u.src[0], _minus(u.src[1], window.shift)))

        new = {p: _of_size(p, window.count) for p in _seen_as(call, buffers)}
        bodies[call.src[0]] = edited(call.src[0], new, moved)
    smaller = {u: _of_size(u, window.count) for u in buffers}
    root = with_bodies(candidate.root, bodies, smaller)
    if root is None:
        return None
    inputs = dict(candidate.inputs)
    for slot in {slot_of(u) for u in buffers if u in leaves(candidate.root)} & inputs.keys():
        inputs[slot] = inputs[slot].reshape(-1)[window.start : window.start + window.count]
    return with_used_inputs(root, inputs)


def _of_size(u: UOp, count: int) -> UOp:
    return UOp(u.op, dims((count,)), arg=u.arg)


def _minus(index: UOp, start: int) -> UOp:
    """An index less a number, without a node for it where it has a constant."""
    if start == 0:
        return index
    if index.op is Op.CONST:
        return index_const(number_of(index) - start)
    if index.op is Op.ADD:
        for k, s in enumerate(index.src):
            if s.op is Op.CONST:
                rest = index.src[1 - k]
                more = number_of(s) - start
                return UOp(Op.ADD, rest, index_const(more)) if more else rest
    return UOp(Op.ADD, index, index_const(-start))


def number_of(constant: UOp) -> int:
    """The number of an index constant."""
    return int(arg_of(constant, ConstArg).value)


def simpler_inputs(candidate: Candidate) -> Iterator[Step]:
    """The program on zeros or ones: all inputs, then each alone, its halves, and so on."""
    inputs = candidate.inputs
    for number in PLAIN:
        plain = {s: np.full(a.shape, number).astype(a.dtype) for s, a in inputs.items()}
        yield partial(Candidate, candidate.root, plain)
    for slot, array in inputs.items():
        size = array.size
        while size:
            for start in range(0, array.size, size):
                for number in PLAIN:
                    part = slice(start, start + size)
                    yield partial(_with_elements, candidate, slot, part, number)
            size //= 2


def _with_elements(candidate: Candidate, slot: int, part: slice, number: int) -> Candidate:
    array = candidate.inputs[slot].copy()
    array.reshape(-1)[part] = number
    return Candidate(candidate.root, {**candidate.inputs, slot: array})

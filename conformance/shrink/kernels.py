"""Shrinks a failing program of kernels: its calls, loops and nodes, then its memory and data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.alone import values_alone
from uop.conformance.shrink.bodies import Edit, edited, with_bodies
from uop.conformance.shrink.memory import number_of, simpler_inputs, smaller_memory
from uop.conformance.shrink.reduce import (
    Candidate,
    Probe,
    is_computing,
    with_used_inputs,
)
from uop.conformance.shrink.search import Search, Step, count_of
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.graph import base_of, calls, outside
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const


def reduce_kernels(
    start: Candidate, failure: CaseFailure, probe: Probe
) -> tuple[Candidate, CaseFailure]:
    """Shrink a program of kernels: returns the smallest that fails, and its failure.

    It becomes a tensor program where what a kernel computes fails as one too.
    """
    search = Search(start, failure, probe)
    if search.take_any(values_alone(start)):
        return search.best, search.failure
    search.take_any(instructions(start))
    search.repeat(fewer_effects)
    search.repeat(shorter_loops)
    search.take(with_constants(search.best))
    while search.repeat(smaller_nodes) | search.repeat(smaller_memory):
        search.repeat(fewer_effects)
        search.repeat(shorter_loops)
    if search.take_any(values_alone(search.best)):
        return search.best, search.failure
    search.repeat(simpler_inputs)
    return search.best, search.failure


def bodies_of(root: UOp) -> list[UOp]:
    """The kernels of a program, each once."""
    bodies = dict.fromkeys(c.src[0] for c in calls(root))
    return [body for body in bodies if body.op in (Op.SINK, Op.LINEAR)]


def instructions(candidate: Candidate) -> Iterator[Step]:
    """The program with the instructions of each PROGRAM in its place."""
    built = {c.src[0]: c.src[0].src[0] for c in calls(candidate.root) if c.src[0].op is Op.PROGRAM}
    if built:
        yield partial(_around, candidate, built, {})


def fewer_effects(candidate: Candidate) -> Iterator[Step]:
    """One CALL alone, or a CALL less; then the same with the effects of each kernel."""
    for dropped in _dropped(calls(candidate.root)):
        yield partial(_around, _listed(candidate, dropped), {}, dropped)
    for u in outside(candidate.root):
        if u.op is Op.AFTER:
            yield partial(_around, candidate, {}, {u: u.src[0]})
    for body in bodies_of(candidate.root):
        nodes = body.toposort()
        stores = [u for u in nodes if u.op in (Op.STORE, Op.ATOMICADD)]
        others = [u for u in nodes if u.op in (Op.BARRIER, Op.IF, Op.INS, Op.CUSTOM)]
        for dropped in (*_dropped(stores), *({u: None} for u in others)):
            yield partial(_within, candidate, body, dropped)


def _listed(candidate: Candidate, dropped: Edit) -> Candidate:
    """The program with each CALL in its SINK that no other needs once some are dropped."""
    kept = [call for call in calls(candidate.root) if call not in dropped]
    needed = {c for call in kept for c in outside(call)[:-1]}
    sources = (*dropped, *(call for call in kept if call not in needed))
    return replace(candidate, root=candidate.root.with_src(sources))


def _dropped(nodes: list[UOp]) -> Iterator[Edit]:
    """Edits that drop all nodes but one, or one."""
    if len(nodes) > 2:
        for kept in nodes:
            yield {u: None for u in nodes if u is not kept}
    if len(nodes) > 1:
        for u in reversed(nodes):
            yield {u: None}


def shorter_loops(candidate: Candidate) -> Iterator[Step]:
    """Loops and work items at their first or last position, or halves of them."""
    bodies = {body: _counters(body) for body in bodies_of(candidate.root)}
    for body, loops in bodies.items():
        if len(loops) > 1:
            yield partial(_within, candidate, body, dict.fromkeys(loops, index_const(0)))
            last = {u: index_const(count_of(u) - 1) for u in loops}
            yield partial(_within, candidate, body, last)
    for body, loops in bodies.items():
        for loop in loops:
            for part in _parts(loop):
                yield partial(_within, candidate, body, {loop: part})


def _parts(loop: UOp) -> Iterator[UOp]:
    """A position, or half of the positions, of a loop."""
    yield index_const(0)
    if loop.src[0].op is not Op.CONST:
        # How often it runs is not known, only the largest number of its dtype.
        return
    count = count_of(loop)
    if count > 1:
        yield index_const(count - 1)
    half = count // 2
    if half > 1:
        yield loop.with_src((index_const(half),))
    if count - half > 1:
        yield UOp(Op.ADD, loop.with_src((index_const(count - half),)), index_const(half))


def with_constants(candidate: Candidate) -> Iterator[Step]:
    """The program with every index and gate of one possible value as a constant."""
    bodies: dict[UOp, UOp | None] = {}
    for body in bodies_of(candidate.root):
        new: dict[UOp, UOp | None] = {}
        for u in filter(is_computing, body.toposort()):
            if u.dtype in (dtypes.index, dtypes.bool) and (constant := _only_value(u)) is not None:
                new[u] = constant
        bodies[body] = edited(body, new)
    yield partial(_around, candidate, bodies, {})


def smaller_nodes(candidate: Candidate) -> Iterator[Step]:
    """Each node of a kernel replaced by something smaller, those with most below them first."""
    places = [(body, u) for body in bodies_of(candidate.root) for u in body.toposort()]
    for body, u in sorted(places, key=lambda place: len(place[1].toposort()), reverse=True):
        for new in replacements(u):
            yield partial(_within, candidate, body, {u: new})


def replacements(u: UOp) -> Iterator[UOp]:
    """What may stand for a node of a kernel."""
    if u.op is Op.AFTER:
        yield u.src[0]
        if len(u.src) > 2:
            for k in range(1, len(u.src)):
                yield u.with_src((*u.src[:k], *u.src[k + 1 :]))
    elif u.op is Op.RANGE:
        yield u if _is_loop(u) else _as_loop(u)
    elif u.op is Op.STORE:
        yield u.with_src(u.src[:2])
    elif u.addrspace is None and is_computing(u) and u.dtype is not dtypes.void:
        yield from _values_for(u)


def _counters(body: UOp) -> list[UOp]:
    """The loops and work items of a kernel, the longest first."""
    counters = (u for u in body.toposort() if u.declaration.is_counter)
    return sorted(counters, key=count_of, reverse=True)


def _values_for(u: UOp) -> Iterator[UOp]:
    """The values that may stand for a computed one."""
    if u.declaration.is_counter:
        return
    if (constant := _only_value(u)) is not None:
        yield constant
    if u.shape == ():
        yield from (const(k, u.dtype) for k in (1, 0))
    below = u.toposort()[:-1]
    if u.op is Op.LOAD:
        yield u.with_src(u.src[:1])
    if u.op is Op.LOAD and u.src[0].addrspace:
        base = base_of(u.src[0])
        yield from (s.src[1] for s in below if s.op is Op.STORE and base_of(s.src[0]) is base)
    for s in below:
        is_alike = (s.dtype, s.shape, s.addrspace) == (u.dtype, u.shape, None)
        if is_alike and (s in u.src or s.op is Op.LOAD or s.declaration.is_counter):
            yield s


def _only_value(u: UOp) -> UOp | None:
    interval = u.min_max
    if u.shape != () or interval is None or interval.min != interval.max:
        return None
    return const(interval.min, u.dtype)


def _is_loop(u: UOp) -> bool:
    return arg_of(u, RangeArg).axis_type is AxisType.LOOP


def _as_loop(u: UOp) -> UOp:
    return UOp(Op.RANGE, *u.src, arg=replace(arg_of(u, RangeArg), axis_type=AxisType.LOOP))


def _within(candidate: Candidate, body: UOp, new: Edit) -> Candidate | None:
    """The program with an edited body, in which no other loop than before lacks its END."""
    after = edited(body, new, _merged)
    if after is not None and not _unclosed(after) <= _unclosed(body):
        return None
    return _around(candidate, {body: after}, {})


def _merged(old: UOp, u: UOp) -> UOp:
    """Of a new sum of a sum, both with a constant, one sum."""
    match u:
        case UOp(op=Op.ADD, src=(UOp(op=Op.ADD, src=(x, a)), b)) if u is not old:
            if a.op is b.op is Op.CONST and u.dtype is dtypes.index:
                return UOp(Op.ADD, x, index_const(number_of(a) + number_of(b)))
    return u


def _unclosed(body: UOp) -> set[RangeArg]:
    return {arg_of(r, RangeArg) for r in open_ranges(body.toposort())[body]}


def _around(candidate: Candidate, bodies: Edit, new: Edit) -> Candidate | None:
    """The program with other bodies, and edited outside of them."""
    root = with_bodies(candidate.root, bodies, new)
    return None if root is None else with_used_inputs(root, candidate.inputs)

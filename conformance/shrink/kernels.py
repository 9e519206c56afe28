"""Shrinks a failing program of kernels: its calls, loops and nodes, then its memory and data.

First it takes a part alone: a kernel on its arguments, or what it computes as a tensor program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from uop.conformance.shrink.reduce import (
    Candidate,
    Found,
    Probe,
    Search,
    Step,
    count_of,
    filled,
    is_computing,
    numbered,
    value_of,
    with_used_inputs,
)
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value
from uop.spec.args import AxisType, BufferArg, RangeArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError, UopError
from uop.spec.graph import (
    base_of,
    calls,
    free_params,
    kernel_calls,
    leaves,
    outside,
    outside_bodies,
    rebuild,
    replaced,
    slot_of,
    toposort,
    without_order,
)
from uop.spec.kernel.forms import open_ranges
from uop.spec.kernel.listing import Listing
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_value
from uop.spec.uop import UOp, const, dims, index_const, param

MOST_ELEMENTS = 1 << 14
"""A computation over more work items and iterations stays in its kernel."""
PLAIN = (0, 1)
"""The values of simple data."""
Edit = Mapping[UOp, UOp | None]
"""What replaces nodes; None drops one."""


def reduce_kernels(found: Found, probe: Probe) -> Found:
    """Shrink a program of kernels: returns the smallest that fails, and its failure.

    It becomes a tensor program where what a kernel computes fails as one too.
    """
    search = Search(*found, probe)
    if search.take_any(values_alone(search.best)):
        return search.found
    search.take_any(instructions(search.best))
    search.repeat(fewer_effects)
    search.repeat(shorter_loops)
    search.take(with_constants(search.best))
    while search.repeat(smaller_nodes) | search.repeat(smaller_memory):
        search.repeat(fewer_effects)
        search.repeat(shorter_loops)
    if not search.take_any(values_alone(search.best)):
        search.repeat(simpler_inputs)
    return search.found


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
        plain = replace(arg_of(u, RangeArg), axis_type=AxisType.LOOP)
        yield u if u.arg == plain else UOp(Op.RANGE, *u.src, arg=plain)
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
                return UOp(Op.ADD, x, index_const(index_value(a) + index_value(b)))
    return u


def _unclosed(body: UOp) -> set[RangeArg]:
    return {arg_of(r, RangeArg) for r in open_ranges(body.toposort())[body]}


def _around(candidate: Candidate, bodies: Edit, new: Edit) -> Candidate | None:
    """The program with other bodies, and edited outside of them: None if no CALL remains.

    A CALL keeps the arguments that its new body reads.
    """
    dropped = {c: None for c in calls(candidate.root) if bodies.get(c.src[0], c.src[0]) is None}
    edits = {old: _packed(body) for old, body in bodies.items() if body is not None}

    def rebuilt(u: UOp, sources: Sequence[UOp | None]) -> UOp | None:
        if u.op is not Op.CALL:
            return _over(u, sources)
        if u.src[0] not in edits:
            return _plain(u, (u.src[0], *sources))
        body, slots = edits[u.src[0]]
        return _plain(u, (body, *(sources[slot] for slot in slots)))

    done: dict[UOp, UOp | None] = {**new, **dropped}
    root = rebuild(candidate.root, rebuilt, outside_bodies, done)
    return None if root is None else with_used_inputs(root, candidate.inputs)


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
        for kept, shift in _windows(root, buffers):
            yield partial(_cut, candidate, buffers, kept, shift)


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


def _windows(root: UOp, buffers: Sequence[UOp]) -> Iterator[tuple[slice, int]]:
    """The elements of a memory to keep, and by how much indices become less.

    Where that is not the first element, they access other elements than before.
    """
    size = prod(buffers[0].shape)
    places = (u.src[1] for c in calls(root) for u in _accesses(c, buffers, (Op.INDEX,)))
    accessed = [place.min_max for place in places if place.min_max is not None]
    if accessed:
        start = max(0, min(int(i.min) for i in accessed))
        yield slice(start, min(size, max(int(i.max) for i in accessed) + 1)), start
    for count in (1, 2, size // 2, size - 1):
        if 0 < count < size:
            yield slice(0, count), 0
            yield slice(size - count, size), 0


def _cut(candidate: Candidate, buffers: Sequence[UOp], kept: slice, shift: int) -> Candidate | None:
    """The program on some elements of some memory alone."""

    def of_size(u: UOp) -> UOp:
        return UOp(u.op, dims((kept.stop - kept.start,)), arg=u.arg)

    bodies: dict[UOp, UOp | None] = {}
    for call in calls(candidate.root):
        accesses = set(_accesses(call, buffers, (Op.INDEX,)))

        def moved(old: UOp, u: UOp, accesses: Collection[UOp] = accesses) -> UOp:
            return u.with_src((u.src[0], _minus(u.src[1], shift))) if old in accesses else u

        new = {p: of_size(p) for p in _seen_as(call, buffers)}
        bodies[call.src[0]] = edited(call.src[0], new, moved)
    inputs = dict(candidate.inputs)
    for slot in {slot_of(u) for u in buffers if u in leaves(candidate.root)} & inputs.keys():
        inputs[slot] = inputs[slot].reshape(-1)[kept]
    return _around(Candidate(candidate.root, inputs), bodies, {u: of_size(u) for u in buffers})


def _minus(index: UOp, start: int) -> UOp:
    """An index less a number, without a node for it where it has a constant."""
    if start == 0:
        return index
    if index.op is Op.CONST:
        return index_const(index_value(index) - start)
    if index.op is Op.ADD:
        for k, s in enumerate(index.src):
            if s.op is Op.CONST:
                rest = index.src[1 - k]
                more = index_value(s) - start
                return UOp(Op.ADD, rest, index_const(more)) if more else rest
    return UOp(Op.ADD, index, index_const(-start))


def simpler_inputs(candidate: Candidate) -> Iterator[Step]:
    """The program on zeros or ones: all inputs, then each alone, its halves, and so on."""
    inputs = candidate.inputs
    for number in PLAIN:
        yield partial(Candidate, candidate.root, filled(inputs, number))
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


def edited(body: UOp, new: Edit, moved: Callable[[UOp, UOp], UOp] = lambda old, u: u) -> UOp | None:
    """Edit a body: None if no effect remains.

    What is dropped takes its users along, except where it was one of several effects or
    dependencies. A loop whose RANGE is replaced ends. `moved` is applied to each other old node
    and what it is over its new sources.
    """

    def kept(u: UOp, src: list[UOp | None]) -> UOp | None:
        over = _over(u, src)
        return None if over is None else moved(u, over)

    return rebuild(body, kept, done=dict(new))


def _packed(body: UOp) -> tuple[UOp, list[int]]:
    """A body with its PARAMs numbered without gaps, and the slots that they had."""
    new = numbered(free_params(body))
    return body.substitute(new), list(map(slot_of, new))


def _over(u: UOp, sources: Sequence[UOp | None]) -> UOp | None:
    """A node over its edited sources."""
    kept = [s for s in sources if s is not None]
    if u.op is Op.LINEAR:
        return _in_a_linear(kept)
    if u.op in (Op.SINK, Op.GROUP, Op.BARRIER):
        distinct = dict.fromkeys(kept)
        return u.with_src(distinct) if distinct or u.op is Op.BARRIER else None
    first = sources[0] if sources else None
    if u.op not in (Op.AFTER, Op.END, Op.REDUCE) or first is None:
        return _plain(u, sources)
    rest = [new for s, new in zip(u.src[1:], sources[1:], strict=True) for new in _waits(s, new)]
    if u.op is Op.END:
        for loop in rest:
            first = UOp(Op.END, first, loop)
        return first
    return u.with_src((first, *rest)) if rest or (u.op is Op.REDUCE and u.arg.axes) else first  # type: ignore[union-attr]


def _plain(u: UOp, sources: Sequence[UOp | None]) -> UOp | None:
    kept = [s for s in sources if s is not None]
    return u.with_src(kept) if len(kept) == len(sources) else None


def _waits(old: UOp, new: UOp | None) -> list[UOp]:
    """The dependencies, or RANGEs, that replace one."""
    if new is None:
        return []
    if old.op is Op.RANGE:
        return [u for u in new.toposort() if u.op is Op.RANGE]
    return [new] if new.op is not Op.CONST else []


def _in_a_linear(instructions: Iterable[UOp]) -> UOp | None:
    """A LINEAR of the effects among some instructions, with what they need, in this order.

    What a block that has ended computed is computed again behind it, as it may be in any LINEAR.
    """
    instructions = list(instructions)
    needed = set(toposort([u for u in instructions if u.dtype is dtypes.void], lambda u: u.src))
    listing = Listing()
    for instruction in filter(needed.__contains__, instructions):
        for u in toposort([instruction], lambda u: _missing(u, listing)):
            if u not in listing:
                listing.add(u)
    return UOp(Op.LINEAR, *listing.instructions) if needed else None


def _missing(u: UOp, listing: Listing) -> list[UOp]:
    """The sources that can be listed right before a node."""
    computed = (s for s in u.src if s.dtype is not dtypes.void and s.op is not Op.RANGE)
    return [s for s in computed if s not in listing]


def calls_alone(candidate: Candidate) -> Iterator[Step]:
    """Each kernel among ops on whole tensors as a program of its own, the last one first."""
    for call in reversed(kernel_calls(candidate.root)):
        yield partial(_call_alone, candidate, call)


def _call_alone(candidate: Candidate, call: UOp) -> Candidate:
    body, *arguments = call.src
    inputs: dict[int, Array] = {}
    for slot, a in enumerate(arguments):
        # Memory that only the kernel writes has no contents before.
        with suppress(UndefinedError):
            inputs[slot] = value_of(a, candidate.inputs)
    memory = (
        UOp(Op.BUFFER, dims(a.shape), arg=BufferArg(slot, a.dtype))
        for slot, a in enumerate(arguments)
    )
    return Candidate(UOp(Op.SINK, UOp(Op.CALL, body, *memory, arg=call.arg)), inputs)


def values_alone(candidate: Candidate) -> Iterator[Step]:
    """Each value that a kernel stores or folds, as a tensor program."""
    values: dict[UOp, Array] = {}

    def keep(u: UOp, value: Value) -> None:
        if u.shape == () and value.invalid is None and value.unspecified is None:
            values[u] = value.data

    with suppress(UopError):
        evaluate_full(candidate.root, candidate.inputs, keep)
    nodes = [u for call in calls(candidate.root) for u in call.src[0].toposort()]
    used = (
        u.src[u.op is not Op.REDUCE] for u in nodes if u.declaration.is_write or u.op is Op.REDUCE
    )
    for computed in dict.fromkeys(used):
        if is_computing(computed) and not _is_input(computed):
            yield partial(_alone, computed, values)


def _alone(computed: UOp, values: Mapping[UOp, Array]) -> Candidate | None:
    order = toposort([computed], lambda u: () if _is_input(u) else u.src)
    read = [u for u in order if _is_input(u)]
    if any(u not in values for u in read):
        return None
    try:
        shape = np.broadcast_shapes(*(values[u].shape for u in read))
    except ValueError:
        # Two kernels hold one of the nodes, and the value is from the other one.
        return None
    count = int(np.prod(shape))
    if count > MOST_ELEMENTS:
        return None
    # One element needs no axis.
    flat = (count,) if count > 1 else ()
    inputs = {k: np.broadcast_to(values[u], shape).reshape(flat) for k, u in enumerate(read)}
    new = {u: param(k, flat, u.dtype) for k, u in enumerate(read)}
    return Candidate(replaced(computed, new), inputs)


def _is_input(u: UOp) -> bool:
    """Whether the value of a node becomes an input: it is read, folded, or made of indices."""
    if u.op is Op.CONST:
        return False
    return not u.declaration.is_elementwise or any(s.dtype is dtypes.index for s in u.src)

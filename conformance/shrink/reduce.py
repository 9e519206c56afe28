"""Shrinks a failing program to a smaller valid one: first its graph, then its data.

`Search` does so by other steps: it builds candidates in order and takes what still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, islice, repeat

import numpy as np

from uop.conformance.judging.verdict import CaseFailure
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import bind_inputs
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    DTypeArg,
    GetTupleArg,
    LoadArg,
    ParamArg,
    RangeArg,
    StageArg,
    arg_of,
)
from uop.spec.dtype import Kind, dtypes
from uop.spec.errors import UopError
from uop.spec.graph import (
    all_replaced,
    free_params,
    inlined,
    leaves,
    outside,
    outside_bodies,
    over,
    places_of,
    rebuild,
    replaced,
    slot_of,
    slots_of,
    toposort,
    written,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

DEPTHS = (1, 2, 3, 5)
ROUNDS = 24
WIDE = dtypes.float32
CHUNKS = (1, 4, 8, 16)
"""How many candidates run together: few at first, as the first ones are the smallest."""
PROBES = 2000
"""The most candidates that run for one failure."""
PLACED = (ParamArg, BufferArg, LoadArg, StageArg)
"""The args that name devices."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A program with one set of inputs."""

    root: UOp
    inputs: Mapping[int, Array]


Found = tuple[Candidate, CaseFailure]
"""A program that fails, and its failure."""

Step = Callable[[], Candidate | None]
"""Builds a candidate; None, or a UopError, where there is none."""
Steps = Callable[[Candidate], Iterable[Step]]

Probe = Callable[[Sequence[Candidate]], Sequence[CaseFailure | None]]
"""Runs candidates together. Returns the failure of each; when shrinking only one that is alike."""


def is_computing(u: UOp) -> bool:
    """Whether a node computes: it is no source, no shape and no TUPLE or SINK."""
    is_shape = u.op is Op.STACK and u.dtype is dtypes.index
    is_around = u.declaration.is_source or u.op in (Op.TUPLE, Op.SINK)
    return not (is_shape or is_around)


def reduce_program(best: Found, probe: Probe) -> Found:
    """Shrink a program that fails. Returns the smallest and its failure."""
    best = _first_failing(best, probe, without_functions(best[0]))
    best = _first_failing(best, probe, one_element(*best))
    best = _first_failing(best, probe, single_outputs(*best))
    best = _first_failing(best, probe, pairs_of_outputs(*best))
    for steps in (memory_as_inputs, smaller_functions, fewer_members):
        best = _repeated(best, probe, steps)
    for depth in DEPTHS:
        cut = _first_failing(best, probe, neighbourhoods(best[0], depth))
        if cut is not best:
            best = cut
            break
    for steps in (without_one_node, smaller_functions, fewer_members, without_one_node):
        best = _repeated(best, probe, steps)
    best = _first_failing(best, probe, one_element(*best))
    for steps in (operands_alone, simpler_data, inputs_for_constants):
        best = _first_failing(best, probe, steps(best[0]))
    return renumbered(best[0]), best[1]


def without_functions(candidate: Candidate) -> Iterator[Step]:
    """The program with all functions inlined."""
    if any(u.op is Op.FUNCTION for u in outside(candidate.root)):
        yield lambda: with_used_inputs(inlined(candidate.root), candidate.inputs)


def one_element(candidate: Candidate, failure: CaseFailure) -> Iterator[Step]:
    """The program on the failing element alone, if it is elementwise."""
    root = candidate.root
    if root.op is Op.SINK:
        return
    outputs = root.src if root.op is Op.TUPLE else (root,)
    computing = [u for u in outside(outputs[failure.output]) if is_computing(u)]
    elementwise = all(u.declaration.is_elementwise for u in computing)
    if failure.element is not None and elementwise and outputs[failure.output].shape:
        alone = Candidate(outputs[failure.output], candidate.inputs)
        yield partial(at_elements, alone, np.array([failure.element]))


def at_elements(candidate: Candidate, places: Array) -> Candidate:
    """An elementwise program on some of its elements, by their places in row-major order."""
    # One element needs no axis.
    shape = (places.size,) if places.size > 1 else ()
    new: dict[UOp, UOp] = {}
    inputs: dict[int, Array] = {}
    for u in outside(candidate.root):
        if u.op is Op.PARAM:
            slot = slot_of(u)
            new[u] = param(slot, shape, u.dtype)
            whole = np.broadcast_to(candidate.inputs[slot], candidate.root.shape)
            inputs[slot] = whole.reshape(-1)[places].reshape(shape)
    return Candidate(replaced(candidate.root, new), inputs)


def single_outputs(candidate: Candidate, failure: CaseFailure) -> Iterator[Step]:
    """Each output of a program alone, the failing one first."""
    root = candidate.root
    if root.op in (Op.TUPLE, Op.SINK) and len(root.src) > 1:
        wrong = root.src[failure.output] if root.op is Op.TUPLE else root.src[0]
        for output in dict.fromkeys((wrong, *root.src)):
            alone = output if root.op is Op.TUPLE else UOp(Op.SINK, output)
            yield partial(with_used_inputs, alone, candidate.inputs)


def pairs_of_outputs(candidate: Candidate, failure: CaseFailure) -> Iterator[Step]:
    """The wrong output paired with each other output: alone it may be right."""
    outputs = candidate.root.src
    if candidate.root.op is Op.TUPLE and len(outputs) > 2:
        for k in range(len(outputs)):
            if k != failure.output:
                pair = UOp(Op.TUPLE, *(outputs[j] for j in sorted((k, failure.output))))
                yield partial(with_used_inputs, pair, candidate.inputs)


def smaller_functions(candidate: Candidate) -> Iterator[Step]:
    """Each body with only the members that are used, then with a node replaced by an operand.

    Then the same with all members: the fault may be about those that are not used.
    """
    root = candidate.root
    for body in dict.fromkeys(u.src[0] for u in outside(root) if u.op is Op.FUNCTION):
        taken = taken_members(root, body)
        if _with_body(candidate, body, {}, taken).root is not root:
            yield partial(_with_body, candidate, body, {}, taken)
        for kept in dict.fromkeys((tuple(taken), tuple(range(len(body.src))))):
            members = toposort((body.src[k] for k in kept), outside_bodies)
            for u in filter(is_computing, reversed(members)):
                for s in outside(u)[:-1]:
                    if (s.declaration.is_source or s in u.src) and _is_alike(s, u):
                        yield partial(_with_body, candidate, body, {u: s}, kept)


def _with_body(
    candidate: Candidate, body: UOp, new: Mapping[UOp, UOp], taken: Sequence[int]
) -> Candidate:
    members = all_replaced((body.src[k] for k in taken), new)
    return with_used_inputs(with_members(candidate.root, body, members, taken), candidate.inputs)


def taken_members(root: UOp, body: UOp) -> list[int]:
    """The indices of the members that GETTUPLEs take; all if a call has another use."""
    nodes = outside(root)
    taken = {
        arg_of(u, GetTupleArg).idx
        for u in nodes
        if u.op is Op.GETTUPLE and _is_call(u.src[0], body)
    }
    others = [root, *(s for u in nodes if u.op is not Op.GETTUPLE for s in outside_bodies(u))]
    whole = any(_is_call(u, body) for u in others)
    return list(range(len(body.src))) if whole else sorted(taken)


def with_members(root: UOp, body: UOp, members: Sequence[UOp], taken: Sequence[int]) -> UOp:
    """Replace a body by one of fewer members, and drop arguments that these do not read.

    `taken` has the index of each member in the old body.
    """
    slots = numbered(free_params(UOp(Op.TUPLE, *members)))
    new = UOp(Op.TUPLE, *all_replaced(members, slots))
    replacements: dict[UOp, UOp] = {}
    for u in outside(root):
        sources = [replacements[s] for s in outside_bodies(u)]
        if _is_call(u, body):
            replacements[u] = u.with_src((new, *(sources[slot_of(p)] for p in slots)))
        elif u.op is Op.GETTUPLE and _is_call(u.src[0], body):
            place = taken.index(arg_of(u, GetTupleArg).idx)
            replacements[u] = UOp(Op.GETTUPLE, *sources, arg=GetTupleArg(place))
        else:
            replacements[u] = u.with_src((*u.src[: len(u.src) - len(sources)], *sources))
    return replacements[root]


def numbered(params: Iterable[UOp]) -> dict[UOp, UOp]:
    """In the order of their slots each PARAM with one that has the next slot, from 0."""
    return {
        p: UOp(Op.PARAM, *p.src, arg=replace(arg_of(p, ParamArg), slot=k))
        for k, p in enumerate(sorted(params, key=slot_of))
    }


def _is_call(u: UOp, body: UOp) -> bool:
    return u.op is Op.FUNCTION and u.src[0] is body


def _is_alike(s: UOp, u: UOp) -> bool:
    """Whether one node can replace another."""
    return (s.dtype, s.shape, s.addrspace) == (u.dtype, u.shape, u.addrspace)


def neighbourhoods(candidate: Candidate, depth: int) -> Iterator[Step]:
    """Each node with the nodes less than `depth` steps below it; deeper nodes become inputs."""
    values = interpreted(candidate)
    for u in outside(candidate.root):
        if is_computing(u) and u.dtype.kind not in (Kind.VOID, Kind.INDEX):
            yield partial(cut, replace(candidate, root=u), values, _beyond(u, depth))


def without_one_node(candidate: Candidate) -> Iterator[Step]:
    """The program without its root, or with one node replaced by a PARAM or by its operand.

    Of two equal ops in a row both may go: a RESHAPE there and back.
    """
    if candidate.root.op is Op.AFTER:
        yield lambda: with_used_inputs(UOp(Op.SINK, *candidate.root.src[1:]), candidate.inputs)
    for s in candidate.root.src:
        if is_computing(s) and s.dtype.kind not in (Kind.VOID, Kind.INDEX):
            yield partial(with_used_inputs, s, candidate.inputs)
    values = interpreted(candidate)
    nodes = [u for u in outside(candidate.root) if is_computing(u) and u is not candidate.root]
    for u in reversed(nodes):
        if u in values:
            yield partial(cut, candidate, values, (u,))
        elif u.addrspace is not None:
            yield partial(_with_contents, candidate, u)
    for u in outside(candidate.root):
        twice = (t for s in u.src if s.op is u.op for t in s.src)
        for s in (*u.src, *twice):
            if _is_alike(s, u) and is_computing(u):
                yield partial(substituted, candidate, {u: s})


def _with_contents(candidate: Candidate, location: UOp) -> Candidate:
    """The program with a PARAM for what a location holds."""
    return cut(candidate, {location: value_of(location, candidate.inputs)}, [location])


def memory_as_inputs(candidate: Candidate) -> Iterator[Step]:
    """The program with PARAMs for memory that it only reads: all at once, then each alone."""
    root = candidate.root
    read = [u for u in leaves(root) if u.op is Op.BUFFER and slot_of(u) in candidate.inputs]
    new = {u: param(slot_of(u), u.shape, u.dtype, u.device) for u in read if u not in written(root)}
    if new:
        yield partial(substituted, candidate, new)
    for u in new if len(new) > 1 else ():
        yield partial(substituted, candidate, {u: new[u]})


def fewer_members(candidate: Candidate) -> Iterator[Step]:
    """Each list of outputs or effects without one, or with the effects before it in its place."""
    for u in outside(candidate.root):
        if u.op not in (Op.TUPLE, Op.SINK, Op.GROUP, Op.AFTER):
            continue
        first = int(u.op is Op.AFTER)
        for k in range(first, len(u.src)):
            effect = u.src[k]
            before = [e for s in effect.src if s.op is Op.AFTER for e in s.src[1:]]
            for instead in ([], before) if before else ([],):
                sources = tuple(dict.fromkeys((*u.src[:k], *instead, *u.src[k + 1 :])))
                if len(sources) > first:
                    yield partial(substituted, candidate, {u: u.with_src(sources)})


def operands_alone(candidate: Candidate) -> Iterator[Step]:
    """Each constant alone, each input of a small float dtype cast to float32, each input alone.

    The cause may be how they are read.
    """
    for u in candidate.root.toposort():
        if u.op is Op.CONST and u is not candidate.root:
            yield partial(Candidate, u, {})
    for slot, u in slots_of(candidate.root).items():
        root = read_alone(u)
        if root is not None and root is not candidate.root:
            yield partial(Candidate, root, {slot: candidate.inputs[slot]})
    for u in slots_of(candidate.root).values():
        if u.op is Op.PARAM and u is not candidate.root:
            yield partial(with_used_inputs, u, candidate.inputs)


def read_alone(u: UOp) -> UOp | None:
    """An input of a small float dtype, cast to float32, which has its values; None for others."""
    is_small = u.op is Op.PARAM and u.dtype.is_float and u.dtype.bits < WIDE.bits
    return UOp(Op.CAST, u, arg=DTypeArg(WIDE)) if is_small else None


def simpler_data(candidate: Candidate) -> Iterator[Step]:
    """The program on ones or zeros: all inputs at once, then each alone; then on 0, 1, 2, ..."""
    for number in (1, 0):
        plain = filled(candidate.inputs, number)
        yield partial(Candidate, candidate.root, plain)
        for slot in candidate.inputs:
            yield partial(Candidate, candidate.root, {**candidate.inputs, slot: plain[slot]})
    counted = {slot: _counted(a) for slot, a in candidate.inputs.items()}
    if any(counted[slot] is not a for slot, a in candidate.inputs.items()):
        yield partial(Candidate, candidate.root, counted)


def filled(inputs: Mapping[int, Array], number: int) -> dict[int, Array]:
    """Inputs of the same shapes and dtypes that are this number throughout."""
    return {slot: np.full(a.shape, number).astype(a.dtype) for slot, a in inputs.items()}


def _counted(a: Array) -> Array:
    """The numbers 0, 1, 2, ... of its shape and dtype; the array itself if that has too few."""
    numbers = np.arange(a.size).reshape(a.shape)
    with np.errstate(all="ignore"):
        counted: Array = numbers.astype(a.dtype)
        return counted if np.array_equal(counted.astype(np.float64), numbers) else a


def inputs_for_constants(candidate: Candidate) -> Iterator[Step]:
    """The program with its constants as PARAMs, if the fault does not depend on constants."""
    constants = [
        u
        for u in outside(candidate.root)
        if u.op is Op.CONST and u.dtype is not dtypes.index and u is not candidate.root
    ]
    if constants:
        yield lambda: cut(candidate, interpreted(candidate), constants)


def renumbered(candidate: Candidate) -> Candidate:
    """The program with its slots renumbered from 0."""
    params = slots_of(candidate.root).values()
    if any(u.op is not Op.PARAM for u in params):
        return candidate
    new = numbered(params)
    inputs = {k: candidate.inputs[slot_of(u)] for k, u in enumerate(new)}
    return Candidate(replaced(candidate.root, new), inputs)


def cut(candidate: Candidate, values: Mapping[UOp, Array], at: Iterable[UOp]) -> Candidate:
    """The program with nodes replaced by PARAMs that hold their values."""
    inputs = dict(candidate.inputs)
    new: dict[UOp, UOp] = {}
    free = count(max({*inputs, *slots_of(candidate.root)}, default=-1) + 1)
    for u in at:
        if u in values:
            slot = next(free)
            inputs[slot] = values[u]
            new[u] = param(slot, u.shape, u.dtype, u.device)
    return with_used_inputs(replaced(candidate.root, new), inputs)


def substituted(candidate: Candidate, new: Mapping[UOp, UOp]) -> Candidate:
    return with_used_inputs(replaced(candidate.root, new), candidate.inputs)


def with_used_inputs(root: UOp, inputs: Mapping[int, Array]) -> Candidate:
    slots = slots_of(root)
    return Candidate(root, {slot: a for slot, a in inputs.items() if slot in slots})


def value_of(u: UOp, inputs: Mapping[int, Array]) -> Array:
    """The value of a node, or what a location holds; UopError where it holds nothing."""
    held = with_used_inputs(u if u.addrspace is None else UOp(Op.LOAD, u), inputs)
    value = evaluate_full(held.root, held.inputs)
    assert isinstance(value, Value)
    return value.data


def decomposed(root: UOp) -> UOp:
    """A program with the decompositions of its decomposed ops in their place."""

    def smaller(u: UOp, operands: list[UOp]) -> UOp:
        new = over(u, operands)
        return new.decompose() or new

    return rebuild(root, smaller, outside_bodies)


def interpreted(candidate: Candidate) -> dict[UOp, Array]:
    """The interpreted value of each node that a PARAM can replace."""
    values: dict[UOp, Array] = {}

    def keep(u: UOp, value: Value) -> None:
        if u.dtype not in (dtypes.index, dtypes.void) and value.invalid is None:
            values[u] = value.data

    evaluate_full(candidate.root, candidate.inputs, keep)
    return values


def _beyond(root: UOp, depth: int) -> list[UOp]:
    """The computing nodes at distance `depth` below a root."""
    seen, level = {root}, [root]
    for _ in range(depth):
        level = [s for u in level for s in u.src if s not in seen]
        seen.update(level)
    return [u for u in dict.fromkeys(level) if is_computing(u)]


def _repeated(best: Found, probe: Probe, steps: Steps) -> Found:
    """Repeat steps while a candidate still fails, for at most ROUNDS rounds."""
    for _ in range(ROUNDS):
        smaller = _first_failing(best, probe, steps(best[0]))
        if smaller is best:
            break
        best = smaller
    return best


def _first_failing(best: Found, probe: Probe, steps: Iterable[Step]) -> Found:
    """The first candidate that still fails; `best` itself if none does."""
    return _first(_built(steps), probe) or best


def _first(candidates: Iterator[Candidate], probe: Probe) -> Found | None:
    """The first of these candidates that fails."""
    for size in chain(CHUNKS, repeat(CHUNKS[-1])):
        chunk = list(islice(candidates, size))
        if not chunk:
            return None
        for candidate, failure in zip(chunk, probe(chunk), strict=True):
            if failure is not None:
                return candidate, failure
    return None


def _built(steps: Iterable[Step]) -> Iterator[Candidate]:
    for step in steps:
        with suppress(UopError):
            if (candidate := step()) is not None:
                yield valid(candidate)


def valid(candidate: Candidate) -> Candidate:
    """A candidate; UopError where it is no program on its inputs."""
    bind_inputs(candidate.root, candidate.inputs)
    return candidate


def size_of(candidate: Candidate) -> tuple[int, ...]:
    """The size of a candidate. It is smaller where the first unequal number is.

    Iterations, devices each time that memory is on one, nodes that compute, loops of another type
    than LOOP and memory inside of kernels, elements, and elements that are neither 0 nor 1.
    """
    nodes = candidate.root.toposort()
    stated = (Op.BUFFER, Op.EXPAND, Op.PAD)
    memory = {u for u in nodes if u.op in stated or (u.op is Op.PARAM and u.addrspace is None)}
    arrays = candidate.inputs.values()
    return (
        sum(count_of(u) for u in nodes if u.declaration.is_counter),
        sum(len(devices_of(u)) for u in nodes),
        sum(map(is_computing, nodes)),
        sum(map(_is_special, nodes)),
        sum(int(np.prod(u.shape)) for u in memory) + sum(a.size for a in arrays),
        sum(int(np.count_nonzero(_is_ragged(a))) for a in arrays),
    )


# Comparing a signalling NaN raises a flag, which is irrelevant here.
@np.errstate(all="ignore")
def _is_ragged(array: Array) -> Array:
    ragged: Array = (array != 0) & (array != 1)
    return ragged


def count_of(loop: UOp) -> int:
    """The most iterations of a RANGE, or work items of a SPECIAL."""
    return 0 if loop.min_max is None else int(loop.min_max.max) + 1


def devices_of(u: UOp) -> Sequence[str]:
    """The devices that the arg of a node names."""
    return places_of(u.arg.device) if isinstance(u.arg, PLACED) else ()


def _is_special(u: UOp) -> bool:
    if isinstance(u.arg, RangeArg):
        return u.arg.axis_type is not AxisType.LOOP
    return isinstance(u.arg, BufferArg) and u.arg.addrspace is not AddrSpace.GLOBAL


def repeated(found: Found, probe: Probe, steps: Steps) -> Found:
    """Take steps while one leads to a smaller program that fails."""
    search = Search(*found, probe)
    search.repeat(steps)
    return search.found


@dataclass(slots=True)
class Search:
    """The smallest failing program so far, with its failure."""

    best: Candidate
    failure: CaseFailure
    probe: Probe
    room: int = PROBES
    tried: dict[tuple[UOp, tuple[int, ...]], Candidate] = field(default_factory=dict)

    @property
    def found(self) -> Found:
        return self.best, self.failure

    def repeat(self, steps: Steps) -> bool:
        """Take steps while one leads to a smaller program that fails."""
        found = False
        while self.take(steps(self.best)):
            found = True
        return found

    def take(self, steps: Iterable[Step]) -> bool:
        """Take the first step to a smaller program that fails."""
        size = size_of(self.best)
        return self._taken(self._new_candidates(steps, lambda candidate: size_of(candidate) < size))

    def take_any(self, steps: Iterable[Step]) -> bool:
        """Take the first step to a program that fails, whatever its size."""
        return self._taken(self._new_candidates(steps, lambda candidate: True))

    def _taken(self, candidates: Iterator[Candidate]) -> bool:
        if (found := _first(candidates, self.probe)) is None:
            return False
        self.best, self.failure = found
        return True

    def _new_candidates(
        self, steps: Iterable[Step], is_wanted: Callable[[Candidate], bool]
    ) -> Iterator[Candidate]:
        for candidate in _built(steps):
            # Inputs by what they are; `tried` keeps the arrays, so that their ids stay theirs.
            key = candidate.root, tuple(map(id, candidate.inputs.values()))
            if key not in self.tried and is_wanted(candidate):
                if not self.room:
                    return
                self.room -= 1
                self.tried[key] = candidate
                yield candidate

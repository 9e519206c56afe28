"""Shrinking kernels, crashes and hangs: faults of known size end as programs of that size."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from kernels import (
    I32,
    add,
    after,
    argument,
    at,
    below,
    int32,
    kernel_param,
    load,
    loop,
    memory,
    program,
    special,
    store,
    times,
)
from shrinking import Miscompiling, OneByOne

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.storage import from_literal
from uop.conformance.protocol.types import Outcome, Problem, ProblemKind, Program
from uop.conformance.shrink import probe
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.kernels import (
    edited,
    fewer_effects,
    shorter_loops,
    smaller_memory,
    smaller_nodes,
    with_constants,
)
from uop.conformance.shrink.probe import LEAST_WORK, LOSSES
from uop.conformance.shrink.reduce import Candidate, is_computing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.transport import Local
from uop.interpreter.evaluate import evaluate
from uop.interpreter.footprint import metered
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AddrSpace, AxisType, DTypeArg, LoadArg, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UopError
from uop.spec.graph import kind_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, const, index_const, param

"""What a faulty compiler makes of a node, over its sources that are made already."""
MOST_NODES = 12
MOST_ELEMENTS = 8


class Lost(OneByOne):
    """Is lost where an input holds a number."""

    def __init__(self, number: int, kind: ProblemKind) -> None:
        self.number, self.kind = number, kind
        self.losses = 0

    def _run(self, program: Program) -> Outcome:
        if any((a == self.number).any() for b in program.batches for a in b.values()):
            self.losses += 1
            return Problem(self.kind, "lost")
        return interpret(program)


def shrunk(root: UOp, backend: InterpreterBackend, *batches: Mapping[int, Array]) -> Candidate:
    """Judge a program and shrink its failure."""
    case = Case(CaseId("kernel", "MIXED", "int32", "test", 0), root, tuple(map(Batch, batches)))
    judge = Judge(Local(backend), STRICT)
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    failure = find_cause(judge, Failing(case, verdict.failure))
    (found,) = parse_file(failure.text).cases
    assert found.root is not None
    inputs = {slot: from_literal(a) for slot, a in found.inputs.items()}
    again = Case(case.id, found.root, (Batch(inputs),))
    (verdict,) = judge.judge([again])
    assert verdict.failure is not None, "the repro passes"
    return Candidate(found.root, inputs)


def nodes(found: Candidate) -> list[UOp]:
    return [u for u in found.root.toposort() if is_computing(u)]


def ops(found: Candidate) -> list[str]:
    return sorted(u.op.name for u in nodes(found))


def assert_small(found: Candidate, most: int = MOST_NODES) -> None:
    assert kind_of(found.root).calls_kernels
    assert len(nodes(found)) <= most, print_program(found.root)
    assert sum(a.size for a in found.inputs.values()) <= MOST_ELEMENTS


def distinct(count: int) -> Array:
    """Numbers that all differ, none of them 0 or 1."""
    return np.arange(count, dtype=np.int32) * 7 + 5


def body(*effects: UOp) -> UOp:
    return UOp(Op.SINK, *effects)


def end(effect: UOp, *loops: UOp) -> UOp:
    for r in loops:
        effect = UOp(Op.END, effect, r)
    return effect


OUT, IN, MORE = kernel_param(0, 60), kernel_param(1, 60), kernel_param(2, 60)


def mixed(*values: UOp) -> UOp:
    """A value that many nodes compute."""
    result = values[0]
    for k, value in enumerate(values * 3):
        result = UOp((Op.ADD, Op.XOR, Op.SUB)[k % 3], result, UOp(Op.MAX, value, int32(k)))
    return result


def test_a_gate_that_is_ignored_stays_with_its_store() -> None:
    def ungated(u: UOp) -> UOp:
        return u.with_src(u.src[:2]) if u.op is Op.STORE and len(u.src) > 2 else u

    r, s = loop(0, 6), loop(1, 10)
    place = add(times(r, 10), s)
    value = mixed(load(IN, place), load(MORE, s))
    gated = store(OUT, place, value, below(load(IN, place), int32(90)))
    root = program(body(end(gated, s, r)), 60, 60, 60)
    found = shrunk(root, Miscompiling(ungated), {k: distinct(60) for k in range(3)})
    assert_small(found)
    assert ops(found) == ["CALL", "INDEX", "STORE"]


def test_a_kernel_among_ops_on_tensors_is_shrunk_alone() -> None:
    def ungated(u: UOp) -> UOp:
        return u.with_src(u.src[:2]) if u.op is Op.STORE and len(u.src) > 2 else u

    r = loop(0, 60)
    gated = end(store(OUT, r, mixed(load(IN, r)), below(load(IN, r), int32(90))), r)
    x, out = param(1, (60,), I32), argument(0, 60)
    first = UOp(Op.AFTER, out, UOp(Op.STORE, out, UOp(Op.NEG, x)))
    call = UOp(Op.CALL, body(gated), first, UOp(Op.ADD, x, UOp(Op.MUL, x, x)))
    root = UOp(Op.XOR, UOp(Op.AFTER, out, call), x)
    found = shrunk(root, Miscompiling(ungated), {1: distinct(60)})
    assert_small(found)
    assert ops(found) == ["CALL", "INDEX", "STORE"]


def test_a_loop_that_ends_too_early_keeps_two_iterations() -> None:
    def shorter(u: UOp) -> UOp:
        if u.op is not Op.END or u.src[1].src[0].arg.value < 2:  # type: ignore[union-attr]
            return u
        r = u.src[1]
        less = r.with_src((index_const(r.src[0].arg.value - 1),))  # type: ignore[union-attr]
        return u.substitute({r: less})

    r, s = loop(0, 6), loop(1, 10)
    place = add(times(r, 10), s)
    root = program(
        body(end(store(OUT, place, mixed(load(IN, place), load(MORE, r))), s, r)), 60, 60, 60
    )
    found = shrunk(root, Miscompiling(shorter), {k: distinct(60) for k in range(3)})
    assert_small(found)
    assert ops(found) == ["CALL", "END", "INDEX", "RANGE", "STORE"]
    (bound,) = (u.src[0] for u in found.root.toposort() if u.op is Op.RANGE)
    assert bound is index_const(2)


class Stopping(OneByOne):
    """Ends on every STORE of 7, and notes the work of each program."""

    def __init__(self) -> None:
        self.work: list[int] = []

    def _run(self, program: Program) -> Outcome:
        with metered() as meter:
            outputs = interpret(program)
        self.work.append(meter.spent)
        stored = any((a == 7).any() for batch in outputs.batches for a in batch)
        return Problem(ProblemKind.CRASH, "lost") if stored else outputs


def test_a_loop_of_unknown_length_gets_no_longer() -> None:
    out, count = kernel_param(0, 4), kernel_param(1, 1)
    length = UOp(Op.CAST, load(count, 0), arg=DTypeArg(dtypes.index))
    counter = UOp(Op.RANGE, length, arg=RangeArg(0, AxisType.LOOP))
    once = store(out, counter, add(int32(counter), const(5, I32)))
    root = program(body(end(once, counter)), 4, 1)
    backend = Stopping()
    found = shrunk(root, backend, {0: distinct(4), 1: np.array([4], np.int32)})
    assert len(nodes(found)) <= MOST_NODES, print_program(found.root)
    assert max(backend.work) <= max(backend.work[0], LEAST_WORK)


def test_an_order_of_two_nested_loops_keeps_both() -> None:
    def swapped(u: UOp) -> UOp:
        if u.op is not Op.END or u.src[0].op is not Op.END:
            return u
        effect, inner = u.src[0].src
        return end(effect, u.src[1], inner)

    r, s = loop(0, 5), loop(1, 4)
    carried = UOp(Op.SUB, load(IN, s), load(after(OUT, r, s), 0))
    more = store(MORE, add(times(r, 4), s), mixed(load(IN, s), load(MORE, s)))
    root = program(body(end(store(OUT, 0, carried), s, r)), 60, 60, 60)
    other = program(body(end(more, s, r)), 60, 60, 60)
    root = UOp(Op.SINK, *root.src, UOp(Op.CALL, *other.src[0].src[:1], *_others()))
    found = shrunk(root, Miscompiling(swapped), {k: distinct(60) for k in range(6)})
    # Two loops around a value of each, and of what was stored before.
    assert_small(found, MOST_NODES + 1)
    assert ops(found).count("RANGE") == 2


def _others() -> list[UOp]:
    return [argument(k, 60) for k in (3, 4, 5)]


def test_an_order_of_two_calls_keeps_both() -> None:
    late: list[UOp] = []

    def unordered(u: UOp) -> UOp:
        if u.op is Op.AFTER:
            late.extend(u.src[1:])
            return u.src[0]
        if u.op is not Op.SINK or not late:
            return u
        sources = (*u.src, *late)
        late.clear()
        return u.with_src(sources)

    i = special(60)
    kernel = body(store(OUT, i, mixed(load(IN, i), load(MORE, i))))
    a, b, c, d, e = (argument(k, 60) for k in range(5))
    first = UOp(Op.CALL, kernel, a, b, c)
    second = UOp(Op.CALL, kernel, d, after(a, first), c)
    third = UOp(Op.CALL, kernel, e, b, c)
    backend = Miscompiling(unordered)
    found = shrunk(UOp(Op.SINK, second, third), backend, {k: distinct(60) + k for k in range(5)})
    assert_small(found)
    assert ops(found).count("CALL") == 2
    assert "SPECIAL" not in ops(found)


def test_an_op_of_the_second_of_two_calls_ends_as_a_tensor_program() -> None:
    def wrong(u: UOp) -> UOp:
        return UOp(Op.ADD, *u.src) if u.op is Op.MUL and u.dtype is I32 else u

    i = special(60)
    a, b, c = (argument(k, 60) for k in range(3))
    first = UOp(Op.CALL, body(store(OUT, i, mixed(load(IN, i)))), a, b)
    product = UOp(Op.MUL, load(IN, i), mixed(load(MORE, i)))
    second = UOp(Op.CALL, body(store(OUT, i, mixed(product))), c, after(a, first), b)
    found = shrunk(UOp(Op.SINK, second), Miscompiling(wrong), {k: distinct(60) for k in range(3)})
    assert ops(found) == ["MUL"]
    assert kind_of(found.root) == "tensor"


def test_a_fold_that_is_wrong_stays_a_fold() -> None:
    def without_the_first(u: UOp) -> UOp:
        return UOp(Op.REDUCE, *u.src, arg=ReduceArg(Op.MAX)) if u.op is Op.REDUCE else u

    i, r = special(6), loop(0, 10)
    value = mixed(load(IN, add(times(i, 10), r)), load(MORE, r))
    folded = UOp(Op.REDUCE, value, r, arg=ReduceArg(Op.ADD))
    root = program(body(store(OUT, i, mixed(folded, load(IN, i)))), 60, 60, 60)
    found = shrunk(root, Miscompiling(without_the_first), {k: distinct(60) for k in range(3)})
    assert_small(found)
    assert "REDUCE" in ops(found)


def test_local_memory_that_is_read_at_a_wrong_place_keeps_its_barrier() -> None:
    def at_its_start(u: UOp) -> UOp:
        is_local = u.op is Op.INDEX and u.addrspace is AddrSpace.LOCAL
        return at(u.src[0], 0) if is_local and u.src[0].op is Op.AFTER else u

    local, item, group = memory(AddrSpace.LOCAL, 4), special(4, "lidx0"), special(15)
    place = add(times(group, 4), item)
    written = store(local, item, mixed(load(IN, place), load(MORE, item)))
    whole = after(local, UOp(Op.BARRIER, written))
    rotated = UOp(Op.MOD, add(item, 1), index_const(4))
    result = store(OUT, place, mixed(load(whole, rotated)))
    linear = UOp(Op.LINEAR, *body(result).toposort()[:-1])
    found = shrunk(
        program(linear, 60, 60, 60), Miscompiling(at_its_start), {k: distinct(60) for k in range(3)}
    )
    # A place of its own for each of two items, on both sides of the barrier.
    assert_small(found, MOST_NODES + 1)
    assert any(u.addrspace is AddrSpace.LOCAL for u in found.root.toposort())


def on_devices(op: Op) -> UOp:
    """A program on two devices: values go from one to the other and back."""
    x, y = (param(k, (4, 6), I32, "A") for k in (0, 1))
    there = UOp(Op.LOAD, mixed(x, y), arg=LoadArg("B"))
    back = UOp(Op.LOAD, mixed(UOp(op, there, there)), arg=LoadArg("A"))
    folded = UOp(Op.REDUCE, mixed(back, x), arg=ReduceArg(Op.MAX, (1,)))
    return mixed(folded)


@pytest.mark.parametrize(
    ("is_wrong", "left", "devices"),
    [
        (lambda u: u.op is Op.MUL, ["MUL"], set()),
        (lambda u: u.op is Op.MUL and u.device == "B", ["MUL"], {"B"}),
        (lambda u: u.op is Op.LOAD and u.device == "B", ["LOAD"], {"A", "B"}),
    ],
)
def test_a_program_keeps_the_devices_that_its_fault_needs(
    is_wrong: Callable[[UOp], bool], left: list[str], devices: set[str]
) -> None:
    def more(u: UOp) -> UOp:
        return UOp(Op.ADD, u, const(1, I32)) if is_wrong(u) else u

    inputs = {k: distinct(24).reshape(4, 6) + k for k in (0, 1)}
    found = shrunk(on_devices(Op.MUL), Miscompiling(more), inputs)
    assert ops(found) == left
    assert {u.device for u in found.root.toposort()} - {None} == devices


def test_a_crash_on_one_of_many_elements_keeps_that_one() -> None:
    x, y = param(0, (29, 30), I32), param(1, (29, 30), I32)
    good, bad = (np.arange(870, dtype=np.int32).reshape(29, 30) + k for k in (3000, 0))
    backend = Lost(519, ProblemKind.CRASH)
    found = shrunk(mixed(x, y), backend, {0: good, 1: good}, {0: good, 1: bad})
    assert len(nodes(found)) <= 1
    assert [a.size for a in found.inputs.values()] == [1]
    assert backend.losses <= LOSSES["crash"] + 3


@pytest.mark.parametrize("is_cheap", [False, True])
def test_hangs_are_as_many_as_time_allows(is_cheap: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "HANGING", 20.0 if is_cheap else 0.0)
    x, y = param(0, (29, 30), I32), param(1, (30,), I32)
    backend = Lost(519, ProblemKind.HANG)
    bad = np.arange(870, dtype=np.int32).reshape(29, 30)
    found = shrunk(mixed(x, y), backend, {0: bad, 1: bad[0]})
    assert sum(a.size for a in found.inputs.values()) <= (2 if is_cheap else 2 * MOST_ELEMENTS)
    # Two more: for the verdict, and to judge the repro again here.
    assert backend.losses <= LOSSES["crash" if is_cheap else "hang"] + 2


def test_a_crash_in_a_kernel_keeps_few_elements() -> None:
    i = special(60)
    root = program(body(store(OUT, i, mixed(load(IN, i), load(MORE, i)))), 60, 60, 60)
    bad = np.arange(60, dtype=np.int32) + 100
    backend = Lost(137, ProblemKind.CRASH)
    found = shrunk(root, backend, {0: bad * 0, 1: bad, 2: bad + 100})
    assert sum(a.size for a in found.inputs.values()) <= MOST_ELEMENTS


def test_what_is_dropped_from_a_body_takes_its_users_along() -> None:
    i = special(4)
    first, second = store(OUT, i, load(IN, i)), store(MORE, i, load(IN, i))
    ordered = store(OUT, i, load(after(MORE, second), i))
    assert edited(body(first, second), {second: None}) is body(first)
    assert edited(body(first), {first: None}) is None
    assert edited(body(ordered), {second: None}) is body(store(OUT, i, load(MORE, i)))
    assert edited(body(end(first, loop(0, 3))), {loop(0, 3): index_const(1)}) is body(first)
    gate = UOp(Op.IF, below(i, 2))
    branch = UOp(Op.LINEAR, *UOp(Op.SINK, gate).toposort()[:-1], first, UOp(Op.ENDIF, gate))
    unconditional = edited(branch, {gate: None})
    assert unconditional is not None
    assert not {Op.IF, Op.ENDIF} & {u.op for u in unconditional.toposort()}
    assert first in unconditional.src


@pytest.mark.parametrize(
    "id",
    [
        "kernel/MIXED/int32/chain/0@2",
        "kernel/MIXED/int32/registers/0@2",
        "kernel/BARRIER/int32/hand-rotate/0@2",
        "kernel/IF/int32/hand-branch/0@2",
        "schedule/REDUCE/int32/folds/0@2",
    ],
)
def test_every_step_gives_a_program_with_a_meaning_or_an_error_of_the_spec(id: str) -> None:
    case = case_by_id(id)
    start = Candidate(case.root, case.batches[0].inputs)  # type: ignore[union-attr]
    built = 0
    for steps in (fewer_effects, shorter_loops, with_constants, smaller_memory, smaller_nodes):
        for step in list(steps(start))[:60]:
            try:
                candidate = step()
                if candidate is not None:
                    evaluate(candidate.root, candidate.inputs)
                    built += 1
            except UopError:
                continue
    assert built > 5

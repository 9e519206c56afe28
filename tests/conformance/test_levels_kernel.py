"""Kernels of the suite: every form, every op of kernels, judged by what they are made of."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from oracles.naive_machine import run_body

from uop.compiler.pipeline import compile
from uop.conformance.backends.interpreter import in_order
from uop.conformance.judging.compare import compare
from uop.conformance.judging.expected import accepted_on, written_buffers
from uop.conformance.suite import generate
from uop.conformance.suite.case import Case
from uop.conformance.suite.levels.kernel.features import ARITY
from uop.conformance.suite.levels.written import by_file
from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import SHAPES
from uop.interpreter.numeric.storage import to_bits
from uop.spec.args import BufferArg, WmmaArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.kernel.instructions import INSTRUCTIONS
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """All but those written by hand, which `test_kernel_cases.py` runs."""
    made = (c for c in generate.cases(["kernel"]) if isinstance(c, Case))
    return [c for c in made if not c.group.startswith("hand-")]


@pytest.fixture(scope="module")
def workgroups() -> list[Case]:
    """Two of each dtype."""
    groups = [g for g in generate.groups("kernel") if g.name == "workgroup"]
    cases = [g.case(index, 0) for g in groups for index in range(2)]
    return [c for c in cases if isinstance(c, Case)]


def results(case: Case, batch: int = 0) -> dict[int, np.ndarray]:
    found = evaluate(case.root, case.batches[batch].inputs)
    assert isinstance(found, dict)
    return found


def test_the_reference_gives_what_is_accepted(cases: list[Case]) -> None:
    for case in cases[::2]:
        found = results(case)
        outputs = [found[slot] for slot in sorted(found)]
        assert compare(accepted_on(case, 0, STRICT), outputs).mismatch is None, case.id


def test_a_lowered_kernel_is_judged_by_its_graph(cases: list[Case]) -> None:
    lowered = [c for c in cases if c.source is not None and c.op == "MIXED"]
    assert {c.group.rsplit("-", 1)[-1] for c in lowered} == {"rangeify", "select", "linearize"}
    for case in lowered[::5]:
        assert case.source is not None
        stored = written_buffers(case.source.root)
        found = results(case)
        assert stored.keys() <= found.keys()
        changed = dict(found)
        for slot in stored:
            bits = np.ascontiguousarray(found[slot]).view(np.uint8) ^ 1
            changed[slot] = bits.view(found[slot].dtype)
        outputs = [changed[slot] for slot in sorted(changed)]
        assert compare(accepted_on(case, 0, STRICT), outputs).mismatch is not None, case.id


NOT_IN_ORACLE = {Op.CAST, Op.GETADDR, Op.PROGRAM}


def test_random_integer_kernels_agree_with_one_item_at_a_time(cases: list[Case]) -> None:
    checked = 0
    for case in cases:
        calls = [u for u in case.root.toposort() if u.op is Op.CALL]
        ops = {u.op for u in case.root.toposort()}
        if case.dtype != "int32" or case.source or len(calls) != 1 or ops & NOT_IN_ORACLE:
            continue
        arguments = [a.arg for a in calls[0].src[1:]]
        inputs = case.batches[0].inputs
        slots = [a.slot for a in arguments if isinstance(a, BufferArg)]
        # Two arguments may be one buffer.
        contents = {slot: inputs[slot].tolist() for slot in slots}
        memory = [contents[slot] for slot in slots]
        run_body(calls[0].src[0], memory)
        for slot, result in results(case).items():
            assert result.tolist() == memory[slots.index(slot)], case.id
        checked += 1
    assert checked >= 2


def test_kernels_have_every_form_and_are_alive(cases: list[Case]) -> None:
    bodies = {u.src[0].op for c in cases for u in c.root.toposort() if u.op is Op.CALL}
    assert bodies == {Op.SINK, Op.LINEAR, Op.PROGRAM}
    ops = {u.op for c in cases for u in c.root.toposort()}
    assert {Op.RANGE, Op.END, Op.REDUCE, Op.SPECIAL, Op.INDEX, Op.AFTER} <= ops
    direct = [c for c in cases if c.source is None and c.group not in ("copy", "distances")]
    found = [a for c in direct for a in results(c).values()]
    assert sum(np.unique(a).size == 1 < a.size for a in found) <= len(found) / 20


def test_the_cases_written_by_hand_are_of_the_level() -> None:
    hand = [g for g in generate.groups("kernel") if g.name.startswith("hand-")]
    with_meaning = [c for cases in by_file("kernel").values() for c in cases if not c.undefined]
    assert len(hand) == len(with_meaning) >= 20
    for group in hand:
        case = group.case(0, 0)
        assert isinstance(case, Case)
        accepted = accepted_on(case, 0, STRICT)
        found = evaluate_adversarially(case.root, case.batches[0].inputs, 1)
        assert compare(accepted, in_order(found)).mismatch is None, case.id


def test_kernels_enter_the_compiler(cases: list[Case]) -> None:
    for case in (c for c in cases[::9] if c.op == "MIXED"):
        compile(case.root)


def test_workgroups_share_memory_wait_branch_and_count(workgroups: list[Case]) -> None:
    ops = Counter(u.op for c in workgroups for u in c.root.toposort())
    for op in (Op.BARRIER, Op.IF, Op.ENDIF, Op.ATOMICADD, Op.STACK, Op.END):
        assert ops[op] >= 5, op


def test_the_compiler_takes_workgroups_but_for_narrow_atomics(workgroups: list[Case]) -> None:
    taken = 0
    for case in workgroups:
        counts = any(u.op is Op.ATOMICADD for u in case.root.toposort())
        if counts and case.dtype in ("int8", "int16", "uint8", "uint16"):
            with pytest.raises(UnsupportedError, match=r"no atomic addition of u?int(8|16)"):
                compile(case.root)
        else:
            compile(case.root)
            taken += 1
    assert taken > len(workgroups) / 2


def test_without_its_barriers_a_workgroup_races(workgroups: list[Case]) -> None:
    raced = 0
    for case in workgroups:
        (linear,) = [u for u in case.root.toposort() if u.op is Op.LINEAR]
        kept = UOp(Op.LINEAR, *(u for u in linear.src if u.op is not Op.BARRIER))
        try:
            evaluate(case.root.substitute({linear: kept}), case.batches[0].inputs)
        except UndefinedError:
            raced += 1
    assert raced > len(workgroups) / 2


@pytest.mark.parametrize(
    "arg", SHAPES, ids=lambda a: f"{a.dtype_in.name}-k{a.k}-{a.dtype_out.name}"
)
def test_a_matrix_product_is_judged_by_its_own_latitude(arg: WmmaArg) -> None:
    name = f"kernel/WMMA/{arg.dtype_in.name}/m{arg.m}n{arg.n}k{arg.k}"
    name += "" if arg.dtype_out is dtypes.float32 else f"-{arg.dtype_out.name}"
    case = generate.case_by_id(f"{name}/1")
    assert isinstance(case, Case)
    found = results(case)[0]
    sets = accepted_on(case, 0, STRICT)
    assert compare(sets, [found]).mismatch is None
    assert compare(sets, [np.roll(found, 1)]).mismatch is not None
    moved = evaluate_adversarially(case.root, case.batches[0].inputs, 0)
    assert isinstance(moved, dict)
    assert compare(sets, [moved[0]]).mismatch is None
    assert (to_bits(moved[0]) != to_bits(found)).any()
    # The largest share that order and width of the sum may change, twice.
    unit = 2**-13 if arg.dtype_in.bits == 8 else 2.0**-arg.dtype_out.format.precision
    off = np.abs(found).max() * 4 * arg.k * unit
    assert compare(sets, [(found + 64 * off).astype(found.dtype)]).mismatch is not None


def test_open_elements_of_kernels_are_anything_to_the_adversary() -> None:
    """What nobody wrote is copied by a kernel: any bits may come out, and are accepted."""
    case = generate.case_by_id("kernel/MIXED/int32/copy/0")
    assert isinstance(case, Case)
    inputs = {0: case.batches[0].inputs[0]}
    sets = accept(case.root, inputs)
    found = [evaluate_adversarially(case.root, inputs, seed) for seed in range(2)]
    assert all(isinstance(f, dict) for f in found)
    one, two = (f[0] for f in found if isinstance(f, dict))
    assert not np.array_equal(one, two)
    assert all(compare(sets, [a]).mismatch is None for a in (one, two))


def test_every_instruction_with_a_name_is_run() -> None:
    assert ARITY.keys() == INSTRUCTIONS.keys()
    case = generate.case_by_id("kernel/INS/uint32/instructions/0")
    assert isinstance(case, Case)
    given = case.batches[0].inputs[1]
    counted = results(case)[0].reshape(len(ARITY), -1)[1]
    assert sorted(counted.tolist()) == sorted(x.bit_count() for x in given.tolist())


def test_a_kernel_of_floats_is_judged_without_its_graph(cases: list[Case]) -> None:
    wide = [c for c in cases if c.source is not None and c.group == "floats-rangeify"]
    assert wide
    for case in wide:
        given = case.batches[0].inputs
        sets, found = accept(case.root, given), results(case)
        moved = evaluate_adversarially(case.root, given, 1)
        assert isinstance(moved, dict)
        for accepted, slot in zip(sets, sorted(found), strict=True):
            assert accepted.contains(found[slot]).all(), case.id
            assert accepted.contains(moved[slot]).all(), case.id


def kernels(root: UOp) -> int:
    return sum(u.op is Op.CALL for u in root.toposort())


def test_programs_of_several_kernels_are_among_them(cases: list[Case]) -> None:
    assert sum(kernels(c.root) > 1 for c in cases) > len(cases) / 7

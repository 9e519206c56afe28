"""Random programs are drawn from what a backend lists; packaging costs a small backend no case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import submission_of, unsupported
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.codec import from_json, to_json
from uop.conformance.protocol.types import Hello, Limits, Outcome, Program
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.suite.case import GENERATOR, MIXED, Batch, Case, CaseId, NoSuchCaseError
from uop.conformance.suite.catalogue import RANDOM
from uop.conformance.suite.generate import case_by_id, groups
from uop.conformance.suite.vocabulary import (
    Vocabulary,
    computed,
    elementwise_in,
    vocabulary_of,
    whole,
)
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, param

TWELVE = "PARAM CONST ADD SUB MUL NEG CMPLT WHERE CAST RESHAPE EXPAND REDUCE"
GOLDEN = Path(__file__).parents[1] / "golden" / "generator.txt"


def hello(ops: str = TWELVE, kinds: str = "int32 float32", **more: object) -> Hello:
    found = InterpreterBackend().hello()
    listed = frozenset(ops.split()), frozenset(kinds.split())
    return replace(found, name="small", ops=listed[0], dtypes=listed[1], **more)  # type: ignore[arg-type]


class Small(InterpreterBackend):
    """The interpreter, which refuses what it does not list."""

    def __init__(self, said: Hello) -> None:
        self.said = said

    def hello(self) -> Hello:
        return self.said

    def run(self, programs: tuple[Program, ...]) -> list[Outcome]:  # type: ignore[override]
        assert all(not unsupported(parse(p.text), self.said) for p in programs)
        return super().run(programs)


def drawn(vocabulary: Vocabulary, effort: str, levels: Sequence[str] = RANDOM) -> Iterator[Case]:
    for level in levels:
        for group in groups(level, vocabulary):
            for index in range(group.count(effort)):
                case = group.case(index, 0)
                if isinstance(case, Case) and "+" in group.name:
                    yield case


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("ops", "kinds"),
    [
        (TWELVE, "int32 float32"),
        (f"{TWELVE} MAX TUPLE STACK PAD", "bool uint8 int64"),
        ("PARAM ADD", "float32"),
        ("PARAM XOR SHL BITCAST FLIP", "uint16 int16"),
        ("PARAM EXP2 SIN DIV CONST", "float16 float64"),
    ],
)
def test_random_programs_hold_what_is_listed_alone(ops: str, kinds: str) -> None:
    said = hello(ops, kinds)
    vocabulary = vocabulary_of([said])
    cases = list(drawn(vocabulary, "smoke", ["graph", "property"]))
    assert len(cases) > 20
    assert all(c.id.key == vocabulary.key != "" for c in cases)
    for case in cases:
        assert submission_of(case, said).reason == "", case.id


def test_values_have_no_more_elements_than_a_backend_takes() -> None:
    said = hello(limits=Limits(elements=9))
    vocabulary = vocabulary_of([said])
    cases = list(drawn(vocabulary, "smoke", ["graph"]))
    sizes = {np.prod(u.shape) for c in cases for u in computed(c.root) if u.op is not Op.TUPLE}
    assert cases
    assert max(sizes) <= 9
    assert vocabulary.key != vocabulary_of([hello()]).key


@pytest.mark.parametrize(("elements", "fits"), [(8, True), (7, False)])
def test_a_size_that_is_a_variable_counts_with_its_most(elements: int, fits: bool) -> None:
    text = """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=8}
%1 = STACK %0
%2 = PARAM %1 {slot=1, dtype=float32}
%3 = REDUCE %2 {op=ADD, axes=(0)}
%4 = TUPLE %3
%5 = PARAM [3] {slot=0, dtype=float32}
%6 = FUNCTION %4, 3, %5
%7 = GETTUPLE %6 {idx=0}
"""
    assert replace(whole(), key="small", elements=elements).speaks(parse(text)) is fits


def test_a_small_backend_gets_as_many_graphs_as_a_large_one() -> None:
    vocabulary = vocabulary_of([hello()])
    cases = selected(Options("interpreter"), vocabulary, hello())
    assert sum(id.level != "invalid" for id in cases) > 1500
    one = hello("PARAM ADD", "float32")
    alone = selected(Options("interpreter"), vocabulary_of([one]), one)
    assert sum(id.level != "invalid" for id in alone) > 150


def test_a_backend_without_tuples_has_the_same_groups() -> None:
    without, having = (vocabulary_of([hello(ops)]) for ops in (TWELVE, f"{TWELVE} TUPLE"))
    one, other = ([g.name.partition("+")[0] for g in groups("graph", v)] for v in (without, having))
    assert one == other
    assert {"affine", "view-pairs", "aliased"} <= set(one)


def test_the_whole_language_has_no_key_and_all_is_pinned() -> None:
    every = InterpreterBackend().hello()
    assert vocabulary_of([every]) is whole()
    assert whole().ops <= set(Op.__members__)
    assert whole().dtypes <= set(DTYPES)
    part = vocabulary_of([every, hello()])
    assert part == vocabulary_of([hello()])
    assert from_json(Vocabulary, to_json(part)) == part


def test_a_new_op_changes_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _fingerprint()
    new = replace(DECLARATIONS[Op.MAX], op=_NewOp())  # type: ignore[arg-type]
    monkeypatch.setitem(DECLARATIONS, new.op, new)  # type: ignore[arg-type]
    elementwise_in.cache_clear()
    assert new.op not in whole().on(dtypes.int32).binary
    assert _fingerprint() == before
    monkeypatch.undo()
    elementwise_in.cache_clear()


def test_programs_change_with_the_version_of_the_generator_alone() -> None:
    """Write the file anew by `python tests/conformance/test_vocabulary.py` with a new version."""
    assert GOLDEN.read_text().split() == [str(GENERATOR), _fingerprint()]


class _NewOp:
    """An op of a later version."""

    name = "NEW"


def _fingerprint() -> str:
    """Of the text and the data of a few programs of each level, but those about later ops."""
    digest = hashlib.sha256()
    later = Op.__members__.keys() - whole().ops
    for level in RANDOM:
        for group in [g for g in groups(level) if g.op not in later][::7]:
            case = group.case(0, 3)
            assert isinstance(case, Case)
            digest.update(print_program(case.root).encode())
            for batch in case.batches:
                for slot, data in sorted(batch.inputs.items()):
                    digest.update(f"{slot} {data.shape}".encode() + data.tobytes())
    return digest.hexdigest()


def test_an_id_says_the_version_and_the_list_that_it_was_drawn_from() -> None:
    vocabulary = vocabulary_of([hello()])
    case = next(drawn(vocabulary, "smoke"))
    again = case_by_id(str(case.id), 0, vocabulary)
    assert isinstance(again, Case)
    assert again.root is case.root
    with pytest.raises(NoSuchCaseError, match="lists other ops, dtypes or limits"):
        case_by_id(str(case.id))
    old = replace(CaseId.parse("op/ADD/int8/edges/0"), version=1)
    with pytest.raises(NoSuchCaseError, match="of version 1 of the generator, and this is version"):
        case_by_id(str(old))


# Packaging.


def case_of(root: UOp, *arrays: Array, op: str = MIXED) -> Case:
    return Case(CaseId("op", op, "int32", "test", 0), root, (Batch(dict(enumerate(arrays))),))


NUMBERS = np.array([3, -4, 5], np.int32)
A, B = (param(k, (3,), dtypes.int32) for k in range(2))
CHOICE = UOp(Op.WHERE, param(2, (), dtypes.bool), A, B)


@pytest.mark.parametrize(
    ("root", "programs"),
    [
        (UOp(Op.TUPLE, UOp(Op.ADD, A, B), A), 2),
        (UOp(Op.STACK, UOp(Op.ADD, A, B), A), 2),
        (UOp(Op.ADD, UOp(Op.ADD, A, B), const(7, dtypes.int32)), 1),
        (CHOICE, 1),
        (UOp(Op.WHERE, const(True, dtypes.bool), A, B), 1),
        (UOp(Op.TUPLE, UOp(Op.CMPLT, A, B), CHOICE), 2),
    ],
)
@pytest.mark.parametrize("ops", ["PARAM ADD CMPLT WHERE", "PARAM ADD CMPNE WHERE CONST CMPLT"])
def test_packaging_costs_no_case(root: UOp, programs: int, ops: str) -> None:
    said = hello(ops, "int32")
    used = {u.arg.slot for u in root.toposort() if u.op is Op.PARAM}  # type: ignore[union-attr]
    arrays = {0: NUMBERS, 1: NUMBERS[::-1].copy(), 2: np.array(True)}
    given = {slot: a for slot, a in arrays.items() if slot in used}
    case = Case(CaseId("op", MIXED, "int32", "test", 0), root, (Batch(given),))
    submission = submission_of(case, said)
    assert (submission.reason, len(submission.programs)) == ("", programs)
    (verdict,) = Judge(Local(Small(said)), STRICT).judge([case])
    assert verdict.status is Status.PASSED


class Swapped(Small):
    """WHERE chooses the other operand if its condition is a scalar."""

    def run(self, programs: tuple[Program, ...]) -> list[Outcome]:  # type: ignore[override]
        return super().run(tuple(Program(_swapped(p.text), p.batches) for p in programs))


def _swapped(text: str) -> str:
    root = parse(text)
    new = {
        u: UOp(Op.WHERE, u.src[0], u.src[2], u.src[1])
        for u in root.toposort()
        if u.op is Op.WHERE and not u.src[0].shape
    }
    return print_program(root.substitute(new))


def test_a_wrong_member_is_named_among_the_outputs_of_the_case() -> None:
    said = hello("PARAM ADD CMPLT WHERE", "int32")
    root = UOp(Op.TUPLE, UOp(Op.ADD, A, B), CHOICE)
    case = case_of(root, NUMBERS, NUMBERS[::-1].copy(), np.array(True))
    (verdict,) = Judge(Local(Swapped(said)), STRICT).judge([case])
    assert verdict.status is Status.FAILED
    assert verdict.failure is not None
    assert (verdict.failure.output, verdict.failure.element) == (1, 0)


def test_an_op_that_a_case_is_about_is_no_packaging() -> None:
    said = hello("PARAM ADD", "int32")
    case = case_of(UOp(Op.TUPLE, A, B), NUMBERS, NUMBERS, op="TUPLE")
    assert submission_of(case, said).reason == "small does not support TUPLE"


def test_bools_need_the_list_where_no_comparison_makes_them() -> None:
    said = hello("PARAM CAST NOT CMPLT WHERE RESHAPE EXPAND", "int32")
    flags = UOp(Op.NOT, UOp(Op.CMPLT, A, B))
    assert unsupported(flags, said) == "small does not support bool"
    assert unsupported(UOp(Op.CMPLT, A, B), said) == ""


@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX"])
def test_memory_and_one_op_are_enough_for_programs_on_memory(op: str) -> None:
    listed = vocabulary_of([hello(f"SINK STORE AFTER BUFFER PARAM {op}", "int32 bool")])
    made = [g for g in groups("graph", listed) if g.name.startswith("read-around")]
    cases = [group.case(k, 0) for group in made for k in range(group.count("default"))]
    assert cases
    assert {u.op.name for case in cases if isinstance(case, Case) for u in case.root.src} <= {op}


if __name__ == "__main__":
    GOLDEN.write_text(f"{GENERATOR} {_fingerprint()}\n")

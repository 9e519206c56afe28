"""Shrinking: faults of known size end as programs of that size, whatever they were found in."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from shrinking import I32, Backwards, OffByOne, T, elements, find

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.protocol.types import Outcome, Problem, ProblemKind, Program
from uop.conformance.report.model import Failure
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.reduce import (
    Candidate,
    is_computing,
    one_element,
    taken_members,
    with_members,
)
from uop.conformance.shrink.repro import find_cause
from uop.conformance.shrink.writing import written
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import (
    BufferArg,
    DTypeArg,
    GetTupleArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
    SliceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.graph import outside, slots_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, const, dims, index_const, param


def large_graph(heart: Callable[[UOp, UOp], UOp]) -> UOp:
    """A graph of many nodes around a small one."""
    x, y = param(0, (4, 6), I32), param(1, (4, 6), I32)
    a = UOp(Op.XOR, UOp(Op.ADD, x, y), UOp(Op.MAX, x, const(3, I32)))
    b = UOp(Op.SUB, UOp(Op.NEG, y), a)
    z = heart(a, b)
    for _ in range(5):
        z = UOp(Op.XOR, UOp(Op.ADD, z, b), a)
    return z


@pytest.mark.parametrize(
    "root",
    [
        UOp(Op.RESHAPE, T, dims((3, 8))),
        UOp(Op.EXPAND, UOp(Op.RESHAPE, T, dims((4, 1, 6))), dims((4, 5, 6))),
        UOp(Op.PAD, T, dims((0, 1)), dims((4, 8)), arg=PadArg(PadFill.ZERO)),
        UOp(Op.SHRINK, T, dims((1, 2)), dims((3, 3))),
        UOp(Op.SLICE, T, index_const(10), arg=SliceArg(12, I32)),
        UOp(Op.INDEX, T, index_const(2)),
        UOp(Op.PERMUTE, T, arg=PermuteArg((1, 0))),
        UOp(
            Op.GETTUPLE,
            UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.SHRINK, T, dims((0, 3)), dims((4, 2)))), T),
            arg=GetTupleArg(0),
        ),
    ],
    ids=lambda root: root.op.name,
)
def test_axes_are_shrunk_with_the_shapes_that_ops_state(root: UOp) -> None:
    finding = find(UOp(Op.NEG, root), Backwards(root.op), slots=(0,))
    assert root.op.name in finding.ops
    assert elements(finding) <= 8, finding.text


def size(finding: Failure) -> int:
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    return sum(map(is_computing, case.root.toposort()))


def test_a_fault_of_one_op_ends_as_that_op_on_single_elements() -> None:
    root = large_graph(lambda a, b: UOp(Op.MUL, a, b))
    backend = OffByOne(lambda u: u.op is Op.MUL)
    finding = find(root, backend)
    assert finding.ops == ("MUL",)
    assert finding.dtypes == ("int32",)
    assert size(finding) == 1
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    assert case.root.shape == ()
    assert backend.runs <= 24


def test_a_fault_of_two_ops_together_keeps_both() -> None:
    root = large_graph(lambda a, b: UOp(Op.MAX, UOp(Op.MUL, a, b), a))
    fused = OffByOne(lambda u: u.op is Op.MAX and u.src[0].op is Op.MUL)
    finding = find(root, fused)
    assert finding.ops == ("MAX", "MUL")
    assert size(finding) == 2


def test_a_fault_of_an_op_on_rows_ends_on_short_axes() -> None:
    summed = UOp(Op.REDUCE, param(0, (4, 6), I32), arg=ReduceArg(Op.ADD, (1,)))
    finding = find(summed, OffByOne(lambda u: u.op is Op.REDUCE), slots=(0,))
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    assert case.root.shape == (1, 1)


def test_an_input_that_is_read_wrong_is_one_cause_whatever_reads_it() -> None:
    class Flushing(InterpreterBackend):
        """Reads the small numbers of a float16 as zeros."""

        def run(self, programs: Sequence[Program]) -> list[Outcome]:
            return [interpret(Program(p.text, tuple(map(flush, p.batches)))) for p in programs]

    def flush(batch: Mapping[int, Array]) -> dict[int, Array]:
        return {
            slot: np.where(np.abs(a) < 2.0**-14, 0, a).astype(a.dtype) for slot, a in batch.items()
        }

    x, y = param(0, (2,), dtypes.float16), param(1, (2,), dtypes.float16)
    inputs = {0: np.array([1, 0], np.float16), 1: np.array([2, 2.0**-20], np.float16)}
    for op in (Op.CMPLT, Op.CMPNE, Op.ADD):
        case = Case(CaseId("op", op.name, "float16", "test", 0), UOp(op, x, y), (Batch(inputs),))
        judge = Judge(Local(Flushing()), STRICT)
        (verdict,) = judge.judge([case])
        assert verdict.failure is not None
        assert (
            find_cause(judge, Failing(case, verdict.failure)).signature
            == "result CAST float16+float32"
        )


@pytest.mark.parametrize(
    ("root", "signature"),
    [
        (UOp(Op.CAST, param(0, (), I32), arg=DTypeArg(dtypes.int8)), "result CAST int32+int8"),
        (UOp(Op.CAST, param(0, (), dtypes.int8), arg=DTypeArg(I32)), "result CAST int8+int32"),
        (UOp(Op.CMPLT, *(param(k, (), I32) for k in (0, 1))), "result CMPLT int32+bool"),
        (UOp(Op.CMPLT, const(1, I32), const(2, I32)), "result CMPLT int32+bool"),
        (UOp(Op.RESHAPE, param(0, (1,), I32), dims(())), "result RESHAPE int32"),
    ],
)
def test_a_signature_tells_the_dtypes_of_what_is_read_and_then_of_what_is_given(
    root: UOp, signature: str
) -> None:
    shapes = {u.arg.slot: u for u in root.toposort() if u.op is Op.PARAM}  # type: ignore[union-attr]
    inputs = {slot: np.zeros(u.shape, np_dtype(u.dtype)) for slot, u in shapes.items()}
    id, failure = CaseId("op", "ADD", "int8", "test", 0), CaseFailure(Symptom.VALUE, "wrong")
    found = written(id, Candidate(root, inputs), failure, STRICT)
    assert found.signature == signature


def test_a_fault_in_one_of_many_outputs_keeps_that_one() -> None:
    x, y = param(0, (4, 6), I32), param(1, (4, 6), I32)
    root = UOp(Op.TUPLE, UOp(Op.ADD, x, y), UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,))), y)
    finding = find(root, OffByOne(lambda u: u.op is Op.REDUCE))
    assert finding.ops == ("REDUCE",)
    assert size(finding) == 1


class Remembering(InterpreterBackend):
    """Gives for each call of a body what the first one gave."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._run(program) for program in programs]

    def _run(self, program: Program) -> Outcome:
        done: dict[UOp, UOp] = {}
        first: dict[UOp, UOp] = {}
        for u in (nodes := parse(program.text).toposort()):
            done[u] = u.with_src(done[s] for s in u.src)
            if u.op is Op.FUNCTION:
                done[u] = first.setdefault(u.src[0], done[u])
        root = done[nodes[-1]]
        batches = [{slot: batch[slot] for slot in slots_of(root)} for batch in program.batches]
        return interpret(Program(print_program(root), tuple(batches)))


def test_a_function_that_fails_is_called_with_what_it_needs() -> None:
    """Two calls have to stay, as only the second is wrong; all else goes."""
    a, b, c, unused = (param(k, (4, 6), I32) for k in range(4))
    heart = UOp(Op.SUB, UOp(Op.ADD, b, UOp(Op.MUL, a, c)), UOp(Op.MAX, a, c))
    body = UOp(Op.TUPLE, UOp(Op.NEG, a), heart, UOp(Op.MUL, a, b))
    x, y = param(0, (4, 6), I32), param(1, (4, 6), I32)
    calls = [UOp(Op.FUNCTION, body, *args, unused) for args in ((x, y, x), (y, x, x))]
    outputs = [UOp(Op.GETTUPLE, call, arg=GetTupleArg(k)) for call in calls for k in range(3)]
    finding = find(UOp(Op.TUPLE, *outputs), Remembering(), slots=(0, 1, 3))
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    functions = [u for u in case.root.toposort() if u.op is Op.FUNCTION]
    assert len(functions) == 2
    assert {u.src[0] for u in functions} == {UOp(Op.TUPLE, param(0, (1, 1), I32))}
    assert finding.ops == ("FUNCTION", "GETTUPLE")
    assert len(case.root.src) == len(case.inputs) == 2


def test_a_body_is_changed_in_each_of_its_calls() -> None:
    """A member and an argument less, by values: the calls are nested, the body holds a call."""
    a, b, c = (param(k, (), I32) for k in range(3))
    inner = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.NEG, a)), c)
    body = UOp(Op.TUPLE, b, UOp(Op.SUB, a, UOp(Op.GETTUPLE, inner, arg=GetTupleArg(0))))
    root = param(0, (), I32)
    for k in (10, 100):
        call = UOp(Op.FUNCTION, body, root, root, const(k, I32))
        root = UOp(Op.GETTUPLE, call, arg=GetTupleArg(1))
    assert taken_members(root, body) == [1]
    smaller = with_members(root, body, body.src[1:], [1])
    (other,) = {u.src[0] for u in outside(smaller) if u.op is Op.FUNCTION}
    assert len(other.src) == 1
    assert all(len(u.src) == 3 for u in outside(smaller) if u.op is Op.FUNCTION)
    inputs = {0: np.array(7, np.int32)}
    assert evaluate(smaller, inputs) == evaluate(root, inputs) == 117


def test_a_refused_program_is_shrunk_to_what_is_refused() -> None:
    class Refusing(InterpreterBackend):
        def run(self, programs: Sequence[Program]) -> list[Outcome]:
            refused = Problem(ProblemKind.COMPILE, "does not build")
            return [refused if "IDIV" in p.text else interpret(p) for p in programs]

    finding = find(large_graph(lambda a, b: UOp(Op.IDIV, a, b)), Refusing())
    assert finding.ops == ("IDIV",)
    assert finding.signature == "refused IDIV int32"


def test_a_repro_holds_data_sets_and_its_own_verdict() -> None:
    finding = find(large_graph(lambda a, b: UOp(Op.MUL, a, b)), OffByOne(lambda u: u.op is Op.MUL))
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    assert case.accept
    inputs = {slot: a.values[0] for slot, a in case.inputs.items()}
    operands = [
        u.arg.value if u.op is Op.CONST else inputs[u.arg.slot]  # type: ignore[union-attr]
        for u in case.root.src
    ]
    product = int(operands[0]) * int(operands[1])
    (accepted,) = case.accept[0]
    ((low, _),) = accepted.intervals
    assert dtypes.int32.decode(low) == product


@pytest.mark.parametrize(
    ("u", "counts"),
    [
        (param(0, (2,), I32), False),
        (const(1, I32), False),
        (param(0, (2,), I32).src[0], False),
        (UOp(Op.STACK, const(1, I32), const(2, I32)), True),
        (UOp(Op.NEG, param(0, (2,), I32)), True),
    ],
)
def test_what_counts_as_a_node(u: UOp, counts: bool) -> None:
    assert is_computing(u) is counts


def test_a_fault_in_the_second_of_two_buffers_has_no_element_to_cut_out() -> None:
    x = param(0, (3,), I32)
    buffers = (UOp(Op.BUFFER, dims((3,)), arg=BufferArg(slot, I32)) for slot in (1, 2))
    root = UOp(Op.SINK, *(UOp(Op.STORE, buffer, x) for buffer in buffers))
    failure = CaseFailure(Symptom.VALUE, "wrong", output=1, element=2)
    assert list(one_element(Candidate(root, {}), failure)) == []

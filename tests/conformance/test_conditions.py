"""Conditions: a cause says when it fails, and causes of one fault stand together."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging.judge import Judge
from uop.conformance.protocol.types import Outcome, Problem, ProblemKind, Program
from uop.conformance.report.model import CALLED, SPECIAL, Failure, When
from uop.conformance.run.causes import in_faults
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import Array
from uop.spec.args import GetTupleArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, dims, param

I32 = dtypes.int32
NEVER = When()
"""Of a cause without neighbours."""
Wrong = Callable[[UOp], bool]
"""Whether a backend adds one to the result of a node."""


class Faulty(InterpreterBackend):
    """Adds one to the result where a node of the program is one that it computes wrong."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__()
        self.wrong = wrong

    def run(self, programs: Sequence[Program]) -> Sequence[Outcome]:
        roots = [parse(program.text) for program in programs]
        return [self._outcome(r, p) for r, p in zip(roots, programs, strict=True)]

    def _outcome(self, root: UOp, program: Program) -> Outcome:
        if any(map(self.wrong, root.toposort())):
            one = const(1, root.dtype)
            root = UOp(Op.XOR if root.dtype is dtypes.bool else Op.ADD, root, one)
        return interpret(replace(program, text=print_program(root)))


def cause(wrong: Wrong, root: UOp, *inputs: Array) -> Failure:
    """The cause of the failure of a program."""
    judge = Judge(Local(Faulty(wrong)), STRICT)
    case = Case(CaseId("op", "ADD", "int32", "test", 0), root, (Batch(dict(enumerate(inputs))),))
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    return find_cause(judge, Failing(case, verdict.failure))


def numbers(*shape: int) -> Array:
    return np.arange(2, 2 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


def is_number(u: UOp) -> bool:
    return u.dtype is I32


def test_an_operand_that_repeats() -> None:
    root = UOp(Op.MUL, param(0, (2, 3), I32), param(1, (2, 1), I32))
    when = cause(lambda u: u.op is Op.MUL and u.src[1].shape[1:] == (1,) != u.shape[1:],
                 root, numbers(2, 3), numbers(2, 1)).when  # fmt: skip
    assert when.needs == ("its second operand repeats along axis 1",)
    assert "float32" in when.fails_on
    assert when.also == ()


def test_operands_that_are_one_node() -> None:
    x = param(0, (3,), I32)
    when = cause(lambda u: u.op is Op.SUB and u.src[0] is u.src[1], UOp(Op.SUB, x, x),
                 numbers(3)).when  # fmt: skip
    assert when.needs == ("the operands of SUB are one node",)


def test_a_constant_of_any_op() -> None:
    def wrong(u: UOp) -> bool:
        return len(u.src) == 2 and is_number(u) and u.src[1].op is Op.CONST

    when = cause(wrong, UOp(Op.ADD, param(0, (3,), I32), const(5, I32)), numbers(3)).when
    assert when.needs == ("its second operand is a constant",)
    assert {"MUL", "SUB", "MAX"} <= {*when.also}
    assert "float32" in when.passes_on


def test_many_constants_are_no_condition_of_what_only_holds_them() -> None:
    root = UOp(Op.STACK, *(const(k, I32) for k in range(5)))
    assert cause(lambda u: u.op is Op.STACK, root).when.needs == ()


def test_a_long_axis() -> None:
    def wrong(u: UOp) -> bool:
        return u.op is Op.REDUCE and max(u.src[0].shape) > 20

    root = UOp(Op.REDUCE, param(0, (64,), I32), arg=ReduceArg(Op.ADD, (0,)))
    found = cause(wrong, root, numbers(64))
    assert found.when.needs == ("an axis has 21 elements or more",)
    assert "only if an axis has 21 elements or more; also on" in found.when.text


def test_a_function() -> None:
    body = UOp(Op.TUPLE, UOp(Op.NEG, param(0, (3,), I32)))
    called = UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, param(0, (3,), I32)), arg=GetTupleArg(0))
    found = cause(lambda u: u.op is Op.FUNCTION, called, numbers(3))
    assert found.when.needs == ("a FUNCTION is called",)


def test_a_value_that_expand_repeats() -> None:
    def wrong(u: UOp) -> bool:
        return u.op is Op.EXPAND and u.src[0].shape != u.shape

    root = UOp(Op.EXPAND, param(0, (2, 1), I32), dims((2, 3)))
    found = cause(wrong, UOp(Op.NEG, root), numbers(2, 1))
    assert found.when.needs == ("EXPAND repeats along axis 1",)
    assert cause(lambda u: u.op is Op.EXPAND, root, numbers(2, 1)).when.needs == ()


def test_a_fault_without_a_condition_has_none() -> None:
    found = cause(lambda u: u.op is Op.MUL, UOp(Op.MUL, *(param(k, (), I32) for k in range(2))),
                  numbers(), numbers())  # fmt: skip
    assert found.when.needs == ()
    assert {"int8", "float64"} <= {*found.when.fails_on}
    assert found.when.neighbours > 10


def test_an_op_and_a_fold_by_it() -> None:
    def wrong(u: UOp) -> bool:
        return u.op is Op.MAX or isinstance(u.arg, ReduceArg)

    fold = UOp(Op.REDUCE, param(0, (3,), I32), arg=ReduceArg(Op.MAX, (0,)))
    assert cause(wrong, fold, numbers(3)).when.also == ("MAX",)
    pair = UOp(Op.MAX, *(param(k, (3,), I32) for k in range(2)))
    assert cause(wrong, pair, numbers(3), numbers(3)).when.also == ("REDUCE",)


def test_a_neighbour_that_fails_otherwise_passes_no_dtype() -> None:
    class RefusesFloats(Faulty):
        def _outcome(self, root: UOp, program: Program) -> Outcome:
            if root.dtype.is_float:
                return Problem(ProblemKind.INTERNAL, "no floats")
            return super()._outcome(root, program)

    judge = Judge(Local(RefusesFloats(lambda u: u.op is Op.NEG)), STRICT)
    root = UOp(Op.NEG, param(0, (3,), I32))
    case = Case(CaseId("op", "NEG", "int32", "test", 0), root, (Batch({0: numbers(3)}),))
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    when = find_cause(judge, Failing(case, verdict.failure)).when
    assert "float32" in when.otherwise_on
    assert "float32" not in (*when.fails_on, *when.passes_on)


def test_a_fault_of_one_dtype() -> None:
    def wrong(u: UOp) -> bool:
        return u.op is Op.MUL and is_number(u)

    when = cause(wrong, UOp(Op.MUL, *(param(k, (), I32) for k in range(2))), numbers(),
                 numbers()).when  # fmt: skip
    assert when.fails_on == ()
    assert {"int8", "float32", "int64"} <= {*when.passes_on}


def made(
    op: str, dtype: str, when: When = NEVER, message: str = "wrong", kind: str = "result"
) -> Failure:
    """A cause about one op on one dtype."""
    id, signature = f"op/{op}/{dtype}/test/0@2", f"{kind} {op} {dtype}"
    found = Failure(id, signature, "value", "op", (op,), (dtype,), message, "", "\n%0\n%1")
    return replace(found, when=when)


def faults(*causes: Failure) -> list[list[str]]:
    """The ops of the causes of each fault."""
    groups: dict[str, list[str]] = {}
    for one in in_faults(causes):
        groups.setdefault(one.same_as or one.signature, []).append(f"{one.ops[0]} {one.dtypes[0]}")
    return list(groups.values())


REPEATS = When(("its second operand repeats along axis 1",), also=("MUL",), neighbours=9)


def test_causes_of_one_condition_are_one_fault_whichever_the_op() -> None:
    of_mul = replace(REPEATS, also=("ADD",))
    causes = made("ADD", "int8", REPEATS), made("MUL", "int8", of_mul), made("MAX", "int8", of_mul)
    assert faults(*causes) == [["ADD int8", "MUL int8"], ["MAX int8"]]


def test_causes_without_a_condition_are_one_fault_on_other_dtypes_alone() -> None:
    anywhere = When(fails_on=("int16", "int32"), also=("MUL",), neighbours=9)
    cells = (("ADD", "int8"), ("ADD", "int16"), ("ADD", "int32"), ("MUL", "int8"))
    found = faults(*(made(op, dtype, anywhere) for op, dtype in cells))
    assert found == [["ADD int8", "ADD int16", "ADD int32"], ["MUL int8"]]


def test_a_cause_may_join_two_faults() -> None:
    first, second = When(fails_on=("int32",), neighbours=1), When(fails_on=("int32",), neighbours=1)
    third = When(neighbours=1)
    causes = made("ADD", "int8", first), made("ADD", "int16", second), made("ADD", "int32", third)
    assert faults(*causes) == [["ADD int8", "ADD int16", "ADD int32"]]


def test_causes_on_other_special_values_are_two_faults() -> None:
    nan = When(("its values are special, here nan",), fails_on=("float16",), neighbours=9)
    zero = When(("its values are special, here -0",), fails_on=("float32",), neighbours=9)
    assert len(faults(made("CMPNE", "float32", nan), made("CMPNE", "float16", zero))) == 2


def test_values_of_one_class_are_one_fault_and_ordinary_ones_are_all_classes() -> None:
    lowest = When((f"{SPECIAL}type min",), fails_on=("int16",), neighbours=9)
    largest = When((f"{SPECIAL}type max, ones",), fails_on=("int8",), neighbours=9)
    ordinary = When(fails_on=("int8",), neighbours=9)
    causes = made("SUB", "int8", lowest), made("SUB", "int16", largest)
    assert len(faults(*causes)) == 1
    assert len(faults(causes[0], made("SUB", "int32", ordinary))) == 1


def test_a_cause_that_fails_otherwise_on_a_dtype_is_that_of_its_op_there() -> None:
    otherwise = When(otherwise_on=("bool",), neighbours=9)
    refused = made("MAX", "bool", When(neighbours=9), kind="refused")
    assert len(faults(made("MAX", "float32", otherwise), refused)) == 1
    assert len(faults(made("MIN", "float32", otherwise), refused)) == 2


def test_what_depends_on_other_programs_is_told_by_its_ops() -> None:
    called = replace(made("SUB", "int8"), ops=("FUNCTION", "SUB"), when=When((CALLED,)))
    anew = replace(called, signature="result anew", ops=("SUB",), repeats=False, when=NEVER)
    assert len(faults(called, anew)) == 1
    assert len(faults(replace(called, ops=("FUNCTION", "ADD")), anew)) == 2


def test_one_demand_of_several_ops_is_one_fault() -> None:
    labels = {"PAD.c3": 1, "SHRINK.c3": 1, "PAD.c1": 2}
    causes = [replace(made(label, "void", kind="not-rejected"), label=label) for label in labels]
    assert len(faults(*causes)) == len({*labels.values()})


@pytest.mark.parametrize(
    ("second", "count"),
    [
        ("internal: Expected a number for constant, got (<PARAM>)", 1),
        ("internal: Another exception of this length", 2),
    ],
)
def test_refusals_of_one_message_are_one_fault(second: str, count: int) -> None:
    first = "internal: Expected a number for constant, got (<CONST>)"
    refused = (made("ADD", "int8", NEVER, first, "refused"),
               made("MUL", "int8", NEVER, second, "refused"))  # fmt: skip
    assert len(faults(*refused)) == count


def test_refusals_in_the_same_words_are_one_fault_where_an_op_is_in_both() -> None:
    first = made("LOAD", "int8", NEVER, "invalid: 2:1: expected int8[1], found int8[2]", "refused")
    second = replace(
        first, signature="refused anew", message="invalid: 3:9: expected int8[], found int8[2,2]"
    )
    assert len(faults(first, replace(second, ops=("LOAD", "PERMUTE")))) == 1
    assert len(faults(first, replace(second, ops=("PERMUTE",)))) == 2


def test_short_messages_tell_nothing() -> None:
    causes = [made(op, "int8", NEVER, "internal: <x>", "refused") for op in ("ADD", "MUL")]
    assert len(faults(*causes)) == 2


def test_a_backend_that_refuses_is_asked_about_neighbours() -> None:
    class Refuses(Faulty):
        def _outcome(self, root: UOp, program: Program) -> Outcome:
            if any(map(self.wrong, root.toposort())):
                return Problem(ProblemKind.INTERNAL, f"Expected a number, got {root}")
            return interpret(program)

    judge = Judge(Local(Refuses(lambda u: u.op is Op.CONST and is_number(u))), STRICT)
    root = UOp(Op.ADD, param(0, (3,), I32), const(5, I32))
    case = Case(CaseId("op", "ADD", "int32", "test", 0), root, (Batch({0: numbers(3)}),))
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    found = find_cause(judge, Failing(case, verdict.failure))
    assert found.kind == "refused"
    assert found.when.neighbours > 0

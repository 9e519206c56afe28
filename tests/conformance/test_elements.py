"""Elements in words and histograms of errors, by sets written by hand."""

from __future__ import annotations

import numpy as np

from uop.conformance.judging.elements import Element, Errors, errors_of, inputs_at, wrong_elements
from uop.conformance.judging.verdict import Status, verdict_of
from uop.conformance.protocol.types import Outputs
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.values import Value
from uop.spec.args import PermuteArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

ULP = 2.0**-23
"""The step of float32 from 1 on."""


def steps(*counts: int) -> np.ndarray:
    """1 and that many steps of float32."""
    return np.array([1 + n * ULP for n in counts], np.float32)


def case(n: int) -> Case:
    data = {0: np.arange(n, dtype=np.float32)}
    root = UOp(Op.EXP2, param(0, (n,), dtypes.float32))
    return Case(CaseId("op", "EXP2", "float32", "hand", 0), root, (Batch(data),))


def around(n: int, below: int, above: int) -> Accepted:
    """About 1, that many steps to either side."""
    sets = Sets(steps(*[-below] * n), steps(*[above] * n))
    return Accepted(dtypes.float32, Value(steps(*[0] * n)), sets)


def errors(accepted: Accepted, output: np.ndarray) -> Errors | None:
    return errors_of(case(len(output)), [(accepted,)], [(output,)])


def test_each_part_of_the_allowance_is_counted_up_to_its_end() -> None:
    found = errors(around(11, 0, 16), steps(0, 0, 1, 2, 3, 4, 8, 14, 15, 16, 17))
    assert found is not None
    # The parts end at 2, 4, 6 ... 16 steps.
    assert found.histogram == (2, 2, 2, 0, 1, 0, 0, 1, 2, 1)


def test_the_allowance_is_that_of_the_side() -> None:
    # Below 1 the steps are half as long: 8 of them down, 16 up.
    down = np.array([1 - 8 * ULP / 2], np.float32)
    found = errors(around(1, 4, 16), down)
    assert found is not None
    assert found.histogram[8] == 1


def test_the_largest_error_is_told_with_its_input() -> None:
    found = errors(around(3, 0, 16), steps(1, 5, 2))
    assert found is not None
    expected = Element("output 0[1]", ("0x1p+0",), "0x1.00000ap+0", "0x1p+0 to 0x1.00002p+0")
    assert (found.ulp, found.largest) == (5.0, expected)


def test_where_only_the_reference_is_accepted_and_given_there_are_no_errors() -> None:
    assert errors(Accepted(dtypes.float32, Value(steps(0, 3))), steps(0, 3)) is None


def test_elements_without_a_value_or_distance_are_not_counted() -> None:
    accepted = around(2, 0, 4)
    found = errors(accepted, np.array([np.nan, 1.0], np.float32))
    assert found is not None
    assert (sum(found.histogram), found.largest) == (1, None)
    assert errors(around(0, 0, 4), steps()) is None


def test_wrong_elements_are_told_the_first_few() -> None:
    output = steps(*[9] * 6)
    found = wrong_elements(case(6), 0, (around(6, 0, 4),), (output,))
    assert [element.place for element in found] == [f"output 0[{k}]" for k in range(4)]
    assert found[2].inputs == ("0x1p+1",)
    assert wrong_elements(case(6), 0, (around(6, 0, 4),), (output[:3],)) == ()


def test_inputs_are_told_where_each_element_depends_on_one() -> None:
    a, b = param(0, (2, 1), dtypes.int32), param(1, (), dtypes.bool)
    batch = Batch({0: np.array([[3], [4]], np.int32), 1: np.array(True)})
    root = UOp(Op.WHERE, b, a, a)
    assert inputs_at(root, batch, 1) == ("true", "4", "4")
    moved = UOp(Op.PERMUTE, a, arg=PermuteArg((1, 0)))
    assert inputs_at(moved, batch, 1) == ()


def test_the_operands_of_one_op_are_told_in_its_order() -> None:
    x, y = (param(k, (2,), dtypes.int32) for k in range(2))
    batch = Batch({0: np.array([1, 2], np.int32), 1: np.array([3, 4], np.int32)})
    assert inputs_at(UOp(Op.SUB, y, x), batch, 1) == ("4", "2")
    first = Batch({0: batch.inputs[0]})
    assert inputs_at(UOp(Op.SUB, const(-7, dtypes.int32), x), first, 0) == ("-7", "1")
    nothing = UOp(Op.CMPLT, const(-0.0, dtypes.float32), const(1.0, dtypes.float32))
    assert inputs_at(nothing, Batch({}), 0) == ("-0x0p+0", "0x1p+0")
    assert inputs_at(UOp(Op.NEG, UOp(Op.SUB, y, x)), batch, 0) == ("1", "3")
    assert (
        inputs_at(UOp(Op.STACK, const(1, dtypes.int32), const(2, dtypes.int32)), Batch({}), 0) == ()
    )


def test_outputs_of_another_dtype_or_number_have_no_errors() -> None:
    """One output is outside its set, and another one is none of its dtype: that was no verdict."""
    accepted = (around(2, 0, 16), around(2, 0, 16))
    outside, other = steps(40, 0), np.zeros(2, np.float64)
    for outputs in ((outside, other), (outside,), (outside, other[:1].astype(np.float32))):
        assert errors_of(case(2), [accepted], [outputs]) is None
        both = UOp(Op.TUPLE, case(2).root, case(2).root)
        whole = Case(case(2).id, both, case(2).batches)
        verdict = verdict_of(whole, [accepted], Outputs((tuple(outputs),)))
        assert verdict.status is Status.FAILED

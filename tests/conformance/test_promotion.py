"""Integer promotion: a backend that computes narrow integers in 32 bits has one fault."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Program
from uop.conformance.report.model import PROMOTED, Failure, When
from uop.conformance.run.causes import in_faults
from uop.conformance.shrink.explain import Failing, explain
from uop.conformance.shrink.promotion import unpromoted
from uop.conformance.shrink.reduce import Candidate
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.interpreter.inputs import Inputs
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import ConstArg, DTypeArg, ParamArg
from uop.spec.dtype import DType, dtypes
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp, const, param

MEANING: dict[Op, Callable[..., Array]] = {
    Op.PARAM: lambda *_: None,
    Op.CONST: lambda *_: None,
    Op.STACK: lambda *_: None,
    Op.TUPLE: lambda *_: None,
    Op.CAST: lambda a: a,
    Op.RESHAPE: lambda a, _: a.reshape(3, 1),
    Op.ADD: lambda a, b: a + b,
    Op.MUL: lambda a, b: a * b,
    Op.SHR: lambda a, b: a >> b,
    Op.CMPLT: lambda a, b: a < b,
}


OTHERS = (dtypes.bool, dtypes.index, dtypes.void)


def narrowed(a: Array, dtype: DType) -> Array:
    """The lowest bits of integers, as a value of a dtype."""
    low = a & (1 << dtype.bits) - 1
    return low - (low > dtype.max) * (1 << dtype.bits)


class Promoting(InterpreterBackend):
    """Computes what integers give without an end, and narrows to 32 bits or what a CAST says."""

    narrowest = 32

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._outcome(p) for p in programs]

    def _outcome(self, p: Program) -> Outcome:
        root = parse(p.text)
        for u in root.toposort():
            if u.op not in MEANING or not (u.dtype.is_int or u.dtype in OTHERS):
                return interpret(p)
        values = root.src if root.op is Op.TUPLE else (root,)
        return Outputs(tuple(tuple(self._result(u, b) for u in values) for b in p.batches))

    def _result(self, u: UOp, inputs: Inputs) -> Array:
        value = self.value(u, inputs)
        whole = value if u.dtype is dtypes.bool else narrowed(value, u.dtype)
        return np.asarray(whole).astype(np_dtype(u.dtype))

    def value(self, u: UOp, inputs: Inputs) -> Array:
        """The integers of a node, as Python has them."""
        if isinstance(u.arg, ParamArg):
            return np.asarray(inputs[u.arg.slot]).astype(object)
        if isinstance(u.arg, ConstArg):
            return np.asarray(u.arg.value, object)
        if u.op is Op.STACK:
            return np.zeros(0)
        found = MEANING[u.op](*(self.value(s, inputs) for s in u.src))
        narrows = u.op is Op.CAST or self.narrowest <= u.dtype.bits
        return narrowed(found, u.dtype) if narrows and u.dtype is not dtypes.bool else found


class Overlooking(Promoting):
    """Has a rule that overlooks overflow, on integers of any width."""

    narrowest = 128


def sum_of(dtype: DType) -> UOp:
    return UOp(Op.ADD, param(0, (3,), dtype), param(1, (3,), dtype))


def half(u: UOp) -> UOp:
    return UOp(Op.SHR, u, const(1, u.dtype))


def failing(backend: InterpreterBackend, root: UOp, dtype: DType) -> tuple[Judge, Failing]:
    judge = Judge(Local(backend), STRICT)
    low, high = int(dtype.min), int(dtype.max)
    rows = [high - 9, low + 7, 5], [high - 2, low + 4, 11]
    batch = Batch({k: np.array(row, np_dtype(dtype)) for k, row in enumerate(rows)})
    case = Case(CaseId("op", "ADD", "int8", "test", 0), root, (batch,))
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    return judge, Failing(case, verdict.failure)


def cause(backend: InterpreterBackend, dtype: DType = dtypes.int8) -> Failure:
    """The cause that (x + y) >> 1 is wrong."""
    return find_cause(*failing(backend, half(sum_of(dtype)), dtype))


def never(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
    """A probe that runs nothing."""
    assert not candidates
    return []


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16])
def test_a_sum_that_is_not_narrowed(dtype: DType) -> None:
    found = cause(Promoting(), dtype)
    assert found.when.as_if == PROMOTED
    assert found.when.text.startswith(f"as if {PROMOTED}; ")


def test_what_is_wrong_on_wide_integers_too_is_no_promotion() -> None:
    assert cause(Overlooking()).when.as_if == ""


class Narrow(Overlooking):
    """The same, of a backend without wide integers."""

    def hello(self) -> Hello:
        return replace(super().hello(), dtypes=frozenset({"int8", "uint8", "bool"}))


def test_where_no_wide_integer_passes_nothing_shows_that_it_is_promotion() -> None:
    assert cause(Narrow()).when.as_if == ""


def test_another_program_is_explained_without_a_run() -> None:
    known = cause(Promoting())
    x, y = (param(k, (3,), dtypes.int16) for k in range(2))
    product = UOp(Op.CMPLT, UOp(Op.MUL, x, y), x)
    found = explain(failing(Promoting(), product, dtypes.int16)[1], [known], never)
    assert found.cause == 0
    assert not found.is_exact
    moved = UOp(Op.RESHAPE, sum_of(dtypes.int8), UOp(Op.STACK, *map(_index, (3, 1))))
    wide = UOp(Op.CAST, moved, arg=DTypeArg(dtypes.int32))
    assert explain(failing(Promoting(), wide, dtypes.int8)[1], [known], never).is_exact


def _index(n: int) -> UOp:
    return const(n, dtypes.index)


def test_an_output_that_is_wrong_in_another_way_is_left() -> None:
    class AlsoWrong(Promoting):
        def value(self, u: UOp, inputs: Inputs) -> Array:
            return super().value(u, inputs) + (u.op is Op.MUL)

    known = cause(Promoting())
    x, y = (param(k, (3,), dtypes.int8) for k in range(2))
    both = UOp(Op.TUPLE, half(UOp(Op.ADD, x, y)), UOp(Op.MUL, x, y))
    one = failing(AlsoWrong(), both, dtypes.int8)[1]
    assert one.failure.wrong == (0, 1)

    def fails(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        return [one.failure for _ in candidates]

    found = explain(one, [known], fails)
    assert (found.cause, found.left) == (None, (1,))


def test_a_nan_that_is_right_in_both_ways_is_not_explained() -> None:
    one = failing(Promoting(), half(sum_of(dtypes.int8)), dtypes.int8)[1]
    assert one.start is not None
    nan = UOp(Op.NEG, param(2, (3,), dtypes.float32))
    inputs = {**one.start.inputs, 2: np.full(3, np.nan, np.float32)}
    both = Candidate(UOp(Op.TUPLE, one.start.root, nan), inputs)
    assert unpromoted(both, replace(one.failure, wrong=(0, 1))) == (1,)


def test_causes_that_promotion_gives_are_one_fault() -> None:
    known = cause(Promoting())
    other = replace(known, signature="result MUL int16", ops=("MUL",), dtypes=("int16",))
    assert [one.same_as for one in in_faults([known, other])].count("") == 1
    unlike = replace(other, when=When(neighbours=3))
    assert [one.same_as for one in in_faults([known, unlike])].count("") == 2

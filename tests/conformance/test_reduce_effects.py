"""Shrinking programs with effects, and those that an error is about."""

from collections.abc import Callable

import numpy as np
import pytest
from shrinking import I32, Backwards, Miscompiling, OneByOne, T, elements, find

from uop.conformance.backends.interpreter import interpret
from uop.conformance.judging.judge import Judge
from uop.conformance.protocol.types import Outcome, Problem, ProblemKind, Program
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.reduce import is_computing
from uop.conformance.shrink.repro import explained_by, find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.spec.args import BufferArg, FlipArg, PermuteArg
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, dims, param


def test_effects_that_a_fault_does_not_need_are_dropped() -> None:
    """A STORE through a PERMUTE is wrong; the STOREs before it and after it are not."""
    buffers = [UOp(Op.BUFFER, dims((4, 4)), arg=BufferArg(k, I32)) for k in range(1, 5)]
    t = UOp(Op.SHRINK, T, dims((0, 1)), dims((4, 4)))
    stores: list[UOp] = []
    for k, buffer in enumerate(buffers):
        location = UOp(Op.AFTER, buffer, *stores[-1:]) if stores else buffer
        if k == 2:
            location = UOp(Op.PERMUTE, location, arg=PermuteArg((1, 0)))
        stores.append(UOp(Op.STORE, location, t))
    finding = find(UOp(Op.SINK, stores[-1]), Backwards(Op.PERMUTE), slots=(0,))
    assert set(finding.ops) == {"PERMUTE", "STORE"}, finding.text


def undone(u: UOp) -> UOp:
    """A STORE behind another one to the same memory does not happen."""
    return u.src[0].src[1] if u.op is Op.STORE and u.src[0].op is Op.AFTER else u


def there_and_back(u: UOp) -> UOp:
    return UOp(Op.RESHAPE, UOp(Op.RESHAPE, u, dims((24,))), dims((4, 6)))


def stored_twice(first: UOp, second: Callable[[UOp], UOp]) -> UOp:
    """The effect of two STOREs in order to one buffer."""
    buffer = UOp(Op.BUFFER, dims((4, 6)), arg=BufferArg(5, I32))
    after = UOp(Op.AFTER, buffer, UOp(Op.STORE, there_and_back(buffer), first))
    return UOp(Op.STORE, after, second(after))


@pytest.mark.parametrize(
    ("root", "slots"),
    [
        (UOp(Op.SINK, stored_twice(T, lambda u: UOp(Op.FLIP, u, arg=FlipArg((True, False))))), [0]),
        (
            UOp(
                Op.AFTER,
                UOp(Op.BUFFER, dims((4, 6)), arg=BufferArg(5, I32)),
                stored_twice(T, lambda u: UOp(Op.BUFFER, dims((4, 6)), arg=BufferArg(1, I32))),
            ),
            [0, 1, 5],
        ),
    ],
    ids=["flipped", "from memory"],
)
def test_a_fault_of_two_stores_ends_as_these_on_inputs(root: UOp, slots: list[int]) -> None:
    finding = find(root, Miscompiling(undone), slots)
    (case,) = parse_file(finding.text).cases
    assert case.root is not None
    ops = [u.op for u in case.root.toposort() if is_computing(u)]
    assert (ops, case.root.op) == ([Op.STORE, Op.AFTER, Op.STORE], Op.SINK), finding.text
    assert elements(finding) <= 4


class Refusing(OneByOne):
    """Refuses a NEG where an input of any batch holds a 3."""

    def _run(self, program: Program) -> Outcome:
        every = (a for batch in program.batches for a in batch.values())
        if "NEG" in program.text and any((a == 3).any() for a in every):
            return Problem(ProblemKind.INTERNAL, "boom")
        return interpret(program)


def test_an_error_is_charged_to_the_batch_that_fails_alone() -> None:
    x, y = param(0, (4,), I32), param(1, (4,), I32)
    first, second = (
        {slot: np.arange(k, k + 4, dtype=np.int32) for slot in (0, 1)} for k in (10, 1)
    )
    judge = Judge(Local(Refusing()), STRICT)
    id = CaseId("graph", "MIXED", "int32", "test", 0)
    root = UOp(Op.MUL, UOp(Op.NEG, x), UOp(Op.ADD, x, y))
    case = Case(id, root, (Batch(first), Batch(second)))
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    cause = find_cause(judge, Failing(case, verdict.failure))
    assert (cause.ops, elements_of_inputs(cause.text)) == (("NEG",), [3])
    assert explained_by(judge, Failing(case, verdict.failure), [cause], {}).cause == 0


def elements_of_inputs(text: str) -> list[int]:
    (case,) = parse_file(text).cases
    return [int(e) for a in case.inputs.values() for e in np.array(a.bits).reshape(-1)]

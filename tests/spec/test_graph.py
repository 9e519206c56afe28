"""What kind a program is."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import I32, argument, int32, kernel_param, store

from uop.compiler.pipeline import compile
from uop.interpreter.evaluate import evaluate
from uop.spec.graph import ProgramKind, kind_of, written
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

HERE = argument(0, 4)
BODY = UOp(Op.SINK, store(kernel_param(0, 4), 1, int32(7)))
LISTED = UOp(Op.LINEAR, *BODY.toposort()[:-1])
CALL = UOp(Op.CALL, BODY, HERE)
LEFT = UOp(Op.AFTER, HERE, CALL)
SUM = UOp(Op.ADD, param(1, (4,), I32), const(1, I32))
KINDS = {
    ProgramKind.TENSOR: [SUM, UOp(Op.SINK, UOp(Op.STORE, argument(2, 4), SUM)), UOp(Op.SINK)],
    ProgramKind.KERNEL: [
        UOp(Op.SINK, CALL),
        UOp(Op.SINK, UOp(Op.GROUP, CALL)),
        UOp(Op.SINK, LEFT),
        UOp(Op.SINK, UOp(Op.CALL, BODY, LEFT)),
    ],
    ProgramKind.LINEAR: [UOp(Op.SINK, UOp(Op.CALL, LISTED, HERE))],
    ProgramKind.MIXED: [
        LEFT,
        UOp(Op.NEG, LEFT),
        UOp(Op.LOAD, LEFT),
        UOp(Op.SINK, CALL, UOp(Op.STORE, argument(2, 4), SUM)),
        UOp(Op.SINK, UOp(Op.STORE, argument(2, 4), LEFT)),
        CALL,
        UOp(Op.SINK, UOp(Op.CALL, BODY, param(0, (4,), I32))),
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_is_of_one_kind(kind: ProgramKind) -> None:
    assert [kind_of(root) for root in KINDS[kind]] == [kind] * len(KINDS[kind])


@pytest.mark.parametrize("root", [*KINDS[ProgramKind.KERNEL], *KINDS[ProgramKind.LINEAR]])
def test_kernels_run_however_they_are_grouped(root: UOp) -> None:
    inputs = {0: np.zeros(4, np.int32)}
    result = evaluate(root, inputs)
    assert isinstance(result, dict)
    assert result[0].tolist() == [0, 7, 0, 0]
    assert written(root) == [HERE]
    assert compile(root).source

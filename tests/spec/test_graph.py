"""What kind a program is; walks, and what is kept about a root while it lives."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from kernels import I32, argument, int32, kernel_param, store

from uop.compiler.pipeline import compile
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.spec.dtype import dtypes
from uop.spec.graph import ProgramKind, kept_with_root, kind_of, toposort, written
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
SOURCES = {"d": "bc", "c": "ab", "b": "a", "a": ""}


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


def test_sources_come_first_and_a_first_place_is_kept() -> None:
    assert toposort(["d"], lambda n: SOURCES[n]) == ["a", "b", "c", "d"]
    assert toposort(["c", "d", "c"], lambda n: SOURCES[n]) == ["a", "b", "c", "d"]


def test_what_is_kept_is_found_once_and_goes_with_its_root() -> None:
    asked = []

    @kept_with_root
    def slot(u: UOp) -> int:
        asked.append(u.dtype)
        return 7

    root = param(90, (3,), dtypes.int16)
    assert slot(root) == slot(root) == 7
    assert asked == [dtypes.int16]


def test_a_root_that_was_evaluated_is_freed() -> None:
    a = param(91, (3,), dtypes.int32)
    roots = [a, UOp(Op.MUL, UOp(Op.ADD, a, const(5, dtypes.int32)), a), UOp(Op.TUPLE, a)]
    roots += [UOp(Op.MIN, a, const(-3, dtypes.int32))]
    gone = [weakref.ref(root) for root in roots]
    for root in roots:
        evaluate(root, {91: np.arange(3, dtype=np.int32)})
        accept(root, {91: np.arange(3, dtype=np.int32)})
    del a, root, roots
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


def test_a_second_evaluation_has_its_own_inputs() -> None:
    a = param(0, (3,), dtypes.int32)
    root = UOp(Op.ADD, a, a)
    for start in (0, 5):
        data = np.arange(start, start + 3, dtype=np.int32)
        np.testing.assert_array_equal(np.asarray(evaluate(root, {0: data})), 2 * data)


@pytest.mark.parametrize("counts", [dtypes.int32, dtypes.uint8])
@pytest.mark.parametrize("op", [Op.SHL, Op.SHR])
def test_counts_outside_the_dtype_are_unspecified_and_no_others(op: Op, counts: object) -> None:
    a, b = param(0, (4,), dtypes.int32), param(1, (4,), counts)  # type: ignore[arg-type]
    storage = np.int32 if counts is dtypes.int32 else np.uint8
    left, inside = np.full(4, -7, np.int32), np.array([0, 1, 30, 31], storage)
    root = UOp(op, a, b)
    value = evaluate_full(root, {0: left, 1: inside})
    assert value.unspecified is None  # type: ignore[union-attr]
    want = [(-7 << int(n)) if op is Op.SHL else (-7 >> int(n)) for n in inside]
    wrapped = [(w + 2**31) % 2**32 - 2**31 for w in want]
    assert value.data.tolist() == wrapped  # type: ignore[union-attr]
    outside = np.array([0, 32, 200, 31]).astype(storage)
    value = evaluate_full(root, {0: left, 1: outside})
    assert value.unspecified.tolist() == [False, True, True, False]  # type: ignore[union-attr]

"""Validity: the values and the mask together are the tensor with its INVALID elements."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Inputs, graphs
from hypothesis import HealthCheck, given, reject, settings

from uop.compiler.validity import Validity
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.values import Value
from uop.spec.args import DTypeArg, PadArg, PadFill, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param


def run(root: UOp, inputs: Inputs) -> Value:
    result = evaluate_full(root, {s: a for s, a in inputs.items() if s in slots_of(root)})
    assert isinstance(result, Value)
    return result


def agree(root: UOp, inputs: Inputs) -> None:
    """The mask is false exactly on INVALID elements; elsewhere the values are the same."""
    expected = run(root, inputs)
    split = Validity().split(root)
    assert all(u.op is not Op.PAD or u.arg == PadArg(PadFill.ZERO) for u in split.value.toposort())
    value = run(split.value, inputs)
    assert value.invalid is None
    absent = np.zeros(root.shape, np.bool_) if expected.invalid is None else expected.invalid
    found = np.zeros(root.shape, np.bool_)
    open_mask = np.zeros(root.shape, np.bool_)
    if split.mask is not None:
        assert (split.mask.dtype, split.mask.shape) == (dtypes.bool, root.shape)
        mask = run(split.mask, inputs)
        assert mask.invalid is None
        found = ~mask.data
        open_mask = open_mask if mask.unspecified is None else mask.unspecified
    np.testing.assert_array_equal(found[~open_mask], absent[~open_mask])
    promised = ~absent if expected.unspecified is None else ~absent & ~expected.unspecified
    given, wanted = value.data[promised], expected.data[promised]
    # A NaN made by arithmetic has open bits; all else is the same work on the same operands.
    both_nan = (given != given) & (wanted != wanted)
    assert given[~both_nan].tobytes() == wanted[~both_nan].tobytes()


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(graphs())
def test_values_and_mask_are_the_tensor(program: tuple[UOp, Inputs]) -> None:
    root, inputs = program
    try:
        for value in root.src if root.op is Op.TUPLE else (root,):
            agree(value, inputs)
    except UndefinedError:
        reject()


X = param(0, (4,), dtypes.uint8)
PADDED = UOp(Op.PAD, X, dims((1,)), dims((8,)))
INPUT: Inputs = {0: np.array([5, 6, 7, 2], np.uint8)}
ABSENT = np.array([1, 0, 0, 0, 0, 1, 1, 1], np.bool_)


@pytest.mark.parametrize(
    "root",
    [
        PADDED,
        UOp(Op.ADD, PADDED, const(1, dtypes.uint8)),
        UOp(Op.BITCAST, PADDED, arg=DTypeArg(dtypes.uint32)),
        UOp(Op.BITCAST, UOp(Op.BITCAST, PADDED, arg=DTypeArg(dtypes.uint16)),
            arg=DTypeArg(dtypes.int8)),
        UOp(Op.PAD, PADDED, dims((1,)), dims((10,)), arg=PadArg(PadFill.ZERO)),
        UOp(Op.INDEX, X, UOp(Op.MOD, PADDED, const(4, dtypes.uint8))),
        UOp(Op.INDEX, PADDED, X),
        UOp(Op.STACK, PADDED, UOp(Op.ADD, PADDED, PADDED)),
        UOp(Op.REDUCE, UOp(Op.MAX, PADDED, PADDED), arg=ReduceArg(Op.MUL, (0,))),
        UOp(Op.CONTIGUOUS, UOp(Op.LOAD, PADDED)),
        UOp(Op.LOAD, PADDED, PADDED, UOp(Op.CMPNE, PADDED, const(6, dtypes.uint8))),
        # Of an absent divisor the zero is left: the quotient is no gate.
        UOp(Op.LOAD, PADDED, PADDED,
            UOp(Op.CMPNE, UOp(Op.IDIV, PADDED, PADDED), const(1, dtypes.uint8))),
        UOp(Op.WHERE, UOp(Op.CMPLT, PADDED, const(6, dtypes.uint8)), PADDED,
            const(3, dtypes.uint8)),
        UOp(Op.WHERE, UOp(Op.CMPLT, const(1, dtypes.uint8), const(6, dtypes.uint8)), PADDED,
            const(3, dtypes.uint8)),
    ],
    ids=lambda u: u.op.name,
)  # fmt: skip
def test_each_rule_where_elements_are_absent(root: UOp) -> None:
    agree(root, INPUT)


def test_what_is_never_absent_has_no_mask() -> None:
    assert Validity().split(UOp(Op.ADD, X, X)).mask is None
    assert Validity().split(UOp(Op.REDUCE, PADDED, arg=ReduceArg(Op.ADD, (0,)))).mask is None


def test_the_oracle_itself() -> None:
    absent = run(PADDED, INPUT).invalid
    assert absent is not None
    np.testing.assert_array_equal(absent, ABSENT)

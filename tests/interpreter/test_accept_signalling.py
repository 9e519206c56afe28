"""Signalling NaNs: a copy keeps the bits or makes them quiet; a power of one is 1 or NaN."""

from __future__ import annotations

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import Array, from_bits, np_dtype
from uop.spec.args import DTypeArg, FlipArg, PadArg, PadFill, ReduceArg
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

F32, I32 = dtypes.float32, dtypes.int32
KEPT = Profile(snan="kept")
LOUD, QUIET, OTHER = 0x7F801234, 0x7FC01234, 0x7FC00000
MINUS = 0x80000000
LOUD_DTYPES = [d for d in FLOATS if d.format.has_inf]


def only(root: UOp, inputs: dict[int, Array], profile: Profile = STRICT) -> Accepted:
    (accepted,) = accept(root, inputs, profile)
    return accepted


def bits(*patterns: int, dtype: DType = F32) -> Array:
    return from_bits(np.asarray(patterns, f"u{dtype.itemsize}"), dtype)


X = param(0, (1,), F32)
COPIES = [
    X,
    UOp(Op.FLIP, X, arg=FlipArg((True,))),
    UOp(Op.EXPAND, X, dims((1,))),
    UOp(Op.RESHAPE, X, dims((1, 1))),
    UOp(Op.PAD, X, dims((0,)), dims((1,)), arg=PadArg(PadFill.ZERO)),
    UOp(Op.SHRINK, X, dims((0,)), dims((1,))),
    UOp(Op.WHERE, UOp(Op.CMPNE, X, X), X, const(1.0, F32)),
    UOp(Op.CAST, X, arg=DTypeArg(F32)),
    UOp(Op.CONTIGUOUS, X),
    UOp(Op.STACK, UOp(Op.RESHAPE, X, dims(()))),
]


@pytest.mark.parametrize("root", COPIES, ids=lambda u: u.op.name)
def test_a_copy_keeps_a_signalling_nan_or_makes_it_quiet(root: UOp) -> None:
    for sign in (0, MINUS):
        inputs = {0: bits(LOUD | sign)}
        free, kept = only(root, inputs), only(root, inputs, KEPT)
        for pattern, expected in ((LOUD, (1, 1)), (QUIET, (1, 0)), (OTHER, (0, 0))):
            result = bits(pattern | sign).reshape(root.shape)
            assert (free.contains(result).all(), kept.contains(result).all()) == expected
        assert not free.contains(bits(QUIET | (sign ^ MINUS)).reshape(root.shape)).any()
        assert not free.contains(np.ones(root.shape, np.float32)).any()


def test_a_quiet_nan_is_copied_bit_by_bit() -> None:
    root = UOp(Op.FLIP, X, arg=FlipArg((True,)))
    accepted = only(root, {0: bits(QUIET)})
    assert accepted.contains(bits(QUIET)).all()
    assert not accepted.contains(bits(LOUD)).any()
    assert not accepted.contains(bits(OTHER)).any()


@pytest.mark.parametrize("dtype", LOUD_DTYPES, ids=lambda d: d.name)
def test_the_quiet_form_of_each_dtype(dtype: DType) -> None:
    form = dtype.format
    loud = form.exponent_mask | 1
    root = UOp(Op.FLIP, param(0, (1,), dtype), arg=FlipArg((True,)))
    accepted = only(root, {0: bits(loud, dtype=dtype)})
    quiet = loud | 1 << form.fraction_bits - 1
    for pattern in range(form.exponent_mask - 3, form.exponent_mask + 4):
        expected = pattern in (loud, quiet)
        assert accepted.contains(bits(pattern, dtype=dtype)).all() == expected, hex(pattern)
    assert accepted.contains(bits(quiet, dtype=dtype)).all()


def as_ints(u: UOp, dtype: DType = I32) -> UOp:
    return UOp(Op.BITCAST, u, arg=DTypeArg(dtype))


def test_the_bits_of_an_input_are_exact_and_those_of_a_copy_are_one_of_two() -> None:
    inputs = {0: bits(LOUD)}
    assert only(as_ints(X), inputs).describe(0) == str(LOUD)
    copy = UOp(Op.FLIP, X, arg=FlipArg((True,)))
    assert only(as_ints(copy), inputs).describe(0) == f"{LOUD} or {QUIET}"
    assert only(as_ints(copy), inputs, KEPT).describe(0) == str(LOUD)
    assert only(as_ints(copy), {0: bits(QUIET)}).describe(0) == str(QUIET)
    small = only(as_ints(copy, dtypes.uint8), inputs)
    assert [small.describe(k) for k in range(4)] == ["52", "18", "128 or 192", "127"]
    added = only(UOp(Op.ADD, as_ints(copy), const(1, I32)), inputs)
    assert added.describe(0) == f"{LOUD + 1} or {QUIET + 1}"


def test_a_float_made_of_bits_is_exact() -> None:
    made = as_ints(param(0, (1,), I32), F32)
    loud = np.asarray([LOUD], np.int32)
    assert not only(made, {0: loud}).contains(bits(QUIET)).any()
    assert only(UOp(Op.FLIP, made, arg=FlipArg((True,))), {0: loud}).contains(bits(QUIET)).all()


ONE = const(1.0, F32)
ZERO = const(0.0, F32)


@pytest.mark.parametrize(
    ("base", "exponent"), [(ONE, X), (X, ZERO), (X, const(-0.0, F32))], ids=("1^y", "x^0", "x^-0")
)
def test_a_power_that_is_one_for_a_quiet_nan_is_one_or_nan_for_a_signalling_one(
    base: UOp, exponent: UOp
) -> None:
    """IEEE 754-2019, 9.2.1: pow(x, 0) and pow(1, y) are 1, even for a quiet NaN."""
    root = UOp(Op.POW, base, exponent)
    assert only(root, {0: bits(QUIET)}).describe(0) == "0x1p+0"
    assert only(root, {0: bits(LOUD)}).describe(0) == "0x1p+0 or NaN"
    flipped = UOp(Op.NEG, X)
    turned = UOp(Op.POW, *(flipped if u is X else u for u in (base, exponent)))
    assert only(turned, {0: bits(LOUD)}).describe(0) == "0x1p+0 or NaN"
    other = UOp(Op.POW, X, const(2.0, F32))
    assert only(other, {0: bits(LOUD)}).describe(0) == "NaN"


@pytest.mark.parametrize("op", [Op.MAX, Op.MIN], ids=lambda op: op.name)
def test_a_signalling_nan_beside_a_number_may_be_nan_whatever_the_knob(op: Op) -> None:
    """maxNum of IEEE 754-2008 and fmax of C give NaN for one, also where a quiet one is dropped."""
    numbers = Profile(max_nan="number")
    root = UOp(op, X, ONE)
    if op is Op.MAX:
        assert only(root, {0: bits(LOUD)}, numbers).describe(0) == "0x1p+0 or NaN"
        assert only(root, {0: bits(QUIET)}, numbers).describe(0) == "0x1p+0"
    pair = param(0, (2,), F32)
    folded = UOp(Op.REDUCE, pair, arg=ReduceArg(op, (0,)))
    values = np.concatenate([bits(LOUD), np.ones(1, np.float32)])
    start = "-inf or 0x1p+0" if op is Op.MAX else "0x1p+0 or inf"
    if op is Op.MAX:
        assert only(folded, {0: values}, numbers).describe(0) == f"{start} or NaN"
    assert only(folded, {0: values}).describe(0) == f"{start} or NaN"


@pytest.mark.parametrize("dtype", LOUD_DTYPES, ids=lambda d: d.name)
def test_a_power_of_a_signalling_nan_may_be_one_in_each_dtype(dtype: DType) -> None:
    root = UOp(Op.POW, param(0, (1,), dtype), param(1, (1,), dtype))
    loud = bits(dtype.format.exponent_mask | 1, dtype=dtype)
    one, zero = np.ones(1, np_dtype(dtype)), np.zeros(1, np_dtype(dtype))
    for x, y in ((loud, zero), (one, loud)):
        assert only(root, {0: x, 1: y}).describe(0) == "0x1p+0 or NaN"

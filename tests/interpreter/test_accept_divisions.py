"""Accepted sets of divisions by what a profile says of them; the oracle is Python's integers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from uop.compiler.pipeline import lower
from uop.interpreter.accept import accept
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import DTypeArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

TRUNC = Profile(int_div="trunc")
DTYPES = (dtypes.int8, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.index)


def floored(a: int, b: int) -> tuple[int, int]:
    return a // b, a % b


def truncated(a: int, b: int) -> tuple[int, int]:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def pairs(dtype: DType) -> list[tuple[int, int]]:
    """Around zero, the ends, and whatever else; but for what a step of a decomposition leaves."""
    random = np.random.default_rng(5)
    drawn = random.integers(dtype.min, dtype.max, 40, np_dtype(dtype), endpoint=True).tolist()
    least = dtype.min + (dtype is dtypes.index)
    edges = [*range(max(-9, dtype.min), 10), least, least + 1, dtype.max, *drawn]
    found = [(a, b) for a, b in product(edges, edges) if b]
    return [(a, b) for a, b in found if abs(a) < dtype.max or abs(b) > 1]


@pytest.mark.parametrize("profile", [STRICT, TRUNC], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_integers_divide_as_the_profile_says_and_an_index_floors(
    dtype: DType, profile: Profile
) -> None:
    whole = pairs(dtype)
    x, y = (param(k, (len(whole),), dtype) for k in (0, 1))
    inputs = {k: np.array([pair[k] for pair in whole], np_dtype(dtype)) for k in (0, 1)}
    declared = truncated if profile is TRUNC and dtype is not dtypes.index else floored
    for ops, divide in (((Op.IDIV, Op.MOD), declared), ((Op.CDIV, Op.CMOD), truncated)):
        results = [divide(a, b) for a, b in whole]
        for k, op in enumerate(ops):
            expected = np.array([pair[k] for pair in results], np_dtype(dtype))
            root = UOp(op, x, y)
            assert_only(root, inputs, profile, expected)
            # What makes a CDIV of a floor, which the other form holds, makes another of a CDIV.
            if op in (Op.IDIV, Op.MOD):
                assert_only(lower(root, "rangeify"), inputs, profile, expected)


def assert_only(root: UOp, inputs: dict[int, Array], profile: Profile, expected: Array) -> None:
    (accepted,) = accept(root, inputs, profile)
    assert accepted.contains(expected).all()
    assert not accepted.contains(expected ^ 1).any()


def test_a_saturating_cast_of_integers_saturates_in_kernels() -> None:
    inputs = {0: np.array([1000, -7000, 448], np.int32)}
    root = UOp(Op.CAST, param(0, (3,), dtypes.int32), arg=DTypeArg(dtypes.fp8e4m3))
    expected = np.array([448, -448, 448]).astype(np_dtype(dtypes.fp8e4m3))
    for program in (root, lower(root, "rangeify")):
        (accepted,) = accept(program, inputs, Profile(fp8_saturate=True))
        assert accepted.contains(expected).all()
        assert not accepted.contains(-expected).any()


def test_a_quotient_may_be_the_bits_of_another_nan() -> None:
    """-225 / 2 is -112.5, whose floor and truncation are two NaNs as int16 read as float16."""
    x = param(0, (2,), dtypes.int16)
    quotient = UOp(Op.IDIV, x, const(2, dtypes.int16))
    inputs = {0: np.array([-225, 4], np.int16)}
    root = UOp(Op.BITCAST, quotient, arg=DTypeArg(dtypes.float16))
    down, up = (np.array([k, 2], np.int16).view(np.float16) for k in (-113, -112))
    for program in (root, lower(root, "rangeify")):
        for profile, right, wrong in ((STRICT, down, up), (TRUNC, up, down)):
            (accepted,) = accept(program, inputs, profile)
            assert accepted.contains(right).all()
            assert accepted.contains(wrong).tolist() == [False, True]


def test_a_remainder_that_may_be_negative_is_no_index() -> None:
    x = param(0, (2,), dtypes.int32)
    root = UOp(Op.INDEX, param(1, (4,), dtypes.int32), UOp(Op.MOD, x, const(4, dtypes.int32)))
    inputs = {0: np.array([3, -1], np.int32), 1: np.array([5, 6, 7, 8], np.int32)}
    (accepted,) = accept(root, inputs, STRICT)
    assert accepted.contains(np.array([8, 8], np.int32)).all()
    with pytest.raises(UndefinedError, match=r"INDEX\.u1"):
        accept(root, inputs, TRUNC)

"""Latitudes are data: the budgets are those of the table, a profile tells what it declares."""

from fractions import Fraction

import pytest

from uop.spec.dtype import FLOATS, dtypes
from uop.spec.latitude import DIV, EXP2, LOG2, POW, RECIP, SIN, SQRT, STRICT, Profile
from uop.spec.ops.names import Op

HALF = Fraction(1, 2)
TABLE = {
    # float16, bfloat16, float32, float64, fp8e4m3, fp8e5m2
    "RECIP": (RECIP, (1, 1, 5 * HALF, HALF, 1, 1)),
    "DIV": (DIV, (1, 1, 5 * HALF, HALF, 1, 1)),
    "EXP2": (EXP2, (2, 1, 3, 3, 1, 1)),
    "LOG2": (LOG2, (2, 1, 3, 3, 1, 1)),
    "SIN": (SIN, (2, 1, 4, 4, 1, 1)),
    "SQRT": (SQRT, (1, 1, 3, HALF, 1, 1)),
    "POW": (POW, (4, 1, 16, 16, 1, 1)),
}


@pytest.mark.parametrize("name", TABLE)
def test_budgets_are_those_of_the_table(name: str) -> None:
    latitude, budgets = TABLE[name]
    order = ("float16", "bfloat16", "float32", "float64", "fp8e4m3", "fp8e5m2")
    assert tuple(d.name for d in FLOATS) == order
    assert tuple(latitude.budget(d) for d in FLOATS) == budgets


def test_an_int_has_no_budget() -> None:
    with pytest.raises(KeyError, match="int32"):
        SIN.budget(dtypes.int32)


def test_a_profile_prints_only_what_it_declares() -> None:
    assert str(STRICT) == "strict"
    floats = frozenset({dtypes.float32, dtypes.float16})
    some = Profile(cmp_nan="ieee", contract=frozenset({Op.SUB, Op.ADD}), ftz=floats)
    assert str(some) == "cmp_nan=ieee contract=ADD,SUB ftz=float16,float32"
    others = Profile(decomposed=frozenset({Op.POW, Op.SQRT}), int_div="trunc", pad_fill="zero")
    assert others.declared() == {
        "decomposed": "POW,SQRT",
        "int_div": "trunc",
        "pad_fill": "zero",
    }

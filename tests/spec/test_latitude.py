"""Latitudes are data, and a profile reads back from its own text."""

from dataclasses import fields
from fractions import Fraction

import pytest

from uop.spec.dtype import FLOATS, dtypes
from uop.spec.latitude import (
    DIV,
    EXP2,
    KNOBS,
    LOG2,
    POW,
    RECIP,
    SIN,
    SQRT,
    STRICT,
    Profile,
    ProfileError,
    knob_values,
    parse_profile,
)
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


PROFILES = [
    STRICT,
    Profile(max_nan="number"),
    Profile(cmp_nan="ieee", contract=True, ftz=frozenset({dtypes.float32, dtypes.float16})),
    Profile(decomposed=frozenset({Op.POW, Op.SIN}), int_div="trunc", pad_fill="zero"),
]


@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_a_profile_reads_back_from_its_text(profile: Profile) -> None:
    assert parse_profile(str(profile)) == profile


def test_a_profile_prints_only_what_it_declares() -> None:
    assert str(STRICT) == "strict"
    assert str(PROFILES[2]) == "cmp_nan=ieee contract=true ftz=float16,float32"
    assert PROFILES[3].declared() == {
        "decomposed": "POW,SIN",
        "int_div": "trunc",
        "pad_fill": "zero",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fast", "expected knob=value"),
        ("contract=true contract=true", "each knob once"),
        ("speed=11", "no knob 'speed'"),
        ("contract=yes", "contract expects true or false, found 'yes'"),
        ("max_nan=sometimes", "max_nan expects either or propagate or number"),
        ("ftz=float33", "ftz expects names of float dtypes, separated by commas, found 'float33'"),
        ("ftz=float32,int32", "ftz expects names of float dtypes"),
        ("decomposed=SIN2", "decomposed expects names of ops"),
    ],
)
def test_bad_profile_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        parse_profile(text)


def test_every_field_of_a_profile_is_a_knob_that_is_told() -> None:
    assert list(KNOBS) == [f.name for f in fields(Profile)]
    assert knob_values("max_nan") == "either, propagate or number"
    assert knob_values("ftz") == "names of float dtypes, separated by commas"
    assert knob_values("decomposed") == "names of ops, separated by commas"
    assert knob_values("wmma") == "true or false"

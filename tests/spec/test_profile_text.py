"""A profile reads back from its own text, and text that names none is told."""

from dataclasses import fields

import pytest

from uop.spec.dtype import dtypes
from uop.spec.latitude import KNOBS, STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import ProfileError, knob_values, parse_profile

PROFILES = [
    STRICT,
    Profile(max_nan="number"),
    Profile(
        cmp_nan="ieee",
        contract=frozenset({Op.ADD}),
        ftz=frozenset({dtypes.float32, dtypes.float16}),
    ),
    Profile(decomposed=frozenset({Op.POW, Op.SQRT}), int_div="trunc", pad_fill="zero"),
]


@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_a_profile_reads_back_from_its_text(profile: Profile) -> None:
    assert parse_profile(str(profile)) == profile


def test_all_members_of_a_set_have_one_word() -> None:
    profile = parse_profile("contract=all ftz=all")
    assert profile.contract == {Op.ADD, Op.SUB, Op.MULACC}
    assert {d.name for d in profile.ftz} >= {"float16", "float32", "fp8e5m2"}
    assert str(profile).startswith("contract=all ftz=bfloat16,")
    assert parse_profile(str(profile)) == profile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "expected strict, or knob=value; found nothing"),
        ("fast", "expected knob=value"),
        ("contract=ADD contract=ADD", "each knob once"),
        ("speed=11", "no knob 'speed'"),
        ("wmma=yes", "wmma expects true or false; found 'yes'"),
        ("contract=MUL", "contract expects some of ADD, SUB, MULACC, .*; found 'MUL'"),
        ("max_nan=sometimes", "max_nan expects either, propagate or number; found"),
        (
            "ftz=float33",
            "ftz expects some of float16, .*, separated by commas, or all; found 'float33'",
        ),
        ("ftz=float32,int32", "ftz expects some of .*; found 'int32'"),
        ("decomposed=SIN2", "decomposed expects some of .*; found 'SIN2'"),
        # It has no decomposition, and nothing is wider than float64.
        ("decomposed=SQRT,PARAM", "decomposed expects some of NEG, SUB, .*; found 'PARAM'"),
        ("decomposed=SIN", "decomposed expects some of .*; found 'SIN'"),
        ("excess_precision=float64", "excess_precision expects some of .*; found 'float64'"),
    ],
)
def test_bad_profile_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        parse_profile(text)


def test_every_field_of_a_profile_is_a_knob_that_is_told() -> None:
    assert list(KNOBS) == [f.name for f in fields(Profile)]
    assert knob_values("max_nan") == "either, propagate or number"
    floats = "float16, bfloat16, float32, float64, fp8e4m3, fp8e5m2"
    assert knob_values("ftz") == f"some of {floats}, separated by commas, or all"
    assert "float64" not in knob_values("excess_precision")
    ops = "NEG, SUB, DIV, CMPGT, CMPGE, CMPLE, CMPEQ, NOT, SQRT, POW, MULACC"
    assert knob_values("decomposed") == f"some of {ops}, separated by commas, or all"
    assert knob_values("wmma") == "true or false"

"""`uop eval`: what it prints for values of each kind, and what it refuses."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("expression", "lines"),
    [
        ("u8(200) + u8(100)", ["44 : uint8", "accepted: 44"]),
        ("i8(-128) // -1", ["-128 : int8", "accepted: -128"]),
        ("max(nan, 1.0)", ["nan : float32", "accepted: 1.0 or nan"]),
        ("1.0 >= nan", ["false : bool", "accepted: false or true"]),
        ("[7, 8] // [2, 0]", ["[3, unspecified] : int32[2]", "accepted: 3, anything"]),
        ("f32(0.0) * -1", ["-0.0 : float32", "accepted: -0.0"]),
        ("reduce(max, [1, nan])", ["[nan] : float32[1]", "accepted: -inf, 1.0 or nan"]),
        ("pad([7], [1], [2])", ["[invalid, 7] : int32[2]", "accepted: anything, 7"]),
        ("pad([7], [1], [2], zero)", ["[0, 7] : int32[2]", "accepted: 0, 7"]),
        ("permute([[1, 2]], order=[1, 0])", ["[[1],", " [2]] : int32[2,1]", "accepted: 1, 2"]),
    ],
)
def test_value_dtype_and_accepted_set(uop: Any, expression: str, lines: list[str]) -> None:
    outcome = uop("eval", expression)
    assert outcome.code == 0
    assert outcome.out.splitlines() == lines


@pytest.mark.parametrize(
    ("profile", "accepted"),
    [
        ("strict", "1.0 or nan"),
        ("max_nan=number", "1.0"),
        ("max_nan=propagate", "nan"),
    ],
)
def test_a_profile_takes_a_choice_away(uop: Any, profile: str, accepted: str) -> None:
    outcome = uop("eval", "--profile", profile, "max(nan, 1.0)")
    assert outcome.out.splitlines() == ["nan : float32", f"accepted: {accepted}"]


def test_a_knob_that_does_not_exist_is_exit_2(uop: Any) -> None:
    outcome = uop("eval", "--profile", "nan=no", "1")
    assert (outcome.code, "no knob 'nan'" in outcome.err) == (2, True)


def test_the_words_of_a_shell_are_one_expression(uop: Any) -> None:
    assert uop("eval", "-1", "+", "3").out.splitlines()[0] == "2 : int32"


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("u8(300)", "1:4: 300 is outside uint8"),
        ("f32(1) + i32(1)", "ADD.c2"),
        ("open(1)", "1:1"),
        ("tuple(1, 2)", "TUPLE has no value"),
        ("param([2], slot=0, dtype=f32)", "INPUT.c3"),
    ],
)
def test_what_is_no_expression_is_exit_2(uop: Any, expression: str, said: str) -> None:
    outcome = uop("eval", expression)
    assert outcome.code == 2
    assert said in outcome.err
    assert "Traceback" not in outcome.err

"""`uop eval` and `uop explain` on text that is too long, too deep, misspelt or empty."""

from typing import Any

import pytest

from uop.spec.editions import parse
from uop.spec.errors import InvalidError, UnsupportedError

DIGITS = "9" * 5000

STRANGE = [
    (DIGITS, "1:1: a number has at most 3000 characters, found 5000"),
    (f"u8({DIGITS})", "1:4: a number has at most 3000 characters, found 5000"),
    (f"0x{'f' * 5000}", "1:1: a number has at most 3000 characters, found 5002"),
    (f"u8({'9' * 3000})", "1:4: " + "9" * 60 + "... is outside uint8"),
    ("1e99999", "1:1: an exponent has at most 4 digits, found 5"),
    ("1e-99999", "1:1: an exponent has at most 4 digits, found 5"),
    (f"0x1p{'9' * 500}", "1:1: an exponent has at most 5 digits, found 500"),
    ("", "1:1: expected a value, found the end"),
    ("  ", "1:3: expected a value, found the end"),
    ("(" * 10_000 + "1" + ")" * 10_000, "1:66: nested more than 64 deep"),
    ("[" * 10_000, "1:66: nested more than 64 deep"),
    ("-" * 10_000 + "1", "1:66: nested more than 64 deep"),
    ("NaNs", "'NaNs' is neither a dtype nor an op; near: nan"),
    ("f16(nan:0xffffffff)", "1:5: expected the bits of a NaN of float16"),
    ("nan:0x7fe0", "1:1: expected the bits of a NaN of float32"),
    ("int7(1)", "'int7' is neither a dtype nor an op; near: int8"),
    ("bitcast(1.0, foo)", "1:1: field 'dtype': expected a dtype, found foo"),
    ("x" * 10_000, "1:1: '" + "x" * 60 + "...' is neither"),
    ("\x00", "1:1: unexpected '\\x00'"),
    ("1_000", "1:2: expected the end, found '_000'"),
]


@pytest.mark.parametrize(("text", "said"), STRANGE, ids=lambda text: text[:20])
def test_an_expression_is_refused_in_one_short_message(uop: Any, text: str, said: str) -> None:
    outcome = uop("eval", text)
    assert outcome.code == 2
    assert said in outcome.err
    assert len(outcome.err) < 300
    assert outcome.out == ""


@pytest.mark.parametrize(("text", "said"), STRANGE, ids=lambda text: text[:20])
def test_a_value_of_an_op_is_refused_so_too(uop: Any, text: str, said: str) -> None:
    for option in ([], ["--dtype", "uint8"]):
        outcome = uop("explain", "ADD", text, "1", *option)
        assert outcome.code == 2, outcome.out
        assert outcome.err.startswith("error: ")
        assert len(outcome.err) < 400
    assert uop("explain", "ADD", "1", text).code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([""], "expected a name, found nothing"),
        ([" "], "expected a name, found nothing"),
        (["x" * 100_000], "nothing is called 'xxx"),
        (["ADD", "", "1"], "'': 1:1: expected a value"),
        (["ADD", "1", "1", "--dtype", ""], "no dtype ''"),
        (["ADD", "1", "1", "--dtype", "float32 "], "no dtype 'float32 '"),
        (["CAST", "1", "--to", "x" * 10_000], "no dtype 'xxx"),
        (["CAST", "1", "--to", "void"], "no dtype 'void'"),
    ],
)
def test_names_are_refused_in_short_messages(uop: Any, arguments: list[str], said: str) -> None:
    outcome = uop("explain", *arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert len(outcome.err) < 500


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e9999", "inf"),
        ("0x1p99999", "inf"),
        ("1e-9999", "0.0"),
        ("0." + "0" * 2000 + "1", "0.0"),
        ("f64(4.9e-324)", "5e-324"),
        ("nan", "nan"),
        ("-nan", "nan"),
        ("nan:0x7fc00001", "nan"),
    ],
)
def test_far_numbers_are_rounded(uop: Any, text: str, value: str) -> None:
    outcome = uop("eval", text)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(value)


def test_an_error_in_the_text_of_an_edition_has_its_place() -> None:
    head = "edition bestiary\n%0 = PARAM {slot=0, dtype=float32, size=4}\n"
    with pytest.raises(InvalidError) as caught:
        parse(head + "  %1 = VECTORIZE %0")
    assert (caught.value.label, caught.value.where) == ("VECTORIZE.elements", "line 3, column 3")
    with pytest.raises(InvalidError) as caught:
        parse(head + "%1 = VECTORIZE %0", path="a.uop")
    assert caught.value.where == "a.uop:3:1"
    with pytest.raises(
        UnsupportedError, match=r"^line 2, column 6: edition 2026-05 has no GETADDR"
    ):
        parse("edition 2026-05\n%0 = GETADDR")

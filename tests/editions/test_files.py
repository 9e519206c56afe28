"""`.uop` files whose programs are in the words of an edition."""

from __future__ import annotations

import numpy as np
import pytest

from uop.conformance.judging.storage import from_literal
from uop.interpreter.evaluate import evaluate
from uop.spec.dtype import dtypes
from uop.spec.editions import EDITIONS, print_program
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import parse_file, print_file
from uop.spec.uop import UOp, param

TWO = """\
; both are in the words of the bestiary
edition bestiary

case global
%0 = UNIQUE {id=0}
%1 = BUFFER %0 {size=2, dtype=int8}
%2 = NEG %1
input 0 = [1, -2]
expect 0 = [-1, 2]

case local
%0 = LUNIQUE {id=0}
%1 = BUFFER %0 {size=2, dtype=int8}
%2 = NEG %1
input 4294967296 = [3, 4]
expect 0 = [-3, -4]
"""


def test_every_case_is_read_in_the_edition() -> None:
    first, second = parse_file(TWO).cases
    for case in (first, second):
        assert case.root is not None
        found = evaluate(case.root, {k: from_literal(a) for k, a in case.inputs.items()})
        np.testing.assert_array_equal(found, from_literal(case.expect[0]))
    assert first.root is not second.root


def test_a_file_is_written_in_the_words_of_the_core() -> None:
    file = parse_file(TWO)
    text = print_file(file)
    assert "edition" not in text
    assert [case.root for case in parse_file(text).cases] == [case.root for case in file.cases]


def test_an_edition_that_is_asked_for_is_that_of_the_file() -> None:
    bare = TWO.replace("edition bestiary\n", "")
    asked = parse_file(bare, edition="bestiary").cases
    assert [c.root for c in asked] == [c.root for c in parse_file(TWO).cases]
    assert parse_file(TWO, edition="bestiary") == parse_file(TWO)
    message = "FILE:2:1: expected edition 2026-05, which was asked for, found bestiary"
    with pytest.raises(MalformedError, match=message):
        parse_file(TWO, "FILE", "2026-05")
    with pytest.raises(MalformedError, match="no edition 2026-5: expected one of"):
        parse_file(bare, edition="2026-5")


def test_a_program_to_be_rejected_is_in_the_words_of_the_core() -> None:
    text = "edition 2026-05\n%0 = BUFFER {size=2, dtype=int8}\ninvalid NEG.arity\n%1 = NEG %0, %0\n"
    with pytest.raises(MalformedError, match="4:1: expected no `invalid` in an edition"):
        parse_file(text)


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_an_edition_prints_is_a_file(edition: str) -> None:
    root = UOp(Op.NEG, UOp(Op.MUL, param(0, (3,), dtypes.float32), param(1, (3,), dtypes.float32)))
    (case,) = parse_file(print_program(root, edition)).cases
    assert case.root is root


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("edition 2026-13\n", "1:1: no edition 2026-13: expected one of 2026-05"),
        ("edition\n", "1:1: expected edition NAME"),
        ("edition 2026-05\nedition 2026-05\n", "2:1: expected the edition once"),
        ("%0 = CONST {value=1, dtype=int8}\nedition 2026-05\n", "2:1: expected the edition once"),
        ("case a\nedition 2026-05\n", "2:1: expected the edition once"),
        ("edition bestiary\n%0 = GRUMBLE\n", "2:6: unknown op 'GRUMBLE'"),
        ("edition bestiary\n; nothing\n", "no program"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, found: str) -> None:
    with pytest.raises(MalformedError, match=found):
        parse_file(text)


def test_a_condition_of_the_edition_is_named_with_its_line() -> None:
    text = 'edition bestiary\n\n%0 = DEVICE {device="A"}\n%1 = BUFFER %0, %0 {size=1, dtype=int8}\n'
    with pytest.raises(InvalidError, match=r"BUFFER\.unique(.|\n)*line 4, column 1"):
        parse_file(text)

"""A line as the printer writes it is read at once; it means what it means word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from uop.spec.errors import UopError
from uop.spec.text.literal import Line
from uop.spec.text.printed import taken_apart
from uop.spec.text.program import Scope, parse, print_program
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp

EVERY_OP = read_file(Path(__file__).with_name("every_op.uop")).cases
FIRST = "%0 = PARAM [2,3] {slot=0, dtype=int32} : int32[2,3]"


def word_by_word(text: str) -> UOp:
    scope = Scope()
    for number, line in enumerate(text.split("\n"), 1):
        scope.read(Line(line, number))
    return scope.root()


@pytest.mark.parametrize("case", EVERY_OP, ids=lambda case: case.id)
def test_both_ways_give_one_node(case: object) -> None:
    root = case.root  # type: ignore[attr-defined]
    text = print_program(root)
    assert parse(text) is word_by_word(text) is root


def test_most_lines_are_read_at_once() -> None:
    lines = [line for case in EVERY_OP for line in print_program(case.root).splitlines()]
    assert sum(taken_apart(line) is not None for line in lines) > 0.8 * len(lines)


@pytest.mark.parametrize(
    "line",
    [
        "%1 = PERMUTE %0 {order=(1,0)} : float32[3,2]",
        "%1 = PERMUTE %0 {order=(1,0)} : int32[2,3]",
        "%1 = PERMUTE %0 {order=(1,1)} : int32[3,2]",
        "%1 = PERMUTE %0 {order=(1,0), order=(1,0)} : int32[3,2]",
        "%1 = PERMUTE %0 {oder=(1,0)} : int32[3,2]",
        "%1 = PERMUTE %7 {order=(1,0)} : int32[3,2]",
        "%0 = PERMUTE %0 {order=(1,0)} : int32[3,2]",
        "%1 = PERMUTE %0, , %0 {order=(1,0)} : int32[3,2]",
        "%1 = PERMUTE %0, {order=(1,0)} : int32[3,2]",
        "%1 = PERMUTE  {order=(1,0)} : int32[3,2]",
        "%1 = PERMUTE %0 {order=(1,0) : int32[3,2]",
        "%1 = NOSUCH %0 : int32[3,2]",
        "%1 = RESHAPE %0, [6,] : int32[6]",
        "%1 = RESHAPE %0, [6 : int32[6]",
        "%1 = RESHAPE %0, [--6] : int32[6]",
        "%1 = ADD %0, " + "9" * 5000 + " : int32[2,3]",
        "%1 = ADD %0, %" + "9" * 5000 + " : int32[2,3]",
        "%1 = ADD %0, %0 : int32[2,3] ; a comment",
        '%1 = ADD %0, %0 : int32[2,3] !"tag"',
        "%1 = ADD %0, %0",
        "  %1=ADD %0,%0:int32[2,3]",
        "%1 = ADD %0, %0 : int32[2, 3]",
    ],
)
def test_both_ways_give_one_error(line: str) -> None:
    text = f"{FIRST}\n{line}\n"
    found = []
    for read in (parse, word_by_word):
        try:
            found.append(read(text))
        except UopError as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]

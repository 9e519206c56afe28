"""The canonical form of files: what it keeps, what it changes, and that it is one form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import programs

from uop.spec.errors import UopError
from uop.spec.text.format import format_file
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import parse_file, print_file, read_file
from uop.spec.uop import UOp

ROOT = Path(__file__).parents[2]
FOLDERS = ("examples", "conformance/suite/cases/device", "conformance/suite/cases/kernel")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.uop"))
WRITTEN = """\

;head


 ; two
%0=PARAM [2 , 3]{slot=0,dtype=float32}   ;  why
%1 = MUL 1.44,%0 !"a  tag" ;
profile   max_nan=number ; a profile
%2 = LOAD %1 {device=("A" ,"B")} : float32[2,3] @("A","B")

input 0=[[1, 2,  3],[NaN,0x1p+0,-inf]]
accept 0=any|[ 1, 2 ]
case second;of two
%0 = PARAM [2] {slot=0, dtype=int8}
invalid   NEG.arity
%1 = NEG  %0 , %0 !"t"
; last


"""
FORMATTED = """\
;head

; two
%0 = PARAM [2,3] {slot=0, dtype=float32} : float32[2,3]  ;  why
%1 = MUL 1.44, %0 : float32[2,3] !"a  tag"
profile max_nan=number  ; a profile
%2 = LOAD %1 {device=("A","B")} : float32[2,3] @("A","B")

input 0 = [[1, 2, 3],[NaN,0x1p+0,-inf]]
accept 0 = any | [1, 2]

case second  ; of two
%0 = PARAM [2] {slot=0, dtype=int8} : int8[2]
invalid NEG.arity
%1 = NEG %0, %0 !"t"
; last
"""


def test_each_kind_of_line_has_its_form() -> None:
    first = WRITTEN.replace("%0=PARAM", "case first\n%0=PARAM")
    assert format_file(first) == FORMATTED.replace(";head", "; head").replace(
        "%0 = PARAM [2,3]", "case first\n%0 = PARAM [2,3]"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_formatted_file_holds_the_same_and_stays(path: Path) -> None:
    text = path.read_text("utf-8")
    formatted = format_file(text)
    assert parse_file(formatted).cases == parse_file(text).cases
    assert format_file(formatted) == formatted
    assert [line for line in formatted.splitlines() if line.startswith(";")] == [
        line for line in text.splitlines() if line.startswith(";")
    ]
    printed = print_file(read_file(path))
    assert format_file(printed) == printed


@settings(max_examples=100, deadline=None)
@given(programs(), st.data())
def test_spaces_do_not_matter(root: UOp, data: st.DataObject) -> None:
    printed = print_program(root)
    assert format_file(printed) == printed
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', lambda string: "x" * len(string[0]), printed)
    marks = [k for k, c in enumerate(outside) if c in " ,{}[]()="]
    spaced = printed
    for at in sorted(data.draw(st.sets(st.sampled_from(marks), max_size=8)), reverse=True):
        spaced = f"{spaced[:at]} {spaced[at:]}"
    assert format_file(spaced) == printed


def test_a_program_of_an_edition_stays_and_its_directives_do_not() -> None:
    tree = "REDUCE_AXIS(Add,  axes=[1])\n└── MUL\n    ├── BUFFER[2, 3] : Float32\n"
    tree += "    └── CONST(2.0)  — each element twice\n"
    text = f"edition   bestiary\n{tree}input 0=[[1, 2, 3], [4, 5, 6]]\n"
    wanted = f"edition bestiary\n{tree}input 0 = [[1, 2, 3], [4, 5, 6]]\n"
    assert format_file(text) == wanted
    body = text.partition("\n")[2]
    assert format_file(body, edition="bestiary") == wanted.partition("\n")[2]


@pytest.mark.parametrize("text", ["", "; nothing\n", "%0 = FOO\n", "case a\n", "%0 = NEG 1.5"])
def test_what_is_no_file_is_refused(text: str) -> None:
    with pytest.raises(UopError):
        format_file(text)

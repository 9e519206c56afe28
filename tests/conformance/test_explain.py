"""Pages of every op: complete, in words, with tables that agree with exact arithmetic."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from uop.conformance.reference.find import NoSuchNameError, Rows, find
from uop.conformance.reference.page import Page, page_of
from uop.conformance.reference.words import latitude_words, property_words, signature, type_words
from uop.spec.documents.rows import rows
from uop.spec.dtype import DTYPES, Kind, dtypes
from uop.spec.latitude import KNOBS
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, labels
from uop.spec.text.program import parse
from uop.spec.uop import UOp, param

DECLARED = list(DECLARATIONS.values())
VALUED = {d.name for d in DTYPES.values() if d.kind is not Kind.VOID}

WITHOUT: list[str] = []
"""Ops without an example."""


def section(page: Page, title: str) -> dict[str, tuple[str, ...]]:
    """The table of a section, each row by its first cell."""
    (found,) = [s for s in page.sections if s.title == title]
    return {row[0]: row[1:] for row in found.table}


@pytest.mark.parametrize("declaration", DECLARED, ids=lambda d: d.op.name)
def test_the_page_of_an_op_is_complete(declaration: OpDef) -> None:
    page = page_of(declaration)
    assert page.title.startswith(declaration.op.name)
    assert page.lead == declaration.doc
    assert set(section(page, "Constraints")) == {c.label for c in declaration.constraints}
    assert "In the documents" in {s.title for s in page.sections}
    assert all(
        re.fullmatch(r"D-\d{3}", n)
        for s in page.sections
        if s.title == "Decisions"
        for n, *_ in s.table
    )


@pytest.mark.parametrize("declaration", DECLARED, ids=lambda d: d.op.name)
def test_properties_are_words(declaration: OpDef) -> None:
    words = dict(property_words(declaration))
    assert list(words) == ["dtype", "shape", "device", "addrspace", "min_max", "axis"]
    for said in words.values():
        assert said
        assert not re.search(r"D-\d{3}|_|\{|lambda|<", said.replace("min_max", "")), said


@pytest.mark.parametrize("declaration", DECLARED, ids=lambda d: d.op.name)
def test_every_dtype_has_one_latitude(declaration: OpDef) -> None:
    named = [name for names, _ in latitude_words(declaration) for name in names.split()]
    expected = {d.name for d in declaration.dtypes} or VALUED
    assert sorted(named) == sorted(expected)


def test_signatures() -> None:
    assert signature(DECLARATIONS[Op.WHERE]) == "WHERE(P, A, B)"
    assert signature(DECLARATIONS[Op.PAD]) == "PAD(T, o, s') {fill: INVALID|ZERO = INVALID}"
    assert signature(DECLARATIONS[Op.REDUCE]) == "REDUCE(T, r*) {op: Op, axes: a list of int}"
    assert type_words(int | None) == "int?"


def test_budgets_are_said_per_dtype() -> None:
    said = dict(latitude_words(DECLARATIONS[Op.RECIP]))
    assert said["float32"] == "within 2.5 ulp of the exact result"
    assert said["float64"] == "within 0.5 ulp of the exact result"


@pytest.mark.parametrize("declaration", DECLARED, ids=lambda d: d.op.name)
def test_an_example_holds_its_op_and_runs(declaration: OpDef) -> None:
    example = page_of(declaration).example
    if declaration.op.name in WITHOUT:
        assert example is None, "it has one now"
        return
    assert example is not None, "add a case to conformance/reference/examples.uop"
    assert example.op_node.op is declaration.op
    assert declaration.op.name in example.text
    assert re.search(r"^\d+ : \w+\[[\d,]*\] = ", example.text, re.MULTILINE)


def test_the_table_of_idiv_is_floor_division() -> None:
    page = page_of(DECLARATIONS[Op.IDIV])
    for a, cells in section(page, "Special values, int8").items():
        for b, cell in zip((-128, -1, 0, 1, 7, 127), cells, strict=True):
            expected = "unspecified" if b == 0 else str((int(a) // b + 128) % 256 - 128)
            assert cell == expected, (a, b)


def test_the_table_of_add_is_ieee() -> None:
    page = page_of(DECLARATIONS[Op.ADD])
    values = (-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan)
    for a, cells in zip(values, section(page, "Special values, float32").values(), strict=True):
        assert list(cells) == [str(a + b) for b in values]


def test_the_table_of_max_says_either_operand() -> None:
    table = section(page_of(DECLARATIONS[Op.MAX]), "Special values, float32")
    assert table["nan"][4] == "1.0 or nan"
    assert table["-0.0"][3] == "-0.0 to 0.0"


def test_the_table_of_shl_has_no_value_outside_the_width() -> None:
    table = section(page_of(DECLARATIONS[Op.SHL]), "Special values, int8")
    assert table["7"] == ("unspecified", "7", "14", "-128", "unspecified")


def test_the_table_of_recip_is_near_the_exact_value() -> None:
    table = section(page_of(DECLARATIONS[Op.RECIP]), "Special values, float32")
    assert table["-2.5"] == ("≈ -0.4",)
    assert Fraction(-2, 5) == 1 / Fraction(-5, 2)
    assert table["-0.0"] == ("-inf",)


def test_every_label_has_its_page() -> None:
    assert all(page_of(c).sections for c in labels().values())


def test_names_are_found_in_any_case() -> None:
    assert find("padto") == find("PADTO")
    assert isinstance(find("2026-05/source/PARAM"), Rows)
    assert find("add") is DECLARATIONS[Op.ADD]
    assert find("BITCAST") is DECLARATIONS[Op.BITCAST]


def test_words_are_found_as_the_documents_spell_types() -> None:
    assert find("BufferView") == find("BUFFER_VIEW")
    assert find("PointerIndex") == find("POINTER_INDEX")
    assert find("ContiguousBackward") is DECLARATIONS[Op.CONTIGUOUSBACKWARD]


def test_every_row_can_be_asked_for() -> None:
    for id in rows():
        found = find(id)
        assert isinstance(found, Rows)
        assert found.rows == (rows()[id],)


def test_an_op_that_is_not_declared_is_an_error() -> None:
    op = Op("FROBNICATE")
    try:
        with pytest.raises(NoSuchNameError, match="the op FROBNICATE is not declared"):
            find("frobnicate")
    finally:
        del Op.__members__[op.name]


def test_an_unknown_name_has_neighbours() -> None:
    with pytest.raises(NoSuchNameError, match="near: RESHAPE"):
        find("RESHPAE")


def test_dtypes_of_a_section_are_those_of_the_op() -> None:
    (listed,) = [s.text for s in page_of(DECLARATIONS[Op.THREEFRY]).sections if s.title == "Dtypes"]
    assert listed == dtypes.uint64.name


def test_a_gradient_is_a_program() -> None:
    (code,) = [s.code for s in page_of(DECLARATIONS[Op.MUL]).sections if s.title == "Gradient"]
    a, b, g = (param(k, (4,), dtypes.float32) for k in range(3))
    assert parse(code) is UOp(Op.TUPLE, UOp(Op.MUL, g, b), UOp(Op.MUL, g, a))


def test_an_op_without_a_gradient_says_nothing_of_one() -> None:
    titles = {s.title for s in page_of(DECLARATIONS[Op.IDIV]).sections}
    assert "Gradient" not in titles


@pytest.mark.parametrize("knob", [knob for knob in KNOBS if knob != "snan"])
def test_the_page_of_a_knob_says_what_it_may_be_and_what_shows_it(knob: str) -> None:
    page = page_of(find(knob))
    assert (page.title, page.lead) == (knob, KNOBS[knob])
    values = section(page, "Values")
    assert set(values) == {"may be", "strict"}
    assert any(s.title.startswith(f"Probed by: {knob}") and s.table for s in page.sections)

"""Optimizations as text: what is printed is read back, what is none is refused by its column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.spec.args import AxisType
from uop.spec.errors import MalformedError
from uop.spec.kernel.optimization import (
    MatrixUnit,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
    parse_optimizations,
    print_optimizations,
)

NUMBER = st.integers(0, 1 << 40)
OPTIMIZATIONS: st.SearchStrategy[Optimization] = st.one_of(
    st.builds(Split, NUMBER, NUMBER, st.sampled_from(AxisType), st.sampled_from(Side)),
    st.builds(PadTo, NUMBER, NUMBER),
    st.builds(Swap, NUMBER, NUMBER),
    st.builds(NoLocals),
    st.builds(MatrixUnit, NUMBER, st.sampled_from(["m16n8k16", "m16n8k8"])),
)


@given(st.lists(OPTIMIZATIONS, max_size=4))
def test_what_is_printed_is_read_back(sequence: list[Optimization]) -> None:
    assert parse_optimizations(print_optimizations(sequence)) == tuple(sequence)


def test_the_text_of_each() -> None:
    text = "TC(2, m16n8k16); SPLIT(0, 4, LOCAL, INNER); PADTO(1, 8); SWAP(0, 1); NOLOCALS()"
    assert parse_optimizations(text) == (
        MatrixUnit(2, "m16n8k16"),
        Split(0, 4, AxisType.LOCAL),
        PadTo(1, 8),
        Swap(0, 1),
        NoLocals(),
    )
    assert print_optimizations(parse_optimizations(text)) == text
    assert parse_optimizations("  ") == ()


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("PADTO(1, 8) SWAP(0, 1)", 1, "expected one of"),
        ("PADTO(1, 8); FUSE(0)", 14, "SPLIT, PADTO, SWAP, NOLOCALS, TC"),
        ("SPLIT(0, 4)", 1, r"SPLIT\(axis, factor, type, \[side\]\)"),
        ("SPLIT(0, 4, SHARED)", 1, "SHARED"),
        ("SPLIT(0, 4, SHARED, INNER)", 1, "SHARED"),
        ("SPLIT(0, 4, LOCAL, top)", 1, "top"),
        ("PADTO(0, -2)", 1, "'-2', which is no natural number"),
        ("PADTO(0, 08)", 1, "no natural number"),
        ("NOLOCALS(1)", 1, r"NOLOCALS\(\)"),
        ("SWAP(0, 1);", 12, "expected one of"),
        ("swap(0, 1)", 1, "expected one of"),
    ],
)
def test_what_is_none_is_refused(text: str, column: int, expected: str) -> None:
    with pytest.raises(MalformedError, match=expected) as error:
        parse_optimizations(text)
    assert (error.value.line, error.value.column) == (1, column)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("SPLIT(0, 4, UPCAST)", "SPLIT(0, 4, UPCAST, INNER)"),
        ("SPLIT(0, 4, THREAD)", "SPLIT(0, 4, THREAD, OUTER)"),
        ("SPLIT(2, 4, GROUP_REDUCE)", "SPLIT(2, 4, GROUP_REDUCE, INNER)"),
    ],
)
def test_a_split_without_a_side_has_the_usual_one(text: str, full: str) -> None:
    assert parse_optimizations(text) == parse_optimizations(full)

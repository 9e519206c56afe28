"""An error shows the user's expression, and which function made the node that is invalid."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from uop import Tensor, dtypes
from uop.spec.errors import InvalidError, Place
from uop.spec.frontend import compositions


def shown(act: Callable[[], object]) -> list[str]:
    """The lines of the error, without the one that names the file."""
    with pytest.raises(InvalidError) as caught:
        act()
    return [line for line in str(caught.value).splitlines() if not line.startswith("  at: ")]


def made_by(act: Callable[[], object]) -> list[str]:
    lines = [line.partition("  made by: ") for line in shown(act)]
    return [made for before, mark, made in lines if mark and not before]


def test_carets_stand_under_the_expression() -> None:
    a, b = Tensor([1, 2]), Tensor([1, 2, 3])
    assert shown(lambda: 2 * (a + b) - 1) == [
        "ADD.c3: shapes broadcast: right-aligned, each axis equal or 1",
        "  node: ADD(BUFFER:int32[2], BUFFER:int32[3])",
        "  found: (2,) (3,)",
        "    assert shown(lambda: 2 * (a + b) - 1) == [",
        "                              ^^^^^",
    ]


def test_carets_count_characters_and_end_with_the_line() -> None:
    a, b = Tensor([1, 2]), Tensor([1, 2, 3])
    assert shown(lambda: "é" and a - b)[-1].count("^") == len("a - b")
    lines = shown(
        lambda: a.where(
            a,
            b,
        )
    )
    assert lines[-2:] == ["    lambda: a.where(", "            ^^^^^^^^"]


def test_devices_that_differ_are_named_at_the_expression() -> None:
    a, b = Tensor([1, 2], device="A"), Tensor([1, 2], device="B")
    lines = shown(lambda: a * b)
    assert "  found: devices A, B" in lines
    assert lines[-1].count("^") == len("a * b")


def test_an_inserted_node_names_its_function_and_why() -> None:
    a, b = Tensor([[1, 2, 3]]), Tensor([[1], [2], [3]])
    assert made_by(lambda: a.cast(dtypes.int8) @ b) == [
        "matmul(a=int8[1, 3], b=int32[3, 1]): MUL broadcasts both, with axes of size 1 between, "
        "and REDUCE adds the products."
    ]
    (made,) = made_by(lambda: a.expand(2, 2, 2))
    assert made.startswith("expand(x=int32[1, 3], shape=(2, 2, 2)): EXPAND takes as many")
    (made,) = made_by(lambda: (a + 0).minimum(Tensor([1, 2])))
    assert made.startswith("minimum(x=int32[1, 3], other=int32[2]): ")


def test_an_inner_function_comes_first() -> None:
    x = Tensor([[1.0, 2.0]])
    made = made_by(lambda: compositions.attention(x, x, x.T))
    assert [line.partition("(")[0] for line in made] == ["matmul", "attention"]


def test_a_node_of_the_users_own_names_no_function() -> None:
    assert made_by(lambda: Tensor([1]).reshape(2)) == []


def test_a_line_without_source_has_no_excerpt() -> None:
    assert Place("no such file", 3, 1, 2).excerpt() == []
    assert Place(__file__, 1).excerpt() == []
    assert (str(Place("a", 3)), str(Place("", 0))) == ("a:3", "")


def test_a_reader_that_sets_the_place_shows_no_excerpt_of_another() -> None:
    with pytest.raises(InvalidError) as caught:
        Tensor([1]).reshape(2)
    caught.value.where = "program.uop:7"
    assert str(caught.value).endswith("  at: program.uop:7")

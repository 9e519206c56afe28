"""Drawings of graphs: well-formed, every node once, sources above users, no two boxes overlap."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from uop.compiler.pipeline import compile
from uop.spec.args import ReduceArg, SourceArg
from uop.spec.dtype import dtypes
from uop.spec.frontend.evaluator import using
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.text.draw import MOST, html, properties, svg
from uop.spec.text.program import parse
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp, const, dims, param

NAMESPACE = {"s": "http://www.w3.org/2000/svg"}
FILES = sorted((Path(__file__).parents[2] / "examples").glob("*.uop"))
EVERY_OP = read_file(Path(__file__).with_name("every_op.uop")).cases

Rectangle = tuple[float, float, float, float]


def drawn(root: UOp, notes: dict[UOp, str] | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(svg(root, notes))


def rectangles(picture: ElementTree.Element) -> dict[str, Rectangle]:
    """The boxes by what is written in them, made distinct by their number."""
    found = {}
    for number, group in enumerate(picture.findall("s:g", NAMESPACE)):
        box = group.find("s:rect", NAMESPACE)
        assert box is not None
        text = " ".join(t.text or "" for t in group.iter(f"{{{NAMESPACE['s']}}}tspan"))
        x, y, w, h = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
        found[f"{number} {text}"] = (x, y, x + w, y + h)
    return found


def check(root: UOp) -> dict[str, Rectangle]:
    picture = drawn(root)
    boxes = rectangles(picture)
    for (_, a), (_, b) in combinations(boxes.items(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    left, top, width, height = map(float, picture.get("viewBox", "").split())
    for x1, y1, x2, y2 in boxes.values():
        assert left <= x1 <= x2 <= left + width
        assert top <= y1 <= y2 <= top + height
    for path in picture.findall("s:path", NAMESPACE):
        points = points_of(path.get("d", ""))
        assert points[0][1] < points[-1][1], "a source stands above its user"
        for x, y in points:
            assert not any(a < x < b and c < y < d for a, c, b, d in boxes.values())
    return boxes


def points_of(path: str) -> list[tuple[float, float]]:
    """Points on the way of an edge: its begin, then those of a curve."""
    x, y, turn, *numbers = map(float, re.findall(r"-?\d+", path))
    (x1, y1), (x2, y2), (x3, y3) = zip(numbers[::2], numbers[1::2], strict=True)
    return [(x, y)] + [
        (
            (1 - t) ** 3 * x + 3 * (1 - t) ** 2 * t * x1 + 3 * (1 - t) * t**2 * x2 + t**3 * x3,
            (1 - t) ** 3 * turn + 3 * (1 - t) ** 2 * t * y1 + 3 * (1 - t) * t**2 * y2 + t**3 * y3,
        )
        for t in (k / 16 for k in range(17))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    for case in read_file(path).cases:
        assert case.root is not None
        check(case.root)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_kernels(path: Path) -> None:
    """Their graphs have long edges, and a LINEAR that lists every instruction."""
    for case in read_file(path).cases:
        assert case.root is not None
        for left in compile(case.root).stages.values():
            check(left)


@pytest.mark.parametrize("case", EVERY_OP, ids=lambda case: case.id)
def test_every_op(case: object) -> None:
    root: UOp = case.root  # type: ignore[attr-defined]
    boxes = check(root)
    assert any(root.op.name in text for text in boxes)


def test_shapes_are_written_in_their_node() -> None:
    x = param(0, (2, 3), dtypes.float32)
    root = UOp(Op.RESHAPE, x, dims((3, 2)))
    assert len(rectangles(drawn(root))) == 2
    assert "RESHAPE [3,2]" in svg(root)


def test_an_operand_that_is_used_twice_has_one_box_and_two_edges() -> None:
    x = param(0, (2,), dtypes.float32)
    picture = drawn(UOp(Op.ADD, x, x))
    assert len(rectangles(picture)) == 2
    assert len(picture.findall("s:path", NAMESPACE)) == 2


def test_a_node_says_its_properties_and_a_note() -> None:
    x = param(0, (2, 3), dtypes.int8)
    root = UOp(Op.REDUCE, x, arg=ReduceArg(Op.MAX, (1,)))
    assert dict(properties(root)) == {
        "dtype": "int8",
        "shape": "[2,1]",
        "device": "null",
        "addrspace": "null",
        "min_max": "[-128, 127]",
        "axis": "null",
    }
    titles = [t.text or "" for t in drawn(root).iter(f"{{{NAMESPACE['s']}}}title")]
    assert all(title.startswith("dtype: int8\n") for title in titles)
    assert "= [[7], [8]]" in svg(root, {root: "= [[7], [8]]"})


def test_what_a_linear_lists_has_an_edge_to_its_user_alone() -> None:
    x = param(0, (), dtypes.int32)
    once = UOp(Op.NEG, x)
    root = UOp(Op.LINEAR, x, once)
    assert len(rectangles(drawn(root))) == 3
    assert len(drawn(root).findall("s:path", NAMESPACE)) == 2


def test_text_is_escaped() -> None:
    root = UOp(Op.SOURCE, arg=SourceArg('<script>"&"</script>'))
    assert "<script" not in svg(root)
    drawn(root)


def test_a_large_graph_is_cut_at_its_root() -> None:
    u = param(0, (2,), dtypes.float32)
    for _ in range(5000):
        u = UOp(Op.NEG, u)
    assert len(rectangles(drawn(u))) == MOST
    assert "nodes above" in html(u)
    assert "nodes above" not in html(const(1, dtypes.int8))


def test_a_drawing_is_a_function_of_the_graph() -> None:
    x = param(0, (2,), dtypes.float32)
    root = UOp(Op.ADD, UOp(Op.NEG, x), UOp(Op.SIN, x))
    assert svg(root) == svg(root)


def test_a_notebook_shows_the_drawing() -> None:
    root = const(1, dtypes.int8)
    assert root._repr_html_() == html(root)


def test_a_notebook_shows_a_tensor_and_evaluates_nothing() -> None:
    with using(None):
        t = Tensor(const(1, dtypes.int8)) + 1
        # Without an evaluator any evaluation is an error.
        assert t._repr_html_() == html(t.uop)
        assert "ADD" in repr(t)


def test_sizes_of_variables_are_written_as_formulas() -> None:
    text = """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=4}
%1 = STACK %0, 2
%2 = PARAM %1 {slot=1, dtype=float32}
%3 = NEG %2
"""
    root = parse(text)
    check(root)
    assert dict(properties(root))["shape"] == "[v0,2]"

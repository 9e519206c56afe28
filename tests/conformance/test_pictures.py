"""The pictures of the stories: of the programs on the pages, with every element in its place."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from uop.conformance.reference.pictures import PICTURES, pictures
from uop.spec.text.uop_file import read_file

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "docs" / "stories"
DRAWN = {path.removeprefix(f"{PICTURES}/"): svg for path, svg in pictures().items()}


def cells(name: str) -> list[list[str]]:
    """The words in the boxes of each grid of a picture."""
    found: list[list[str]] = []
    for text in ElementTree.fromstring(DRAWN[name]).iter("{http://www.w3.org/2000/svg}text"):
        if text.get("font-weight"):
            found.append([])
        elif text.get("text-anchor"):
            found[-1].append(text.text or "")
    return found


def test_every_picture_is_shown_and_every_shown_one_is_drawn() -> None:
    text = "".join(page.read_text("utf-8") for page in STORIES.glob("*.md"))
    assert set(re.findall(r"\(pictures/([\w-]+\.svg)\)", text)) == set(DRAWN)


@pytest.mark.parametrize(
    ("case", "page"), [("sum", "reduce-to-loop"), ("shift", "param-buffer-memory")]
)
def test_a_graph_is_that_of_the_program_on_the_page(case: str, page: str, tmp_path: Path) -> None:
    drawn = read_file(ROOT / "conformance" / "reference" / "stories.uop")
    (root,) = [c.root for c in drawn.cases if c.id == case]
    shown = (STORIES / f"{page}.md").read_text("utf-8")
    (text,) = re.findall(rf"^```uop {case}.uop\n(.*?)^```$", shown, re.MULTILINE | re.DOTALL)
    written = tmp_path / "written.uop"
    written.write_text(text, "utf-8")
    assert read_file(written).cases[0].root is root


def test_each_lane_holds_each_element_once() -> None:
    for words, elements in zip(cells("lanes.svg"), (8, 4, 4), strict=True):
        wanted = [f"{lane}.{element}" for lane in range(32) for element in range(elements)]
        assert Counter(words) == Counter(wanted)


def test_each_output_is_computed_once() -> None:
    plain, vectors, tiles, groups, swapped = cells("optimizations.svg")
    for words in (plain, vectors, tiles, groups, swapped):
        assert len(set(words)) == 32
    assert vectors[:5] == groups[:5] == ["0.0", "0.1", "0.2", "0.3", "1.0"]
    assert [tiles[8 * row] for row in range(4)] == ["0.0", "0.4", "2.0", "2.4"]
    assert swapped[:3] == ["0.0", "4.0", "8.0"]


def test_what_the_devices_hold() -> None:
    whole, broadcast, scatter, split, gather, reduce, allgather, scattered, allreduce = cells(
        "collectives.svg"
    )
    data = ["1", "2", "10", "20"]
    assert whole == scatter == split == gather == data
    assert broadcast == allgather == data * 2
    assert reduce == scattered == ["11", "22"]
    assert allreduce == ["11", "22"] * 2

"""The generated pages are those that the declarations give, and their links lead somewhere."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from manual import needed
from reports import failing

from uop.conformance.coverage.points import KINDS
from uop.conformance.reference import glossary
from uop.conformance.reference.docs import (
    CELLS,
    MATRIX,
    STORIES,
    decision_slug,
    files,
    formulas,
    judged_section,
    matrix_of,
    stale,
    write,
)
from uop.conformance.reference.find import address_of, anchor, find
from uop.conformance.report.text import figures_line
from uop.spec.documents.decisions import decisions
from uop.spec.registry import DECLARATIONS

FOLDER = Path(__file__).parents[2] / "docs"


@cache
def wanted() -> dict[str, str]:
    """The text of each page, by its path."""
    return files(FOLDER)


def test_no_page_is_stale() -> None:
    assert stale(FOLDER, wanted()) == [], "run `python -m uop.conformance.reference.docs docs`"


def test_every_op_has_a_page_and_the_index_names_it() -> None:
    for op in DECLARATIONS:
        assert f"# {op.name}\n" in wanted()[f"ops/{op.name}.md"]
        assert f"[{op.name}]({op.name}.md)" in wanted()["ops/README.md"]


def test_links_lead_to_files() -> None:
    for path, text in wanted().items():
        if path.endswith(".md"):
            for target in re.findall(r"\]\(([^)]+\.(?:md|svg|py))(?:#[^)]+)?\)", text):
                assert (FOLDER / path).parent.joinpath(target).is_file(), (path, target)


def test_decisions_lead_to_their_headings() -> None:
    assert decision_slug("D-038") == "d-038-cast"
    assert decision_slug("D-040") == "d-040-cast-to-fp8e4m3-which-has-no-infinity"
    headings = (FOLDER.parent / "spec" / "DECISIONS.md").read_text("utf-8").lower()
    for number in decisions():
        (heading,) = re.findall(rf"^### ({number.lower()} .+)$", headings, re.MULTILINE)
        kept = "".join(c for c in heading if c.isalnum() or c in " -_")
        assert decision_slug(number) == kept.replace(" ", "-")
    assert "(../../spec/DECISIONS.md#d-038-cast)" in wanted()["ops/CAST.md"]


def test_every_subject_has_a_heading_in_the_sources() -> None:
    sources = {p.relative_to(FOLDER).with_suffix("").as_posix(): p for p in FOLDER.rglob("*.md")}
    sources |= {"decisions": FOLDER.parent / "spec" / "DECISIONS.md"}
    places = Counter([*sources])
    for page, path in sources.items():
        prose = re.sub(r"^(`{3,}|~{3,}).*?^\1$", "", path.read_text("utf-8"), flags=re.M | re.S)
        headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
        places.update(f"{page}#{anchor(page, heading)}" for heading in headings)
        places.update(f"{page}#{name}" for name in re.findall(r'<a id="([^"]+)">', prose))
    assert {name: place for name, place in needed().items() if places[place] != 1} == {}


def test_the_address_of_a_label_follows_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UOP_DOCS", raising=False)
    assert address_of(find("permute.C1")) == "ops/PERMUTE#c1"
    monkeypatch.setenv("UOP_DOCS", "https://host/uop/0.1.0/")
    assert address_of(find("PERMUTE.c1")) == "https://host/uop/0.1.0/ops/PERMUTE.html#c1"
    assert address_of(find("PERMUTE")) == "https://host/uop/0.1.0/ops/PERMUTE.html"
    assert address_of(find("max_nan")) == "https://host/uop/0.1.0/profiles.html#max_nan"
    assert address_of(find("VECTORIZE")) == "https://host/uop/0.1.0/editions.html#vectorize"


def test_the_example_of_a_page_comes_first() -> None:
    for op in DECLARATIONS:
        titles = re.findall(r"^## (.+)$", wanted()[f"ops/{op.name}.md"], re.MULTILINE)
        assert titles[0] == "Example"


def test_tables_are_rectangular() -> None:
    for path, text in wanted().items():
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, (path, block)


def test_drawings_are_well_formed() -> None:
    for path, text in wanted().items():
        if path.endswith(".svg"):
            ElementTree.fromstring(text)


def test_a_value_that_is_moved_keeps_its_colour() -> None:
    before, after = cells("PERMUTE")
    assert dict(before) == dict(after)
    assert len({color for _, color in before}) == 6
    assert [text for text, _ in after] == ["1", "4", "2", "5", "3", "6"]


def test_what_is_left_out_absent_or_an_index_has_no_colour() -> None:
    before, after = cells("SHRINK")
    assert {text for text, color in before if color != "none"} == {"6", "10"}
    assert "none" not in dict(after).values()
    assert [text for text, color in cells("PAD")[1] if color == "none"] == [None, None]
    assert {color for _, color in cells("INDEX")[1]} == {"none"}


def cells(op: str) -> list[list[tuple[str | None, str]]]:
    """The text and the colour of each cell in the picture of an op, a list for each value."""
    groups = ElementTree.fromstring(wanted()[f"ops/{CELLS}/{op}.svg"]).findall("{*}g")
    return [
        [
            (text.text, rect.attrib["fill"])
            for rect, text in zip(g.findall("{*}rect"), g.findall("{*}text")[1:], strict=True)
        ]
        for g in groups
    ]


def test_every_op_on_values_has_a_formula() -> None:
    computing = {"movement", "reduce", "elementwise", "decomposed"}
    ops = {op.name for op, declaration in DECLARATIONS.items() if declaration.section in computing}
    assert ops - formulas().keys() == {"THREEFRY"}
    assert formulas().keys() <= {op.name for op in DECLARATIONS}


def test_an_op_leads_to_its_stories_and_its_knobs_to_theirs() -> None:
    for op in ("IDIV", "MOD", "CDIV", "CMOD"):
        assert "](../stories/integer-division.md)" in wanted()[f"ops/{op}.md"]
    assert "| [max_nan](../profiles.md#max_nan) |" in wanted()["ops/MAX.md"]


def test_the_matrix_says_which_systems_differ() -> None:
    page = (
        "| backend |\n| --- |\n| a |\n\n| op | a | b:CPU | c | d |\n| --- | --- | --- | --- | --- |"
    )
    matrix = matrix_of(f"{page}\n| MAX | ✓ 1,035 | ✕ 2/31 | · | ✓ 8 |\n\n| choice | a |\n")
    assert matrix == {"MAX": {"a": "✓ 1,035", "b:CPU": "✕ 2/31", "c": "·", "d": "✓ 8"}}
    assert judged_section(matrix["MAX"]).table == (
        ("b:CPU", "fails 2 of 31 programs"),
        ("a d", "conforms"),
        ("c", "not supported"),
    )


def test_a_source_is_that_of_the_op_alone() -> None:
    text = wanted()["ops/PAD.md"].partition("## As OpenCL and CUDA\n")[2].partition("\n## ")[0]
    assert text.count("kernel void") == text.count("__global__") == 1
    assert "typedef" not in text


def test_a_latitude_says_why() -> None:
    assert f"): {decisions()['D-033'].problem}" in wanted()["ops/MAX.md"]
    assert "D-0" not in wanted()["ops/PERMUTE.md"].partition("## Latitude")[2].partition("\n## ")[0]


def test_writing_brings_a_folder_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    shutil.copytree(FOLDER / STORIES, tmp_path / STORIES)
    shutil.copy(FOLDER / MATRIX, tmp_path)
    (tmp_path / "ops" / "GONE.md").write_text("of an op that is no more")
    (tmp_path / "by-hand.md").write_text("a page that nobody generates")
    write(tmp_path)
    assert stale(tmp_path, wanted()) == []
    assert (tmp_path / "by-hand.md").is_file()
    (tmp_path / "ops" / "ADD.md").write_text("changed")
    assert stale(tmp_path, wanted()) == ["ops/ADD.md"]


def test_every_word_is_explained_and_leads_on() -> None:
    shown = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", wanted()["glossary.md"])
    for word, term in glossary.terms().items():
        assert find(word) == term
        assert f"### {term.word}\n\n{term.says}" in shown
        for other in term.see:
            assert find(other) != term


def test_the_legend_has_every_figure_under_a_verdict() -> None:
    line = figures_line(replace(failing(), graphs=3))
    printed = re.findall(r"(?:[\d,.]+%?|-) ([a-z][a-z ]+)", line)
    assert len(printed) == 8
    counted = {glossary.terms()[name] for name in (*printed, *KINDS)}
    assert counted <= set(glossary.legend().terms)

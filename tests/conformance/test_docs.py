"""The pages of the ops are those that the declarations give, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from uop.conformance.docs import files, stale, write
from uop.spec.registry import DECLARATIONS

FOLDER = Path(__file__).parents[2] / "docs" / "ops"
WANTED = files()


def test_no_page_is_stale() -> None:
    assert stale(FOLDER, WANTED) == [], "run `python -m uop.conformance.docs docs/ops`"


def test_every_op_has_a_page_and_the_index_names_it() -> None:
    for op in DECLARATIONS:
        assert f"# {op.name}\n" in WANTED[f"{op.name}.md"]
        assert f"[{op.name}]({op.name}.md)" in WANTED["README.md"]


def test_links_lead_to_files() -> None:
    for path, text in WANTED.items():
        if path.endswith(".md"):
            for target in re.findall(r"\]\(([^)]+\.(?:md|svg))\)", text):
                assert target in WANTED, (path, target)


def test_tables_are_rectangular() -> None:
    for path, text in WANTED.items():
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, (path, block)


def test_drawings_are_well_formed() -> None:
    for path, text in WANTED.items():
        if path.endswith(".svg"):
            ElementTree.fromstring(text)


def test_writing_brings_a_folder_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "GONE.md").write_text("of an op that is no more")
    write(tmp_path)
    assert stale(tmp_path, WANTED) == []
    (tmp_path / "ADD.md").write_text("changed")
    assert stale(tmp_path, WANTED) == ["ADD.md"]

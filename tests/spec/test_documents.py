"""Every row of the documents has a standing, and what it names exists."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from uop.spec.documents import rows as ledger
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import Standing, rows, rows_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, labels

ROOT = Path(__file__).parents[2]
ROWS = list(rows().values())
LISTED = "a0608b374744db53"
"""The start of the digest of the 445 ids that were listed first; ids are keys and never change."""


def test_every_listed_id_has_a_row() -> None:
    ids = sorted(row.id for row in ROWS if not row.added)
    assert len(ids) == 445
    assert sha256("\n".join(ids).encode()).hexdigest().startswith(LISTED)


def test_documents_are_covered_on_all_their_tables() -> None:
    tables = Counter(row.id.rpartition("/")[0] for row in ROWS if not row.added)
    older = {t.partition("/")[2]: n for t, n in tables.items() if t.startswith("2026-05")}
    newer = {t.partition("/")[2]: n for t, n in tables.items() if t.startswith("2026-06")}
    # The newer edition drops REPLICATED and SLICE from its table and adds GETADDR.
    differing = {t: (older[t], newer[t]) for t in older if older[t] != newer[t]}
    assert differing == {"movement": (11, 9), "codegen": (12, 13)}
    assert tables["bestiary/op"] == 65


def test_added_rows_stand_in_a_known_document() -> None:
    assert {row.document for row in ROWS} == {"2026-05", "2026-06", "bestiary", "tripy"}
    assert any(row.added for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_says_something_of_its_own(row: ledger.Row) -> None:
    assert re.fullmatch(r"[A-Z].{4,}\.", row.says), row.says
    assert "|" not in row.says
    assert row.standing is Standing.IMPLEMENTED or row.detail


def test_a_status_names_what_exists() -> None:
    dangling = []
    for row in ROWS:
        match row.standing:
            case Standing.DECIDED:
                fine = row.detail in decisions()
            case Standing.CONTRADICTED:
                fine = row.detail in decisions() or row.detail in rows()
            case Standing.IMPLEMENTED:
                fine = not row.detail
            case _:
                fine = True
        if not fine:
            dangling.append((row.id, row.status))
    assert dangling == []


def test_ops_that_are_named_are_declared() -> None:
    dangling = [
        (row.id, op)
        for row in ROWS
        for op in row.ops
        if op not in Op.__members__ or Op[op] not in DECLARATIONS
    ]
    assert dangling == []


def test_labels_decisions_and_tests_that_are_named_exist() -> None:
    known = decisions().keys() | labels().keys()
    named = {name for row in ROWS for name in row.by}
    dangling = sorted(n for n in named if "::" not in n and n not in known)
    for name in sorted(n for n in named if "::" in n):
        path, _, function = name.partition("::")
        file = ROOT / path
        source = file.read_text() if file.exists() else ""
        if not re.search(rf"^def {function}\(", source, re.MULTILINE):
            dangling.append(name)
    assert dangling == []


def test_what_is_done_names_a_test_or_a_decision_that_names_one() -> None:
    done = (Standing.IMPLEMENTED, Standing.DECIDED, Standing.CONTRADICTED)
    assert [r.id for r in ROWS if r.standing in done and not (r.tests or r.decisions)] == []


def test_every_op_has_a_row() -> None:
    assert [op.name for op in DECLARATIONS if not rows_of(op.name)] == []


def test_the_figures_count_the_rows() -> None:
    figures = (ROOT / "benchmarks" / "README.md").read_text()
    counts = Counter(row.standing for row in ROWS)
    assert f"| rows of the ledger: of {len(ROWS)}, without" in figures
    assert f"out of scope | | {', '.join(str(counts[s]) for s in Standing)} |" in figures


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="found 'done'"):
        ledger._status("done")


def test_a_row_reads_back_its_status() -> None:
    row = rows()["2026-06/load/replaces"]
    assert row.status == "decided D-004"
    assert row.decisions == ("D-004",)
    assert row.document == "2026-06"

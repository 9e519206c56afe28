"""Reads the rows of the published documents from the .toml files in this folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class Standing(StrEnum):
    """The status of a row; the value is the first word of its text."""

    IMPLEMENTED = "implemented"
    DECIDED = "decided"
    CONTRADICTED = "contradicted by"
    PLANNED = "planned because"
    OUT_OF_SCOPE = "out of scope because"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a document: its statement in our words, its status, and its checks.

    `detail` is the rest of the status: a decision, the id of the row that contradicts it, or a
    reason. `by` names decisions and tests; the constraints of `ops` cover the row too.
    """

    id: str
    says: str
    standing: Standing
    detail: str
    ops: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    added: bool = False

    @property
    def document(self) -> str:
        return self.id.partition("/")[0]

    @property
    def status(self) -> str:
        return f"{self.standing} {self.detail}".strip()

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decisions that the row cites, also in its status."""
        return tuple(dict.fromkeys(w for w in (self.detail, *self.by) if w.startswith("D-")))

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name for name in self.by if "::" in name)


@cache
def rows() -> dict[str, Row]:
    """Every row by id, in the order of the files. ValueError for a malformed file."""
    found: dict[str, Row] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["row"]:
            for row in _rows(entry):
                if row.id in found:
                    raise ValueError(f"{path.name}: {row.id} stands twice")
                found[row.id] = row
    return found


def rows_of(op: str) -> tuple[Row, ...]:
    """The rows about an op, document by document."""
    return tuple(sorted((r for r in rows().values() if op in r.ops), key=lambda r: r.document))


def _rows(entry: dict[str, Any]) -> list[Row]:
    standing, detail = _status(entry["status"])
    return [
        Row(
            id,
            entry["says"],
            standing,
            detail,
            tuple(entry.get("ops", ())),
            tuple(entry.get("by", ())),
            entry.get("added", False),
        )
        for id in entry["ids"]
    ]


def _status(text: str) -> tuple[Standing, str]:
    for standing in Standing:
        if text.startswith(standing):
            return standing, text.removeprefix(standing).strip()
    raise ValueError(f"a status is one of {', '.join(Standing)}; found {text!r}")

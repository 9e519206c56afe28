"""Finds what a name means: an op, a constraint, a decision or a row of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from uop.spec.decisions import Decision, decisions
from uop.spec.errors import UopError
from uop.spec.ledger.rows import Row, rows
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Constraint, OpDef, labels

NEAREST = 4


class NoSuchNameError(UopError):
    """A name that means nothing here; says the nearest ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the ledger that a name stands for."""

    name: str
    rows: tuple[Row, ...]


Subject = OpDef | Constraint | Decision | Rows


def find(name: str) -> Subject:
    """What a name means, in any case of letters. NoSuchNameError where it means nothing."""
    known = _known()
    found = known.get(name.casefold())
    if found is not None:
        return found
    near = get_close_matches(name.casefold(), known, NEAREST, 0.6)
    raise NoSuchNameError(
        f"nothing is called {name!r}" + (f"; near: {', '.join(map(_written, near))}" * bool(near))
    )


def _known() -> dict[str, Subject]:
    """Every name in lower case. Where two things share one, the op wins, then the label."""
    table: dict[str, Subject] = {}
    by_tail: dict[str, list[Row]] = {}
    for row in rows().values():
        table[row.id.casefold()] = Rows(row.id, (row,))
        by_tail.setdefault(row.id.rpartition("/")[2].casefold(), []).append(row)
    for tail, found in by_tail.items():
        table[tail] = Rows(found[0].id.rpartition("/")[2], tuple(found))
    table |= {number.casefold(): d for number, d in decisions().items()}
    table |= {label.casefold(): c for label, c in labels().items()}
    table |= {op.name.casefold(): d for op, d in DECLARATIONS.items()}
    return table


def _written(name: str) -> str:
    """A name as it is written: ops and decisions in capitals."""
    upper = name.upper()
    if upper in Op.__members__ or upper in decisions():
        return upper
    if name.partition(".")[0].upper() in Op.__members__:
        op, _, rest = name.partition(".")
        return f"{op.upper()}.{rest}"
    return next((id for id in rows() if id.casefold() == name), name)

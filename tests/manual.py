"""Says which anchors the manual needs: of everything that `uop explain` knows, and of commands."""

from __future__ import annotations

from uop.cli import COMMANDS
from uop.conformance.reference.find import Rows, conditions, find, place_of, rule_names
from uop.conformance.reference.glossary import LEGEND, terms
from uop.spec.conditions.clauses import clauses
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import rows
from uop.spec.editions import EDITIONS
from uop.spec.latitude import KNOBS
from uop.spec.registry import DECLARATIONS, labels


def needed() -> dict[str, str]:
    """The place of each subject that the manual must have, by its name."""
    names = [*(op.name for op in DECLARATIONS), *labels(), *clauses(), *conditions(), *decisions()]
    names += [*rule_names(), *terms(), LEGEND, *KNOBS]
    names += [name for edition in EDITIONS.values() for name in edition.words]
    subjects = {name: place_of(find(name)) for name in names}
    subjects |= {row.id: place_of(Rows(row.id, (row,))) for row in rows().values()}
    return subjects | {f"uop {name}": f"command-line#uop-{name}" for name in COMMANDS}

"""Says which anchors the manual needs: of every op, label, decision, rule, word and command."""

from __future__ import annotations

from uop.cli import COMMANDS
from uop.conformance.reference.find import conditions, find, rule_names
from uop.conformance.reference.glossary import LEGEND, terms
from uop.conformance.reference.places import place_of
from uop.spec.conditions.clauses import clauses
from uop.spec.documents.decisions import decisions
from uop.spec.registry import DECLARATIONS, labels


def needed() -> dict[str, str]:
    """The place of each subject that the manual must have, by its name."""
    names = [*(op.name for op in DECLARATIONS), *labels(), *clauses(), *conditions(), *decisions()]
    subjects = {name: place_of(find(name)) for name in (*names, *rule_names(), *terms(), LEGEND)}
    return subjects | {f"uop {name}": f"command-line#uop-{name}" for name in COMMANDS}

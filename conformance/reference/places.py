"""Says where the manual has a subject: its page and the anchor there."""

from __future__ import annotations

import os
import re

from uop.conformance.reference.find import CompilerRule, Conditions, Knob, Rows, Subject, Words
from uop.conformance.reference.glossary import LEGEND, Legend, Term
from uop.spec.conditions.clauses import OF_ALL_OPS
from uop.spec.documents.decisions import Decision
from uop.spec.registry import Clause, Constraint, OpDef

LABELS, DECISIONS, RULES, GLOSSARY = "labels", "decisions", "rules", "glossary"
PROFILES, EDITIONS, DOCUMENTS = "profiles", "editions", "documents"
BASE = "UOP_DOCS"
"""The environment variable with the address of the site."""
_NAMED = re.compile(r"D-\d{3}(?= )|\w+\.\w+$")


def place_of(subject: Subject) -> str:
    """The page of a subject and its anchor, as `ops/PERMUTE#c1`."""
    match subject:
        case OpDef(op=op):
            return f"ops/{op.name}"
        case Conditions(label=label):
            return f"{LABELS}#{label}"
        case Clause(label=label) if subject in OF_ALL_OPS:
            return f"{LABELS}#{label}"
        case Constraint(label=label) | Clause(label=label):
            return f"ops/{label.replace('.', '#')}"
        case Decision(number=number):
            return f"{DECISIONS}#{number}"
        case CompilerRule(name=name):
            return f"{RULES}#{name}"
        case Term(word=word):
            return f"{GLOSSARY}#{slug(word)}"
        case Legend():
            return f"{GLOSSARY}#{LEGEND}"
        case Knob(name=name):
            return f"{PROFILES}#{name}"
        case Words(name=name):
            return f"{EDITIONS}#{slug(name)}"
        case Rows(rows=same):
            return f"{DOCUMENTS}#{same[0].id}"


def address_of(subject: Subject) -> str:
    """The place of a subject; its whole address where UOP_DOCS has that of the site."""
    place, base = place_of(subject), os.environ.get(BASE)
    if not base:
        return place
    page, mark, anchor = place.partition("#")
    return f"{base.rstrip('/')}/{page}.html{mark}{anchor}"


def anchor(page: str, heading: str) -> str:
    """The anchor of a heading: `c1` for a label on the page of its op, `D-012` for a decision, a
    label elsewhere as it is, and a slug for other headings.
    """
    named = _NAMED.match(heading)
    if named is None:
        return slug(heading)
    return named[0].removeprefix(f"{page.removeprefix('ops/')}.")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

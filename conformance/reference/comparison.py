"""Builds the page that compares two subjects: for two ops what differs, then what each means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from uop.conformance.reference.answers.specials import special_values
from uop.conformance.reference.find import Subject
from uop.conformance.reference.page import Page, page_of
from uop.conformance.reference.words import Section, field_words, latitude_words, rule_words
from uop.spec.latitude import EXACT
from uop.spec.registry import OpDef

MOST_VALUES = 12
"""The most special values that are shown."""
NONE = "-"
"""Stands in a cell where one of the ops has nothing."""

Row = tuple[str, str, str]


def comparison(names: tuple[str, str], first: Subject, second: Subject) -> Page:
    """The page of two subjects."""
    pages = [page_of(subject) for subject in (first, second)]
    sections = []
    if isinstance(first, OpDef) and isinstance(second, OpDef):
        names = (first.op.name, second.op.name)
        sections.append(Section("Differs", ("", *names), tuple(_differing(first, second))))
    meanings = tuple(
        (name, page.lead or page.title) for name, page in zip(names, pages, strict=True)
    )
    sections.append(Section("Meaning", ("", ""), meanings))
    return Page(" and ".join(names), "", tuple(s for s in sections if s.table))


def _differing(a: OpDef, b: OpDef) -> Iterator[Row]:
    """The facts that differ, each with what it is for both."""
    for title, of in FACTS.items():
        first, second = of(a), of(b)
        left = [one for one in first if one not in second]
        right = [one for one in second if one not in first]
        for k, (one, other) in enumerate(zip_longest(left, right, fillvalue=NONE)):
            yield "" if k else title, one, other
    yield from _values(special_values(a), special_values(b))


def _constraints(d: OpDef) -> list[str]:
    """The titles of the constraints that are not about the arg, the dtypes and their number."""
    labels = {f"{d.op.name}.{name}" for name in ("arity", "arg", "c1" if d.dtypes else "")}
    return [c.title for c in d.constraints if c.label not in labels]


def _latitude(d: OpDef) -> list[str]:
    """What is not exact, with its dtypes."""
    free = [f"{said} ({names})" for names, said in latitude_words(d) if said != EXACT.says]
    return free or [EXACT.says]


FACTS: dict[str, Callable[[OpDef], Sequence[str]]] = {
    "operands": lambda d: [", ".join(d.src)],
    "arg": lambda d: [] if d.arg is None else [field_words(d.arg, d.default_arg)],
    "dtypes": lambda d: [" ".join(t.name for t in d.dtypes) or "any"],
    "dtype": lambda d: [rule_words("dtype", d)],
    "shape": lambda d: [rule_words("shape", d)],
    "constraints": _constraints,
    "latitude": _latitude,
    "no value": lambda d: [d.undefined] if d.undefined else [],
}
"""By title what is compared of an op."""


def _values(a: Iterable[Section], b: Iterable[Section]) -> Iterator[Row]:
    """The special values on which two ops differ, as far as they have tables of one form."""
    others = {section.title: section for section in b}
    found = []
    for section in a:
        other = others.get(section.title)
        if other is not None and section.header[:-1] == other.header[:-1]:
            dtype = section.title.rpartition(" ")[2]
            pairs = zip(_cells(section), _cells(other), strict=True)
            found += [(f"{dtype} {at}", x, y) for (at, x), (_, y) in pairs if x != y]
    shown = min(len(found), MOST_VALUES)
    yield from (found[k * len(found) // shown] for k in range(shown))
    if len(found) > shown:
        yield f"{len(found) - shown} more", "...", "..."


def _cells(section: Section) -> Iterator[tuple[str, str]]:
    """The operands and the result of each entry of a table of special values."""
    for row in section.table:
        if section.header[0] == "A \\ B":
            yield from (
                (f"({row[0]}, {b})", x) for b, x in zip(section.header[1:], row[1:], strict=True)
            )
        else:
            yield f"({', '.join(row[:-1])})", row[-1]

"""Writes a comparison as one self-contained HTML page without scripts or external resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

from uop.conformance.compare.columns import HEADER, NOTE, Column, badge, columns
from uop.conformance.compare.disagreements import (
    MOST,
    Answer,
    Disagreement,
    disagreements,
    fail_somewhere,
)
from uop.conformance.compare.matrix import MARKS, NOT_SEEN, Choice, Square, State, choices, matrix
from uop.conformance.judging.verdict import Status
from uop.conformance.report.html.markup import (
    Html,
    block,
    both,
    code,
    document,
    section,
    table,
    tag,
)
from uop.conformance.report.html.page_cells import WHOLE
from uop.conformance.report.html.page_failures import title_of
from uop.conformance.report.model import Report, counted
from uop.conformance.report.text import skipped_lines
from uop.conformance.report.vote import AS_EXPECTED
from uop.conformance.run.commands import case_command, compare_command
from uop.conformance.suite.case import ALL_LEVELS
from uop.spec.latitude import KNOBS

TITLE = "Backends side by side"
INTRO = (
    "Each is judged by the executable specification of the UOp language, the small set of tensor "
    "and kernel ops that tinygrad and its re-implementations compile. A result is right if the "
    "specification accepts it, to the bit. A backend is judged on the ops and dtypes that it lists."
)
MANY = "programs of many ops"
Links = Mapping[tuple[str, str], int]
"""By backend and row of the matrix the number of the first program on which they differ there."""


def page(report: Report) -> str:
    """The document. The first screen has the verdicts and the first ops."""
    shown, rows = columns(report), disagreements(report.every)
    css = files("uop.conformance.compare").joinpath("page.css").read_text(encoding="utf-8")
    found = f"{fail_somewhere(rows)}, ordinary values first"
    parts = [
        ("ops", "Every op on every backend", _matrix(report, shown, _links(rows))),
        ("choices", "What each chooses where the specification is open", _choices(report)),
        ("differences", found, "".join(_rows(report, rows))),
        ("not-judged", "What was not judged, and why", "".join(map(_skipped, report.every))),
        ("again", "Judge them again", _again(report, shown)),
    ]
    links = (tag("a", id.replace("-", " "), href=f"#{id}") for id, _, inside in parts if inside)
    head = tag("h1", TITLE) + tag("p", INTRO) + _backends(shown) + tag("nav", "".join(links))
    return document(TITLE, head + "".join(section(*part) for part in parts), css)


def _links(rows: Sequence[Disagreement]) -> Links:
    found: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows[:MOST]):
        for name, cause in row.causes.items():
            cells = [op if level == "op" else level for level, op, _ in cause.cells]
            for place in (*cells, *cause.ops):
                found.setdefault((name, place), number)
    return found


def _backends(shown: Sequence[Column]) -> Html:
    rows = [
        [
            escape(c.name) + tag("small", escape(c.about), title=c.about),
            badge(c),
            *c.numbers,
            escape(c.note),
        ]
        for c in shown
    ]
    return tag("div", table("", [*HEADER, NOTE], rows, "wide"), class_="verdicts")


def _matrix(report: Report, shown: Sequence[Column], links: Links) -> Html:
    every = report.every
    head = tag("th", "op", scope="col") + "".join(
        tag("th", escape(c.name), scope="col", title=f"{c.name}: {c.verdict}", class_=c.kind)
        for c in shown
    )
    absent = "".join(tag("td", "", title=c.verdict) for c in shown[len(every) :])
    body = ""
    for name, squares in matrix(every).items():
        if name in WHOLE and MANY not in body:
            body += tag(
                "tr", tag("th", MANY, scope="row", class_="many") + "<td></td>" * len(shown)
            )
        pairs = zip(every, squares, strict=True)
        cells = (_square(square, links.get((r.options.backend, name))) for r, square in pairs)
        title = tag("th", escape(WHOLE.get(name, name)), scope="row")
        body += tag("tr", title + "".join(cells) + absent)
    if not body:
        return ""
    legend = "".join(f"<b>{mark}</b> {escape(state)}" for state, mark in MARKS.items())
    says = "; a number counts programs, or those of all that fail; blank: not started"
    caption = tag("caption", "What each backend does with each op", class_="hidden")
    grid = caption + tag("thead", tag("tr", head)) + tag("tbody", body)
    scroll = tag("div", tag("table", grid), class_="matrix", tabindex="0")
    return tag("p", legend + says, class_="legend marks") + scroll


def _square(square: Square, link: int | None) -> Html:
    inside, title = escape(square.text), f"{square.state}: {square.why}"
    if square.state is State.FAILS and link is not None:
        inside = tag("a", inside, href=f"#d{link}")
    return tag("td", inside, class_=square.state.name.lower(), title=title)


def _choices(report: Report) -> Html:
    rows = [
        [_named(choice), *(_observed(choice, text) for text in choice.observed)]
        for choice in choices(report.every)
    ]
    header = ["choice", *(one.options.backend for one in report.every)]
    title = (
        "As small programs have shown; ≠ marks differences, ? what was not observed: where a "
        "profile is declared, only runs of all levels at effort default or full observe"
    )
    return table(title, header, rows, "wide") if rows else ""


def _named(choice: Choice) -> Html:
    name = code(choice.name) if choice.name in KNOBS else escape(choice.name)
    meaning = f"<br>{tag('small', escape(choice.meaning))}" if choice.meaning else ""
    return f"{'≠ ' * choice.differs}{name}{meaning}"


def _observed(choice: Choice, text: str) -> Html:
    class_ = "absent" if text == NOT_SEEN else ""
    if choice.differs and text not in (choice.usual, NOT_SEEN):
        class_ = "differs"
    return tag("span", escape(text), class_=class_)


def _rows(report: Report, rows: Sequence[Disagreement]) -> Iterator[Html]:
    options = {one.options.backend: one.options for one in report.every}
    for number, row in enumerate(rows[:MOST]):
        failure = row.failure
        answers = [
            [_answer(answer), escape(", ".join(names)), _causes(row, names)]
            for answer, names in row.groups.items()
        ]
        operands = f"For {both(row.inputs)}. " if row.inputs else ""
        accepted = f"Accepted: {both(row.accepted)}." if row.accepted else ""
        remarks = (escape(f"{row.backend}: {one}.") for one in failure.remarks)
        program = tag("summary", "The program") + block(failure.text)
        again = ""
        if failure.level in ALL_LEVELS:
            again = block(case_command(options[row.backend], failure.id))
        yield tag(
            "article",
            tag("h3", escape(title_of(failure)))
            + tag("p", escape(row.outcome), class_="quiet")
            + "".join(tag("p", line) for line in (operands + accepted, *remarks) if line)
            + table("", ["gives", "backends", "causes in their reports"], answers)
            + tag("details", program + again, open="" if row.inputs else "open"),
            id=f"d{number}",
        )
    if len(rows) > MOST:
        yield tag("p", f"and {len(rows) - MOST:,} more")


def _answer(answer: Answer) -> Html:
    if answer.status in (None, Status.SKIPPED):
        return tag("span", escape(answer.says), class_="absent")
    if answer.fails:
        return tag("span", both(answer.says), class_="wrong")
    return " ".join(filter(None, (answer.gives and both(answer.gives), AS_EXPECTED)))


def _causes(row: Disagreement, names: Sequence[str]) -> Html:
    causes = dict.fromkeys(row.causes[name].signature for name in names if name in row.causes)
    return "<br>".join(map(code, causes))


def _skipped(report: Report) -> Html:
    lines = skipped_lines(report)
    if not lines:
        return ""
    title = f"{report.options.backend}: {counted(report.summary.skipped, 'program')}"
    return tag("details", tag("summary", escape(title)) + block("\n".join(lines)))


def _again(report: Report, shown: Sequence[Column]) -> Html:
    made = f"Made by uop {report.suite}; its cases are those of generator "
    made += f"{report.generator.version} and seed {report.options.seed}."
    command = compare_command([column.name for column in shown], report.options)
    return block(command) + tag("p", escape(made), class_="quiet")

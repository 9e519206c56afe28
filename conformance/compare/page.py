"""Writes a comparison as one self-contained HTML page without scripts or external resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from uop.conformance.compare.badge import badge
from uop.conformance.compare.columns import Column, columns, compare_command
from uop.conformance.compare.disagreements import MOST, Disagreement, disagreements
from uop.conformance.compare.matrix import MARKS, NOT_SEEN, Choice, Square, State, choices, matrix
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
from uop.conformance.report.html.page_failures import title_of
from uop.conformance.report.html.page_matrix import WHOLE
from uop.conformance.report.model import Report, counted
from uop.conformance.report.text import skipped_lines
from uop.conformance.run.commands import case_command
from uop.conformance.suite.case import ALL_LEVELS
from uop.spec.latitude import KNOBS

TITLE = "Backends side by side"
Links = Mapping[tuple[str, str], int]
"""By backend and row of the matrix the number of the first disagreement about them."""


def page(report: Report) -> str:
    """The document. The first screen has the verdicts and the matrix."""
    shown, rows = columns(report), disagreements(report.every)
    css = files("uop.conformance.compare").joinpath("page.css").read_text(encoding="utf-8")
    intro = (
        "Each is judged by the executable specification of the UOp language: a result is right "
        "if the specification accepts it, to the bit."
    )
    parts = [
        tag("h1", TITLE) + tag("p", intro),
        _backends(shown),
        section("matrix", "Every op on every backend", _matrix(report, shown, links_of(rows))),
        section(
            "differences",
            f"{counted(len(rows), 'program')} on which they differ" if rows else "",
            *(_row(report, k, row) for k, row in enumerate(rows)),
        ),
        section("choices", "What each chooses where the specification is open", _choices(report)),
        section("skipped", "What was not judged, and why", *map(_skipped, report.every)),
        section("again", "Judge them again", block(compare_command(report)), _suite(report)),
    ]
    return document(TITLE, "".join(parts), css)


def links_of(rows: Sequence[Disagreement]) -> Links:
    found: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        for name, cause in row.causes.items():
            for level, op, _ in cause.cells:
                found.setdefault((name, op if level == "op" else level), number)
    return found


def _backends(shown: Sequence[Column]) -> Html:
    rows = [
        [
            escape(c.name) + (f"<br>{tag('small', escape(c.about))}" if c.about else ""),
            badge(c),
            *(f"{n:,}" if c.kind != "absent" else "" for n in (c.programs, c.failed, c.skipped)),
            escape(c.note),
        ]
        for c in shown
    ]
    header = ["backend", "verdict", "programs", "failed", "not judged", "profile, or the reason"]
    return tag("div", table("Verdicts", header, rows, "wide"), class_="badges")


def _matrix(report: Report, shown: Sequence[Column], links: Links) -> Html:
    every = report.every
    absent = shown[len(every) :]
    head = tag("th", "op", scope="col") + "".join(
        tag("th", escape(c.name), scope="col", title=c.verdict, class_=c.kind) for c in shown
    )
    body = "".join(
        tag(
            "tr",
            tag("th", escape(WHOLE.get(name, name)), scope="row")
            + "".join(
                _square(square, links.get((one.options.backend, name)))
                for one, square in zip(every, squares, strict=True)
            )
            + "".join(tag("td", "", title=c.verdict) for c in absent),
        )
        for name, squares in matrix(every).items()
    )
    legend = "".join(f"<b>{mark}</b> {escape(state)}" for state, mark in MARKS.items())
    grid = tag("caption", "Programs, or failing programs of all", class_="hidden")
    grid += tag("thead", tag("tr", head)) + tag("tbody", body)
    note = " with the number of programs, or of those that fail; blank: not started"
    return tag("p", legend + note, class_="legend marks") + tag(
        "div", tag("table", grid), class_="matrix", tabindex="0"
    )


def _square(square: Square, link: int | None) -> Html:
    text = escape(square.text)
    is_linked = square.state is State.FAILS and link is not None
    inside = tag("a", text, href=f"#d{link}") if is_linked else text
    return tag(
        "td", inside, class_=square.state.name.lower(), title=f"{square.state}: {square.why}"
    )


def _row(report: Report, number: int, row: Disagreement) -> Html:
    failure, vote = row.failure, row.vote
    odd = f": {', '.join(vote.odd)}" if vote.odd else ""
    counted_ = (
        f"{len(row.fails)} of {len(row.answers)} fail; the votes with the interpreter's say: "
    )
    where = tag("p", f"for {both(row.inputs)}") if row.inputs else ""
    accepted = tag("p", f"accepted: {both(row.accepted)}") if row.accepted else ""
    answers = [
        [
            escape(name),
            tag("span", both(answer.says), class_="wrong" if name in row.fails else ""),
            escape(row.causes[name].signature) if name in row.causes else "",
        ]
        for name, answer in row.answers.items()
    ]
    again = ""
    if failure.level in ALL_LEVELS:
        options = next(r.options for r in report.every if r.options.backend == row.backend)
        again = block(case_command(options, failure.id))
    remarks = "".join(tag("p", escape(f"{row.backend}: {one}.")) for one in failure.remarks)
    return tag(
        "article",
        tag("h3", escape(title_of(failure)))
        + tag("p", escape(f"{counted_}{vote.verdict}{odd}."), class_="quiet")
        + where
        + accepted
        + table("", ["backend", "gives", "cause in its report"], answers)
        + remarks
        + tag("details", tag("summary", "The program") + block(failure.text) + again),
        id=f"d{number}",
    )


def _choices(report: Report) -> Html:
    every = report.every
    rows = [
        [_named(choice), *(_observed(choice, text) for text in choice.observed)]
        for choice in choices(every)
    ]
    header = ["choice", *(one.options.backend for one in every)]
    return table("Observed by small programs", header, rows, "wide") if rows else ""


def _named(choice: Choice) -> Html:
    mark = "≠ " if choice.differs else ""
    name = f"{mark}{code(choice.name)}" if choice.name in KNOBS else mark + escape(choice.name)
    return name + (f"<br>{tag('small', escape(choice.meaning))}" if choice.meaning else "")


def _observed(choice: Choice, text: str) -> Html:
    is_other = choice.differs and text not in (choice.usual, NOT_SEEN)
    return tag("span", escape(text), class_="differs" if is_other else "")


def _skipped(report: Report) -> Html:
    lines = skipped_lines(report)
    if not lines:
        return ""
    count = f"{report.options.backend}: {counted(report.summary.skipped, 'program')}"
    return tag("details", tag("summary", escape(count)) + block("\n".join(lines)))


def _suite(report: Report) -> Html:
    return tag(
        "p",
        escape(f"uop {report.suite}, generator {report.generator.version}. At most {MOST} programs "
               "are shown, ordinary values first."),
        class_="quiet",
    )  # fmt: skip

"""Writes a report as one self-contained HTML page without scripts or external resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from html import escape
from itertools import count

from uop.conformance.checks import OBSERVED
from uop.conformance.coverage.ledger import ledger_lines
from uop.conformance.profile.card import Observation
from uop.conformance.profile.points import FREE
from uop.conformance.report.format import first_failed
from uop.conformance.report.html.markup import (
    Html,
    block,
    code,
    document,
    in_decimals,
    pairs,
    section,
    table,
    tag,
)
from uop.conformance.report.html.page_cells import accuracy, matrix
from uop.conformance.report.html.page_failures import FIRST, failures, first_failures, rules
from uop.conformance.report.model import SKIPPED, Conclusion, KnownFailure, Report, Summary
from uop.conformance.report.options import Origin
from uop.conformance.report.text import FEW, adapter_lines, rules_text
from uop.conformance.run.commands import (
    case_command,
    files_command,
    lost_command,
    more_command,
    repro_command,
)
from uop.spec.latitude import KNOBS
from uop.spec.text.profile_text import knob_values

WORDS = {
    "known": "fails, as expected",
    "fixed": "✕ passes now: remove its line",
    "expired": "✕ expired: mend it, or give it more time",
    "undecided": "✕ its program was not judged: write another one",
    SKIPPED: "skipped",
}
WEB = ("http://", "https://")


def known(report: Report) -> Html:
    """A row for each line of the file, stale ones first."""
    lines = report.known
    if not lines:
        return ""
    intro = (
        "Failures that the adopter of the backend has written down. They do not fail the run, but "
        "a line whose program passes or cannot be judged, or that has expired, does. A cause that "
        "the run was to skip stands here too."
    )
    parts = [tag("p", intro)]
    if stale := report.stale:
        parts += [tag("p", "These lines fail the run:", class_="wrong"), block("\n".join(stale))]
    ordered = sorted(lines, key=lambda line: not line.stale)
    header = ["what fails, and the program that shows it", "state", "reason", "until", "cases"]
    return "".join(parts) + table("Lines of the file", header, map(_row, ordered), "wide known")


def _row(line: KnownFailure) -> Sequence[Html]:
    state = escape(WORDS[line.state])
    return [
        f"{code(line.key)}<br>{tag('small', code(line.repro))}" if line.repro else code(line.key),
        tag("span", state, class_="wrong") if line.stale else state,
        escape(line.reason) + _link(line.link),
        escape(line.expires) or "not limited",
        _cases(line.cases),
    ]


def _link(text: str) -> Html:
    """A link for http(s) addresses; escaped text otherwise."""
    if not text:
        return ""
    shown = tag("a", escape(text), href=text) if text.startswith(WEB) else escape(text)
    return f"<br>{tag('small', shown)}"


def _cases(ids: Sequence[str]) -> Html:
    """The number of cases that a line covers, and their ids."""
    if not ids:
        return "none in this run"
    inside = tag("summary", f"{len(ids):,}") + "<br>".join(map(code, ids))
    return tag("details", inside)


HEADER = ("point", "the language allows", "observed", "evidence")


def card(report: Report) -> Html:
    """The observations of knobs, then the others; empty without a card."""
    if not report.card:
        return ""
    intro = tag(
        "p",
        "Small programs show what the backend does where the language leaves a choice. It was "
        f"judged by the profile {code(report.profile)}, {report.profile_from}.",
    )
    # Contradicting choices fail only under an observed profile.
    failed = {failure.signature for failure in report.failures}
    knobs = [entry for entry in report.card if entry.knob]
    free = [entry for entry in report.card if not entry.knob]
    rows = [[code(e.point), escape(FREE.get(e.point, "")), *_seen(e, failed)] for e in free]
    parts = [table("Choices that a profile names", HEADER, _of_knobs(knobs, failed), "wide card")]
    return intro + "".join(parts) + table("What else is open", HEADER, rows, "wide card")


def _of_knobs(entries: Sequence[Observation], failed: Collection[str]) -> Iterator[Sequence[Html]]:
    """A row per observation; the first of each knob has the description of the knob."""
    explained: set[str] = set()
    for entry in entries:
        words = "" if entry.knob in explained else _knob(entry.knob)
        explained.add(entry.knob)
        yield [code(entry.point), words, *_seen(entry, failed)]


def _knob(name: str) -> Html:
    if name not in KNOBS:
        return ""
    return f"{escape(KNOBS[name])}<br>{tag('small', escape(knob_values(name)))}"


def _seen(entry: Observation, failed: Collection[str]) -> tuple[Html, Html]:
    """The observed choice with its knob value, and the evidence."""
    observed = tag("strong", escape(entry.observed))
    if entry.declares:
        declared = code(f"{entry.knob}={entry.declares}")
        observed += f"<br>{tag('small', declared)}"
    if f"card {entry.point}" in failed:
        observed += f"<br>{tag('span', '✕ two things at once', class_='wrong')}"
    shown = entry.conflict or entry.evidence[:1]
    lines = "<br>".join(code(in_decimals(line)) for line in shown)
    rest = len(entry.evidence) - len(shown)
    if rest > 0:
        title = tag("summary", f"and {rest} more; all of them, exactly")
        lines += tag("details", title + block("\n".join(entry.evidence)))
    return observed, lines


MARKS = {Conclusion.CONFORMS: "✓", Conclusion.DOES_NOT: "✕", Conclusion.INCONCLUSIVE: "?"}
CLASSES = {
    Conclusion.CONFORMS: "good",
    Conclusion.DOES_NOT: "bad",
    Conclusion.INCONCLUSIVE: "open",
}
FIRED = "Rules of the compiler that fired"
MOST_VOTES = 200
CHOSEN = (
    *("effort", "levels", "ops", "with_ops", "dtypes", "skip_ops", "skip_dtypes"),
    *("skip_causes", "cases"),
    *("examples", "seconds", "timeout"),
)
"""The options that the page shows if they are set."""


def page(report: Report) -> str:
    """The document. The first screen has the verdict, three failures, the next step, the matrix."""
    every = report.every
    title = f"{report.backend.name}: {report.conclusion}"
    shown = [
        (id, label, section(id, title, *inside))
        for id, label, title, inside in (
            ("failures", "Failures", "Failures", _named(every, map(failures, every, count()))),
            ("known", "Known failures", "Known failures", _named(every, map(known, every))),
            ("rules", "Rules", "What the language says about these ops", [rules(every)]),
            ("vote", "Votes", "Who disagrees with whom", [_vote(report)]),
            ("accuracy", "Accuracy", "Accuracy", _named(every, map(accuracy, every))),
            ("skipped", "Not judged", "Not judged", _named(every, map(_skipped, every))),
            ("card", "Device card", "Device card", _named(every, map(card, every))),
            ("ledger", "Ledger", "Ledger", _named(every, map(_ledger, every))),
            ("fired", "Rules that fired", FIRED, _named(every, map(_fired, every))),
            ("run", "This run", "This run", _named(every, map(_run, every))),
        )
    ]
    links = "".join(tag("a", label, href=f"#{id}") for id, label, part in shown if part)
    parts = "".join(part for _, _, part in shown)
    failed = next((one for one in every if one.failures), report)
    first = "".join(map(_verdict, every)) + first_failures(every) + _next(failed)
    main = tag("div", first, class_="first") + matrix(every) + tag("nav", links) + parts
    return document(title, main)


def _named(every: Sequence[Report], parts: Iterable[Html]) -> Iterator[Html]:
    """Put the name of the backend above each part, if there are several backends."""
    for one, inside in zip(every, parts, strict=True):
        is_named = len(every) > 1 and inside
        yield (tag("h3", escape(one.options.backend)) if is_named else "") + inside


def _verdict(report: Report) -> Html:
    backend, verdict = report.backend, report.conclusion
    who = f"{backend.name} {backend.version} on {backend.device}"
    mark = tag("span", MARKS[verdict], aria_hidden="true")
    says = "was not judged" if verdict is Conclusion.INCONCLUSIVE else verdict
    early = " so far: the run was interrupted" if report.summary.interrupted else ""
    heading = tag("h1", f"{mark} {escape(backend.name)} {says}{early}")
    return tag(
        "header",
        heading
        + tag("p", escape(f"{_why(report)} {who}."))
        + "".join(tag("p", escape(f"{line}.")) for line in adapter_lines(report))
        + _figures(report.summary)
        + _liberties(report.summary),
        class_=CLASSES[verdict],
    )


def _liberties(summary: Summary) -> Html:
    """The liberties that the backend takes, each with its example."""
    if not summary.liberties:
        return ""
    rows = [f"{code(knob)}: {escape(example)}" for knob, example in summary.liberties.items()]
    title = tag("p", "It takes liberties, choices outside the strict language:")
    return title + tag("ul", "".join(tag("li", row) for row in rows))


def _why(report: Report) -> str:
    summary = report.summary
    match summary.verdict:
        case Conclusion.CONFORMS if summary.known:
            return (
                f"All but {summary.known:,} of {summary.programs:,} programs gave results that the "
                f"language allows; those that did not are {report.excused}."
            )
        case Conclusion.CONFORMS:
            all_ = f"Every one of {summary.programs:,} programs"
            return f"{all_} gave results that the language allows."
        case Conclusion.INCONCLUSIVE:
            return f"Nothing can be said: {summary.open_because}."
    if summary.wrong:
        crashes = f" {summary.crashed:,} of them ended it." if summary.crashed else ""
        all_ = f"{summary.wrong:,} of {summary.programs:,} programs"
        return f"{all_} gave what the language forbids.{crashes}"
    if not report.failures:
        return "No program failed, but lines of the file of known failures are out of date."
    if report.profile_from != OBSERVED and summary.liberties:
        return "No program failed, but it takes liberties that the profile does not allow."
    return "No program failed, but where it may choose it does two things at once."


def _figures(summary: Summary) -> Html:
    figures = [
        ("programs", f"{summary.programs:,}"),
        ("values compared", f"{summary.elements:,}"),
        ("failed", f"{summary.wrong:,}"),
        *([("known failures", f"{summary.known:,}")] if summary.known else []),
        ("not judged", f"{summary.skipped:,}"),
        ("time", _duration(summary.seconds)),
    ]
    shown = (tag("div", tag("dt", name) + tag("dd", value)) for name, value in figures)
    return tag("dl", "".join(shown), class_="figures")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _next(report: Report) -> Html:
    """The command to run next."""
    options, again = report.options, "Next, run the first of them again:"
    if report.failures:
        command, what = repro_command(options, report.failures[0].repro), again
    elif failed := [cell for cell in report.cells if cell.failed]:
        command, what = case_command(options, first_failed(report, failed[0])), again
    elif report.stale:
        command, what = report.stale[0], "Next, mend the file of known failures:"
    elif options.exported is not None:
        command, what = files_command(options), "Next, judge the files again:"
    elif report.summary.lost and not report.summary.unfit:
        command, what = lost_command(options), "Next, see on which program it is lost:"
    elif report.summary.passed:
        command, what = more_command(options), "Next, check more programs:"
    else:
        command, what = "uop backends", "Next, see what can be judged here:"
    more = len(report.faults) - FIRST
    rest = tag("a", f"{more} more faults", href="#failures") if more > 0 else ""
    return tag("div", tag("p", what) + block(command) + rest, class_="next")


def _vote(report: Report) -> Html:
    vote = report.vote
    if vote is None:
        return ""
    missing = "".join(tag("p", escape(f"Not started: {why}")) for why in vote.missing)
    rows = [
        [
            code(case.id),
            escape(case.verdict + (f": {', '.join(case.odd)}" if case.odd else "")),
            *(escape(case.says.get(name, "")) for name in vote.backends),
        ]
        for case in vote.cases[:MOST_VOTES]
    ]
    more = len(vote.cases) - MOST_VOTES
    rest = tag("p", f"and {more:,} more cases") if more > 0 else ""
    if not rows:
        return missing + tag("p", "No case failed on any of them.")
    header = ["case", "says the vote", *vote.backends]
    return missing + table("Cases that failed somewhere", header, rows, "wide") + rest


def _skipped(report: Report) -> Html:
    counts: Counter[str] = Counter()
    ops: dict[str, set[str]] = {}
    for cell in report.cells:
        counts.update(cell.skipped)
        for reason in cell.skipped:
            ops.setdefault(reason, set()).add(cell.op)
    rows = [
        [escape(reason), f"{count:,}", escape(" ".join(sorted(ops[reason])))]
        for reason, count in counts.most_common()
    ]
    listed = [[escape(why), "", ""] for why in report.summary.untried]
    header = ["reason", "programs", "ops"]
    unjudged = table("Programs that were not judged, and why", header, rows, "wide") if rows else ""
    more = table("Listed by the backend, yet not judged", header[:1], listed) if listed else ""
    return unjudged + more


def _ledger(report: Report) -> Html:
    """The totals by kind, then the uncovered points; only the JSON has the evidence of points."""
    totals = report.ledger
    if totals is None:
        return ""
    if not totals.total:
        return "".join(tag("p", escape(line)) for line in ledger_lines(totals))
    intro = f"{totals.checked:,} of {totals.total:,} points of the language were exercised."
    rows = [
        [escape(name), f"{kind.checked:,} of {kind.total:,}", escape(kind.says)]
        for name, kind in totals.kinds.items()
    ]
    sums = table("Points by kind", ["kind", "exercised", "a point is"], rows, "wide")
    rest = "".join(
        tag(
            "details",
            tag("summary", escape(f"{len(left.points):,}: {left.reason}"))
            + tag("p", escape("; ".join(left.points))),
        )
        for left in (*totals.unchecked, *totals.not_of_runs)
    )
    return tag("p", intro) + sums + rest


def _fired(report: Report) -> Html:
    """A row for each rule, in the order of the stages."""
    if not report.rules:
        return ""
    rows = [
        [code(name), tag("span", f"{n:,}", class_="wrong") if n < FEW else f"{n:,}"]
        for name, n in report.rules.items()
    ]
    (line,) = rules_text(report)
    return tag("p", escape(line)) + table("By stage", ["rule", "programs"], rows)


def _run(report: Report) -> Html:
    options, summary = report.options, report.summary
    chosen = [(name, value) for name in CHOSEN if (value := getattr(options, name))]
    origin = [(part.name, getattr(report.origin, part.name, "")) for part in fields(Origin)]
    entries: list[tuple[str, Html]] = [
        ("backend", code(options.backend)),
        ("judged by the profile", code(report.profile)),
        ("seed", escape(str(options.seed))),
        *((name, escape(" ".join(v) if isinstance(v, tuple) else str(v))) for name, v in chosen),
        ("results with one allowed value", f"{summary.single_share:.1%}"),
        ("results tightly bounded", f"{summary.constrained_share:.1%}"),
        ("memory, at most", f"{summary.peak_bytes >> 20:,} MiB"),
        ("version of the suite", escape(report.suite)),
        *((name, code(text)) for name, text in origin if text),
        ("do its verdicts hold?", code("uop replay REPORT.json --sample 100")),
    ]
    return pairs(entries)

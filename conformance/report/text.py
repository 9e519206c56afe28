"""The text of a report: verdict, figures, matrix, causes, what was skipped, the next command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

from uop.conformance.backends import INTERPRETER
from uop.conformance.checks import COMMAND, OBSERVED
from uop.conformance.coverage.ledger import ledger_lines, strength_line
from uop.conformance.judging.judge import SENT
from uop.conformance.judging.lowering import LEAVES_OUT, OPTIMIZED, UNSUPPORTED
from uop.conformance.profile.card import Card
from uop.conformance.protocol.types import BLAMED
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.reference.glossary import LOOK
from uop.conformance.report.model import Cell, Conclusion, Failure, Report, counted
from uop.conformance.report.tally import unjudged_text
from uop.conformance.run.commands import (
    case_command,
    conform_command,
    lost_command,
    more_command,
    repro_command,
    uop_command,
)
from uop.conformance.suite.case import ALL_LEVELS, FUZZ, MIXED
from uop.spec.dtype import DTypesOf, Kind

COLUMNS = tuple(
    tuple(dtype.name for dtype in DTypesOf(kind))
    for kind in (Kind.BOOL, Kind.INT, Kind.UINT, Kind.FLOAT)
)
KNOWN = frozenset(name for group in COLUMNS for name in group)
LEGEND = (
    ". passed  F failed  K known  s skipped   columns: bool | int8 16 32 64 | uint8 16 32 64 |",
    " ".join(COLUMNS[-1]),
)
STATES = {"failed": "F", "known": "K", "passed": ".", "skipped": "s"}
"""The marks of cells, the most severe first."""
CARD = "card: "
UNWATCHED = "not watched: whether the worker reads or writes beside its inputs"
NAME_WIDTH = 19
DETAILED = 5
"""The faults of which the text has the repro too, and what explains them."""
MOST_FAULTS = 40
"""The faults that have a line."""
MOST_NOTES = 5
LEAST_ROWS = 12
"""The lines of the matrix beside many causes."""
MOST_REASONS = 5
REASON_WIDTH = 90
MESSAGE_WIDTH = 150


def summary(report: Report, most_lines: int) -> list[str]:
    """The lines at the end of a run, the verdict first."""
    head = [f"verdict: {verdict_line(report)}", figures_line(report)]
    if report.strength is not None:
        head.append(strength_line(report.strength))
    liberties = report.summary.liberties.items()
    head += [one_line(f"takes a liberty: {knob}: {example}") for knob, example in liberties]
    head += [LOOK, ""]
    tail = ["", *failure_lines(report), *card_lines(report)]
    tail += [
        *against_lines(report),
        *adapter_lines(report),
        *known_lines(report),
        *([] if report.ledger is None else whole_lines(ledger_lines(report.ledger))),
        *map(one_line, rules_text(report)),
    ]
    # The suite lends its inputs to adapters in Python alone.
    tail += [UNWATCHED] if report.options.backend.startswith(COMMAND) else []
    tail += next_lines(report)
    rows = max(LEAST_ROWS, most_lines - len(head) - len(tail))
    return [*head, *matrix(report, rows), *tail]


def verdict_line(report: Report) -> str:
    name, conclusion = report.backend.name, report.conclusion
    early = f" in shard {report.options.shard}" if report.options.shard else ""
    early += " so far (interrupted)" if report.summary.interrupted else ""
    is_fuzz = report.options.effort == FUZZ
    observed = f"{OBSERVED} " * (report.profile_from == OBSERVED)
    match conclusion:
        case Conclusion.CONFORMS:
            but = f", but for {report.excused}" if report.excused else ""
            verb = "has shown no failure" if is_fuzz else "conforms"
            return f"{name} {verb}{early} under the {observed}profile {report.profile}{but}"
        case Conclusion.DOES_NOT:
            if report.stale and not report.summary.wrong and not report.failures:
                return f"{name} fails: {report.stale[0]}"
            verb = "fails" if is_fuzz else "does not conform"
            return f"{name} {verb}: outside the {observed}profile {report.profile}{early}"
    return f"{name}: inconclusive{early}, {report.summary.open_because}"


def figures_line(report: Report) -> str:
    sums = report.summary
    # Files of reports do not have it.
    graphs = "" if report.graphs is None else f"{report.graphs:,} distinct graphs; "
    memory = f", {sums.peak_bytes >> 20:,} MiB" if sums.peak_bytes else ""
    if sums.judge_bytes:
        replaced = f", {sums.judges_replaced} replaced" if sums.judges_replaced else ""
        memory += f" (judges {sums.judge_bytes >> 20:,} MiB{replaced})"
    return (
        f"{progress_of(sums.programs, sums.elements, sums.wrong)}; {sums.checks:,} checks, "
        f"{sums.again:,} again, "
        f"{percent(sums.constrained_share, sums.measured)} constrained, "
        f"{percent(sums.single_share, sums.measured)} single, "
        f"{graphs}{sums.seconds:.1f} s{memory}"
    )


def progress_of(programs: int, elements: int, failed: int) -> str:
    return f"{programs:,} programs, {elements:,} elements, {failed:,} failed"


def percent(share: float, of: int) -> str:
    """A share in percent; `-` if `of` is 0."""
    return f"{share:.1%}" if of else "-"


def matrix(report: Report, most_lines: int) -> list[str]:
    """The matrix: a mark per op and dtype, two ops per line; levels of many ops last."""
    rows = report.rows
    names = sorted(rows, key=lambda name: (name in ALL_LEVELS, name))
    entries = [f"{name:<{NAME_WIDTH}}{_cells(rows[name])}" for name in names]
    half = -(-len(entries) // 2)
    left, right = entries[:half], entries[half:] + [""] * (2 * half - len(entries))
    lines = [f"{a:<40}{b}".rstrip() for a, b in zip(left, right, strict=True)]
    room = most_lines - len(LEGEND)
    if len(lines) > room:
        lines = [*lines[: room - 1], f"... and {len(lines) - room + 1} more lines"]
    return [*LEGEND, *lines] if lines else []


def _cells(cells: list[Cell]) -> str:
    by_dtype: dict[str, list[Cell]] = {}
    for cell in cells:
        by_dtype.setdefault(cell.dtype, []).append(cell)
    if not KNOWN & by_dtype.keys():
        return _mark(cells)
    return " ".join("".join(_mark(by_dtype.get(d, [])) for d in group) for group in COLUMNS)


def _mark(cells: list[Cell]) -> str:
    """The mark of the most severe state."""
    states = {cell.state for cell in cells}
    return next((mark for state, mark in STATES.items() if state in states), " ")


def failure_lines(report: Report) -> list[str]:
    """A line for each fault, the worst ones with the command that reproduces them."""
    lines = []
    for number, (failure, *alike) in enumerate(report.faults[:MOST_FAULTS]):
        inputs = failure.values[0].inputs if failure.values else ()
        detail = f"for {', '.join(inputs)}: {failure.message}" if inputs else failure.message
        if number >= DETAILED:
            more = f" (and {', '.join(one.signature for one in alike)})" if alike else ""
            lines.append(one_line(f"FAILED [{failure.signature}]{more}: {detail}"))
            continue
        lines.append(one_line(f"FAILED {failure.id} [{failure.signature}]: {detail}"))
        blamed = [line for line in failure.message.splitlines() if line.startswith(BLAMED)]
        lines += ["       " + one_line(line) for line in blamed[:1]]
        if failure.when.text:
            lines.append("       " + one_line(failure.when.text))
        if alike:
            shown = ", ".join(one.signature for one in alike)
            lines.append("       " + one_line(f"the same fault: {shown}"))
        if len(failure.cases) > 1:
            lines.append("       " + one_line(explained(failure)))
        lines += ["       " + one_line(remark) for remark in failure.remarks]
        lines.append(f"       {repro_command(report.options, failure.repro)}")
    more_faults = len(report.faults) - MOST_FAULTS
    if more_faults > 0:
        lines.append(f"... and {counted(more_faults, 'more fault')}")
    if len(report.failures) > DETAILED:
        lines.append(f"all programs are in {Path(report.failures[-1].repro).parent}")
    return [*lines, *unexplained_lines(report)]


def explained(failure: Failure) -> str:
    """What a cause explains: the number of its cases, their ops and dtypes, the other levels."""
    dtypes: dict[str, list[str]] = {}
    for level, op, dtype in failure.cells:
        if level == "op":
            dtypes.setdefault(op, []).append(dtype)
    parts = [f"{op} on {', '.join(found)}" for op, found in dtypes.items()]
    levels = dict.fromkeys(level for level, _, _ in failure.cells if level != "op")
    parts += [f"level {', '.join(levels)}"] if levels else []
    return f"explains {counted(len(failure.cases), 'failing program')}: {'; '.join(parts)}"


def unexplained_lines(report: Report) -> list[str]:
    """The failing cases whose cause was not found, in a line; none where all were."""
    ids, summary = report.unexplained, report.summary
    if not ids:
        return []
    spent = f"{summary.searching:.0f} of {summary.seconds:.0f} s went into the search for causes"
    return [
        one_line(f"{counted(len(ids), 'failing program')} not yet explained ({spent}): {ids[0]}")
    ]


def card_lines(report: Report) -> list[str]:
    """The profile and the observations without a knob, in short."""
    if report.card is None:
        return []
    card = Card(report.card)
    # NULs keep `wrap` from breaking a line inside an observation.
    points = (f"{e.point}: {e.observed}".replace(" ", "\0") for e in card.entries if not e.knob)
    wrapped = wrap("; ".join(points), MESSAGE_WIDTH - len(CARD))
    lines = [str(card.profile), *(line.replace("\0", " ") for line in wrapped)]
    return [one_line(CARD + line) for line in lines]


def against_lines(report: Report) -> list[str]:
    """What a comparison with another backend has left out, in a line."""
    other = report.against
    if other is None:
        return []
    shared = f"{counted(other.shared, 'failing program')} fail on {other.backend} too"
    lines = [f"do not count: {shared}, and {other.skipped:,} that it does not support"]
    shown = (f"{flaky.signature}: {flaky.text}" for flaky in other.flaky)
    return lines + [one_line(f"flaky, so it does not count: {line}") for line in shown]


def adapter_lines(report: Report) -> list[str]:
    """What there is to say of the adapter and its builds, and what is not judged or was judged
    again, a line for each.
    """
    untested, summary = report.backend.untested, report.summary
    lines = [f"note: {untested}"] if untested and not summary.unfit else []
    if quick := report.backend.quick:
        share = f"{OPTIMIZED - 1} of {OPTIMIZED} programs that come together"
        lines.append(f"built with {quick}: {share}; what runs alone is built without it")
    if report.options.backend == INTERPRETER:
        share = f"{SENT - 1} of {SENT} programs on one device"
        lines.append(f"not sent: {share}, whose expected results are its own")
    lines += [unjudged_text({why: n}) for why, n in summary.unjudged.items()][:MOST_NOTES]
    lines += [
        f"{counted(n, 'program')} refused for their data, which are {classes}"
        for classes, n in summary.by_data.items()
    ][:MOST_NOTES]
    if summary.retried:
        times = counted(summary.retried, "group")
        lines.append(f"{times} of programs judged again alone: lost together, none of them alone")
    return list(map(one_line, lines))


def known_lines(report: Report) -> list[str]:
    """The known failures in one line, one for each that is stale, one for each skipped cause."""
    skipped = {cause.key: len(cause.cases) for cause in report.skipped_causes}
    lines = []
    if report.lines:
        lines.append(
            f"known failures: {counted(len(report.lines), 'line')}, "
            f"{counted(report.summary.known - sum(skipped.values()), 'program')} failed as they say"
        )
    lines += [f"FAILED {line}" for line in report.stale[:MOST_NOTES]]
    lines += [
        f"skipped cause {key}: {counted(n, 'program')} failed" for key, n in skipped.items() if n
    ]
    idle = [known.note for known in report.known if known.note]
    return list(map(one_line, [*lines, *(f"note: {note}" for note in idle[:MOST_NOTES])]))


def next_lines(report: Report) -> list[str]:
    """The suggested next commands."""
    options = report.options
    if report.summary.unfit:
        return []
    cases = [failure.id for failure in report.failures if failure.level in ALL_LEVELS]
    if cases:
        return [*skipped_lines(report), f"the whole case again: {case_command(options, cases[0])}"]
    if report.failures:
        show = uop_command("profile", "show", options.backend)
        return [*skipped_lines(report), f"what was observed: {show}"]
    listed = [
        one_line(f"listed but not judged: {why}") for why in report.summary.untried[:MOST_NOTES]
    ]
    command = lost_command(options) if report.summary.lost else more_command(options)
    if options.ops and not report.summary.lost:
        command = conform_command(options, "--with", ",".join(options.ops))
    return [*listed, *skipped_lines(report), f"next: {command}"]


def skipped_lines(report: Report) -> list[str]:
    """The skip reasons, the most frequent first: a line for each, with the largest groups.

    The groups of a reason are the names that are missing where it says them, else ops and dtypes.
    """
    reasons: dict[str, Skipped] = {}
    for cell in report.cells:
        for reason, n in cell.skipped.items():
            verb = next((verb for verb in (UNSUPPORTED, LEAVES_OUT) if verb in reason), "")
            who, _, names = reason.partition(verb) if verb else ("", "", "")
            # The found value differs between programs with the same reason.
            text = who + verb if verb else in_one_line(reason).partition(": found ")[0]
            skipped = reasons.setdefault(text, Skipped())
            place = cell.level if cell.op == MIXED else cell.op
            groups = names.split(", ") if verb else [f"{place} {cell.dtype}"]
            skipped.add(n, groups)
    ordered = sorted(reasons.items(), key=lambda item: (-item[1].programs, item[0]))
    lines = [one.line(reason) for reason, one in ordered]
    if len(lines) < 2:
        return [f"skipped {line}" for line in lines]
    head = f"skipped {sum(one.programs for _, one in ordered):,}: {len(lines)} reasons"
    rest = [one for _, one in ordered[MOST_REASONS:]]
    more = f"{sum(one.programs for one in rest):,}: {counted(len(rest), 'more reason')}"
    return [head, *(f"  {line}" for line in [*lines[:MOST_REASONS], *([more] if rest else [])])]


@dataclass(slots=True)
class Skipped:
    """The programs that were skipped for one reason, and their numbers by group."""

    programs: int = 0
    groups: Counter[str] = field(default_factory=Counter)

    def add(self, programs: int, groups: Iterable[str]) -> None:
        self.programs += programs
        self.groups.update(dict.fromkeys(groups, programs))

    def line(self, reason: str) -> str:
        """The number, the reason, and the largest groups that fit."""
        line = f"{self.programs:,}: {clipped(reason, REASON_WIDTH)}"
        line += "" if reason.endswith(" ") else ": "
        ordered = sorted(self.groups.items(), key=lambda item: (-item[1], item[0]))
        for k, (name, n) in enumerate(ordered):
            longer = f"{line}{', ' if k else ''}{name} ({n:,})"
            if len(longer) > MESSAGE_WIDTH - len("skipped  and 1,000 more"):
                return f"{line} and {len(ordered) - k:,} more"
            line = longer
        return line


def whole_lines(lines: Iterable[str]) -> list[str]:
    """Wrap lines without truncating them."""
    wrapped = (
        wrap(line, MESSAGE_WIDTH, subsequent_indent="  ", break_long_words=False) for line in lines
    )
    return [part for parts in wrapped for part in parts]


def one_line(text: str) -> str:
    return clipped(in_one_line(text), MESSAGE_WIDTH)


def clipped(line: str, width: int) -> str:
    """Truncate a line to `width` characters."""
    return line if len(line) <= width else line[: width - 3] + "..."


FEW = 3
"""A rule that fired in fewer programs is hardly tested."""


def rare(report: Report) -> dict[str, int]:
    """The rules that fired in few programs, the fewest first."""
    counts = report.rules or {}
    return {name: n for name, n in sorted(counts.items(), key=lambda rule: rule[1]) if n < FEW}


def rules_text(report: Report) -> list[str]:
    """How many rules fired, and the names of the rare ones; nothing without rules."""
    if not report.rules:
        return []
    fired, few = sum(map(bool, report.rules.values())), rare(report)
    names = ", ".join(f"{name} ({n})" for name, n in few.items())
    rest = f"; {len(few)} in fewer than {FEW} programs: {names}" if few else ""
    return [f"rules: {fired} of {len(report.rules)} fired{rest}"]

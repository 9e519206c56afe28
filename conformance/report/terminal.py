"""Displays for a terminal and a log: progress, then the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from uop.conformance.judging.compare import NOTHING
from uop.conformance.judging.verdict import Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import Conclusion, Failure, Report, share
from uop.conformance.report.tally import Tally
from uop.conformance.report.text import one_line, percent, progress_of, summary, verdict_line
from uop.conformance.suite.case import ALL_LEVELS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from uop.conformance.run.options import Options

MOST_LINES = 60
MOST_CAUSES = 8
"""The most causes that are shown while a run lasts; the report has all."""
FIRST_STEP = 1.0


class Display:
    """The base class of displays; it shows nothing."""

    def started(self, hello: Hello, options: Options, cases: int | None) -> None: ...

    def progress(self, tally: Tally, seconds: float) -> None: ...

    def failed(self, verdict: Verdict) -> None: ...

    def explored(self, causes: Sequence[Failure], points: int) -> None:
        """Show the causes that are known so far, and how many points of the spec were covered."""

    def finished(self, report: Report) -> None: ...


class Lasting(Display):
    """Wraps a display, so that an output error such as a full disk does not end the run.

    `refused` is the first such error.
    """

    def __init__(self, display: Display) -> None:
        self.refused: OSError | None = None
        for name in ("started", "progress", "failed", "explored", "finished"):
            setattr(self, name, partial(self._show, getattr(display, name)))

    def _show(self, show: Callable[..., None], *shown: Any) -> None:
        if self.refused is None:
            try:
                show(*shown)
            except OSError as error:
                self.refused = error


class Log(Display):
    """Plain lines without control characters; the number of lines is limited."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self.next_line, self.lines = 0.0, 0
        self.causes: dict[str, None] = {}
        """The signatures of the causes that have a line."""

    def started(self, hello: Hello, options: Options, cases: int | None) -> None:
        self._line(headline(hello, options, cases))

    def progress(self, tally: Tally, seconds: float) -> None:
        """Write a line at the first result, and whenever the time has doubled."""
        if seconds >= self.next_line:
            failed = sum(cell.failed for cell in tally.cells.values())
            shown = progress_of(tally.programs, tally.compared.elements, failed)
            self._line(f"{seconds:7.1f} s  {shown}")
            self.next_line = max(FIRST_STEP, 2 * seconds)

    def explored(self, causes: Sequence[Failure], points: int) -> None:
        """Write a line for each new cause: whoever ends the run has read it."""
        for cause in causes:
            if cause.signature not in self.causes and len(self.causes) < MOST_CAUSES:
                self.causes[cause.signature] = None
                self._line(one_line(f"cause: {cause.signature}: {cause.message}"))

    def finished(self, report: Report) -> None:
        for line in summary(report, MOST_LINES - self.lines):
            self._line(line)

    def _line(self, line: str) -> None:
        self.lines += 1
        self.write(line)


class Brief(Log):
    """A log of the progress, and of the verdict alone: another form shows the rest."""

    def finished(self, report: Report) -> None:
        self._line(one_line(f"verdict: {verdict_line(report)}"))


class Screen(Display):
    """A table of levels that is redrawn in place during the run."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self.console = console
        self.live = Live(console=console, transient=True, refresh_per_second=4)
        self.cases: int | None = 0
        self.last_failure = ""
        self.causes: Sequence[Failure] = ()
        self.points = 0

    def started(self, hello: Hello, options: Options, cases: int | None) -> None:
        self.cases = cases
        self.console.print(headline(hello, options, cases), highlight=False, markup=False)
        self.live.start()

    def progress(self, tally: Tally, seconds: float) -> None:
        self.live.update(self._table(tally, seconds))

    def failed(self, verdict: Verdict) -> None:
        if verdict.failure is not None:
            self.last_failure = one_line(f"{verdict.id}: {verdict.failure.message}")

    def explored(self, causes: Sequence[Failure], points: int) -> None:
        self.causes, self.points = causes, points

    def stop(self) -> None:
        """Stop the live table; safe to call before it starts."""
        self.live.stop()

    def finished(self, report: Report) -> None:
        self.stop()
        color = {
            Conclusion.CONFORMS: "green",
            Conclusion.DOES_NOT: "red",
            Conclusion.INCONCLUSIVE: "yellow",
        }
        verdict, *rest = summary(report, MOST_LINES)
        self.console.print(
            verdict, style=f"bold {color[report.conclusion]}", highlight=False, markup=False
        )
        for line in rest:
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _table(self, tally: Tally, seconds: float) -> Table:
        from rich.table import Table

        done = sum(tally.counts.values())
        # Extra cases for gaps of the ledger are not in self.cases.
        of = "" if self.cases is None else f" of {max(self.cases, done):,}"
        rate = f"{done / seconds:,.0f} a second" if seconds else ""
        points = f", {self.points:,} points of the spec" if self.points else ""
        lines = [f"{done:,}{of} cases, {seconds:.0f} s, {rate}{points}", self.last_failure]
        often = sorted(self.causes, key=lambda cause: -len(cause.cases))[:MOST_CAUSES]
        lines += [one_line(f"{len(c.cases):,} times {c.signature}") for c in often]
        table = Table("level", caption="\n".join(lines), caption_justify="left")
        for name in ("programs", "elements", "constrained", "failed"):
            table.add_column(name, justify="right")
        for level in ALL_LEVELS:
            cells = [cell for cell in tally.cells.values() if cell.level == level]
            counts = sum((cell.counts for cell in cells), NOTHING)
            failed = sum(cell.failed for cell in cells)
            table.add_row(
                level,
                f"{sum(cell.programs for cell in cells):,}",
                f"{counts.elements:,}",
                percent(share(counts.constrained, counts.measured), counts.measured),
                f"{failed:,}",
                style="red" if failed else None,
            )
        return table


def headline(hello: Hello, options: Options, cases: int | None) -> str:
    """The first line: backend, profile, seed and number of cases, or the time."""
    verb, amount = "judging", f"{cases or 0:,} cases"
    if cases is None:
        verb, amount = "fuzzing", f"{options.seconds or 0:,.0f} s"
    return (
        f"{verb} {hello.name} {hello.version} on {hello.device}, profile {options.profile}, "
        f"seed {options.seed}: {amount}"
    )

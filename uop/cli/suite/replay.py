"""`uop replay`: judges programs in files again, such as the repros that `uop conform` writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli.names import BACKEND
from uop.cli.programs.files import edition_option, native_option
from uop.cli.suite.options import begin, log_option
from uop.cli.suite.outcome import CODES
from uop.conformance.run import Exit
from uop.spec.errors import UopError

if TYPE_CHECKING:
    from uop.conformance.run.replay import Replayed

MOST_LINES = 50
DEFAULT = "opencl"
REPORT = ".json"
SAMPLE = 100
"""The default number of cases of a report that are judged again."""


@click.command("replay")
@click.argument("arguments", nargs=-1, required=True, metavar="FILE|FOLDER... [BACKEND]")
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Of a REPORT.json: judge N of its cases again, and say whether its verdicts hold.",
)
@click.option(
    "--emit-requests", is_flag=True, help="Print what a worker would read on stdin instead."
)
@click.option(
    "--emit-python",
    is_flag=True,
    help="Print the one program of FILE as a script of uop's Python API instead, with its inputs "
    "by bits: it runs by the interpreter, or by BACKEND where that is a target of `uop compile`.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="For `git bisect run`: exit with 125, which skips a commit, where nothing can be judged.",
)
@edition_option
@native_option
@log_option
def replay(
    arguments: tuple[str, ...],
    sample: int | None,
    emit_requests: bool,
    emit_python: bool,
    bisect: bool,
    edition: str,
    native: bool,
    log: Path | None,
) -> int:
    """Judge programs in files again, or some cases of a report.

    Programs run on BACKEND, by default opencl. A file may say what it accepts; otherwise the spec
    does. Given a report that `uop conform --json` wrote, it judges some cases again, on the
    report's backend or on BACKEND. Where that backend is a module or a command, name it or say
    --native.
    """
    from uop.conformance.backends import names
    from uop.conformance.run.replay import replay, requests

    if sample is not None or Path(arguments[0]).suffix == REPORT:
        for_programs = {
            "--emit-requests": emit_requests,
            "--emit-python": emit_python,
            "--log-protocol": log is not None,
            "--edition": bool(edition),
            "--bisect": bisect,
        }
        for option in (name for name, is_set in for_programs.items() if is_set):
            raise click.UsageError(f"{option} is for programs, not for a report")
        return replay_report(arguments, sample or SAMPLE, native=native)
    *first, last = arguments
    last = BACKEND.convert(last, None, None)
    is_backend = bool(first) and (last in names() or ":" in last)
    backend, paths = (last, first) if is_backend else (DEFAULT, [*first, last])
    if emit_requests and log is not None:
        raise click.UsageError("--log-protocol: expected no --emit-requests, which runs nothing")
    if emit_requests:
        named = backend if is_backend else ""
        leave_out = partial(click.echo, err=True)
        for line in requests([Path(path) for path in paths], named, leave_out, edition):
            click.echo(line, nl=False)
        return Exit.OK
    if emit_python:
        click.echo(script(paths, backend if is_backend else "interpreter", edition), nl=False)
        return Exit.OK
    begin(log, backend)
    files = [Path(path) for path in paths]

    def judge() -> Exit:
        return print_results(replay(files, backend, log, edition, native=native), backend)

    return for_bisect(judge) if bisect else judge()


def script(paths: Sequence[str], backend: str, edition: str) -> str:
    """The one program of a file as a script."""
    from uop.conformance.bug_report.python_script import python_script
    from uop.conformance.suite.own_cases import files_of, read_cases

    files = files_of([Path(path) for path in paths])
    cases = [case for path in files for case in read_cases(path, edition)]
    if len(cases) != 1:
        raise click.UsageError(f"--emit-python: expected one program, found {len(cases)}")
    return python_script(cases[0], backend)


def for_bisect(judge: Callable[[], Exit]) -> Exit:
    """Judge files on a commit of a bisection: at another one the backend may start."""
    try:
        code = judge()
    except UopError as error:
        click.echo(f"not judged: {error}", err=True)
        return Exit.NOT_JUDGED
    return code if code in (Exit.OK, Exit.FAILED) else Exit.NOT_JUDGED


def print_results(replayed: Sequence[Replayed], backend: str) -> Exit:
    """Print the result of each case, failures first, and the verdict."""
    from uop.conformance.judging.verdict import Status
    from uop.conformance.protocol.untrusted import in_one_line
    from uop.conformance.run.replay import conclusion

    gravity = (Status.FAILED, Status.CRASHED, Status.SKIPPED, Status.PASSED)
    grave = sorted(replayed, key=lambda r: gravity.index(r.verdict.status))
    for one in grave[:MOST_LINES]:
        said = one.verdict.failure.message if one.verdict.failure else one.verdict.reason
        about = " ".join(f"{one.verdict.status.upper():7} {one.path} {one.case}".split())
        click.echo(": ".join(filter(None, [about, in_one_line(said)])))
    if len(grave) > MOST_LINES:
        click.echo(f"... and {len(grave) - MOST_LINES} more cases")
    verdict = conclusion(one.verdict for one in replayed)
    # A replay reads no file of known failures.
    counts = {s: sum(r.verdict.status is s for r in replayed) for s in Status if s in gravity}
    click.echo(f"{backend}: {verdict}; {', '.join(f'{n} {s}' for s, n in counts.items())}")
    return CODES[verdict]


def replay_report(arguments: tuple[str, ...], count: int, *, native: bool) -> Exit:
    """Judge a sample of the cases of a report again, and compare the verdicts.

    The result is inconclusive if some cases could not be judged and no verdict differs.
    """
    from uop.conformance.native import check_backend
    from uop.conformance.protocol.untrusted import in_one_line
    from uop.conformance.report.format import read_report
    from uop.conformance.report.sample import judged_again, require_cases

    if len(arguments) > 2:
        raise click.UsageError("expected one REPORT.json and at most one BACKEND")
    report = read_report(Path(arguments[0]))
    require_cases(report)
    if len(arguments) == 1:
        check_backend(arguments[0], report.options.backend, native=native)
    found = judged_again(report, count, "".join(arguments[1:]))
    broken = [again for again in found if again.now is not None and not again.holds]
    unknown = [again for again in found if again.now is None]
    for again in broken[:MOST_LINES]:
        assert again.now is not None
        said = again.now.failure.message if again.now.failure else again.now.reason
        now = f"{again.id} was {again.before}, is now {again.now.status}"
        click.echo(": ".join(filter(None, [now, in_one_line(said)])))
    for again in unknown[: MOST_LINES - len(broken)]:
        click.echo(f"{again.id} was {again.before}, is not judged: {again.why}")
    held = len(found) - len(broken) - len(unknown)
    more = f"; {len(unknown)} not judged" if unknown else ""
    click.echo(f"{held} of {len(found)} verdicts hold{more}")
    if broken:
        return Exit.FAILED
    return Exit.INCONCLUSIVE if unknown or not held else Exit.OK

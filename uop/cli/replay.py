"""`uop replay`: judges the cases of files again, such as the repros that `uop conform` wrote."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli import Exit
from uop.cli.conform import CODES

MOST_LINES = 50
DEFAULT = "opencl"


@click.command("replay")
@click.argument("arguments", nargs=-1, required=True, metavar="FILE|FOLDER... [BACKEND]")
@click.option(
    "--emit-requests", is_flag=True, help="Print what a worker would read on stdin instead."
)
def command(arguments: tuple[str, ...], emit_requests: bool) -> int:
    """Judge the programs of files again, on BACKEND or on opencl.

    A file says itself what it accepts; where it does not, the spec does.
    """
    from uop.conformance.backends import names
    from uop.conformance.judge import Status
    from uop.conformance.replay import conclusion, replay, requests

    *first, last = arguments
    is_backend = bool(first) and (last in names() or ":" in last)
    backend, paths = (last, first) if is_backend else (DEFAULT, [*first, last])
    if emit_requests:
        for line in requests([Path(path) for path in paths], backend if is_backend else ""):
            click.echo(line, nl=False)
        return Exit.OK
    replayed = replay([Path(path) for path in paths], backend)
    gravity = (Status.FAILED, Status.CRASHED, Status.SKIPPED, Status.PASSED)
    grave = sorted(replayed, key=lambda r: gravity.index(r.verdict.status))
    for one in grave[:MOST_LINES]:
        said = one.verdict.fault.message if one.verdict.fault else one.verdict.reason
        words = f"{one.verdict.status.upper():7} {one.path} {one.case} {said}".split()
        click.echo(" ".join(words))
    if len(grave) > MOST_LINES:
        click.echo(f"... and {len(grave) - MOST_LINES} more cases")
    verdict = conclusion(replayed)
    counts = {s: sum(r.verdict.status is s for r in replayed) for s in Status}
    click.echo(f"{backend}: {verdict.value}; {', '.join(f'{n} {s}' for s, n in counts.items())}")
    return CODES[verdict.value]

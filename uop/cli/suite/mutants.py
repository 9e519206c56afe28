"""`uop mutants`: lists the seeded faults, and measures which of them the suite finds."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli.suite.options import file_option, workers_option
from uop.conformance.checks import OptionError, cores, writable
from uop.conformance.run import Exit

if TYPE_CHECKING:
    from uop.conformance.mutants.catalogue import Mutant
    from uop.conformance.mutants.hunt import Hunted, Summary

WIDTH = 100
"""The width of a line; longer proofs of equivalence are cut, ids never."""


@click.command("mutants")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--class", "kinds", multiple=True, metavar="CLASS", help="Only faults of this class.")
@click.option("--list", "listed", is_flag=True, help="Describe them without the answer.")
@file_option("--json", help="Write the counts.")
@workers_option
def mutants(
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    listed: bool,
    json: Path | None,
    workers: int | None,
) -> int:
    """Measure the suite: seed faults and count which ones it finds.

    Puts one fault after the other into a backend, or into the judging code, and runs cases until
    one fails.

    To play: `--list` names each fault, without the answer, and the backend it goes into;
    `uop conform BACKEND --mutant NAME` judges that backend with the fault; `uop mutants NAME` gives
    the answer. Faults of `judge` are in the suite itself and can only be measured. Ctrl-C ends with
    the results so far.
    """
    chosen = selected(names, kinds)
    if listed:
        if json is not None:
            raise OptionError("--json: expected no --list, which hunts none")
        show(chosen)
        return Exit.OK
    workers = cores() if workers is None else workers
    if workers < 1:
        raise OptionError("-n: expected a positive number")
    if json is not None:
        writable(json)
    summary = hunted(chosen, workers)
    if json is not None:
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(json_module.dumps(summary.to_json(), indent=1) + "\n", encoding="utf-8")
    click.echo(sums_line(summary, len(chosen)))
    if summary.interrupted:
        return Exit.INTERRUPTED
    return Exit.FAILED if summary.survivors else Exit.OK


def selected(names: Sequence[str], kinds: Sequence[str]) -> list[Mutant]:
    """The mutants of these names and classes; UopError for an unknown one."""
    from uop.conformance.mutants.catalogue import find_mutant, mutants

    known = dict.fromkeys(mutant.kind for mutant in mutants().values())
    for kind in kinds:
        if kind not in known:
            raise OptionError(f"--class: expected one of {', '.join(known)}; found {kind!r}")
    named = dict.fromkeys(find_mutant(name) for name in names) or mutants().values()
    return [mutant for mutant in named if not kinds or mutant.kind in kinds]


def show(chosen: Sequence[Mutant]) -> None:
    """Print the mutants by class: alias, backend and hint."""
    for kind in dict.fromkeys(mutant.kind for mutant in chosen):
        click.echo(kind)
        for mutant in chosen:
            if mutant.kind == kind:
                click.echo(f"  {mutant.alias}  {mutant.backend:11} {mutant.hint}")


def hunted(chosen: Sequence[Mutant], workers: int) -> Summary:
    """Hunt the mutants, with a line for each result, until Ctrl-C."""
    from uop.conformance.mutants.hunt import Summary, hunt_all

    order = {mutant.name: number for number, mutant in enumerate(chosen)}
    found: list[Hunted] = []
    interrupted = False
    try:
        for one in hunt_all(chosen, workers):
            found.append(one)
            # Printing the sums at the end fails in the same way, and reports it.
            with suppress(OSError):
                click.echo(line_of(one))
    except KeyboardInterrupt:
        interrupted = True
    return Summary(tuple(sorted(found, key=lambda one: order[one.mutant])), interrupted)


def sums_line(summary: Summary, chosen: int) -> str:
    """The line with the totals."""
    sums = summary.to_json()["summary"]
    of = f" of {chosen} (interrupted)" if summary.interrupted else ""
    return (
        f"{sums['total']}{of} mutants: {sums['killed']} killed, {sums['killed_by_name']} of them "
        f"by a check about what was broken; {sums['survived']} survived, {sums['equivalent']} "
        f"equivalent; median {sums['median_seconds'] or 0:.2f} s, "
        f"worst {sums['worst_seconds'] or 0:.2f} s"
    )


def line_of(one: Hunted) -> str:
    """The line of a mutant: the case that found it, or the reason why none can, cut to WIDTH."""
    start = f"{one.fate.value:10} {one.mutant:43}"
    if one.case:
        about = "" if one.by_name else "  (about something else)"
        return f"{start} {one.seconds:6.2f} s  {one.case}{about}"
    text = f"{start} {one.note}".rstrip()
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."

"""Prints how many cases of the suite fail with each fault of some classes.

`python benchmarks/field_faults.py [--class CLASS] [--effort smoke|default|full] [--most N]
[NAME...]`; one process judges and one runs the backend. No cause is looked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import click

from uop.conformance.backends import MUTANT
from uop.conformance.mutants.catalogue import Mutant, find_mutant, mutants
from uop.conformance.mutants.hunt import TOGETHER, sound_judge
from uop.conformance.run.options import Options
from uop.conformance.run.selection import in_turns, selected
from uop.conformance.suite.case import EFFORTS, LEVELS, CaseId
from uop.spec.errors import BackendError, PassError

FIELD = "field: "
"""The classes of faults from the histories of other compilers begin with this."""
ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Count:
    """The cases that failed among those judged, the first of them, and why the run ended early."""

    failing: int
    judged: int
    first: str
    ended: str = ""


def ordered(mutant: Mutant, options: Options, most: int) -> list[CaseId]:
    """The cases in the order of a run; if few failures are enough, those about broken ops first."""
    ids = selected(options)
    if most == sys.maxsize:
        return ids
    return sorted(in_turns(ids, options.seed), key=lambda id: id.op not in mutant.breaks)


def count(mutant: Mutant, options: Options, most: int) -> Count:
    """Judge all cases, or until so many have failed."""
    found: list[str] = []
    judged = 0
    rest: Iterator[CaseId] = iter(ordered(mutant, options, most))
    try:
        with sound_judge(MUTANT + mutant.name, mutant.profile) as setup:
            while len(found) < most and (ids := list(islice(rest, TOGETHER))):
                verdicts = setup.judge(ids)
                judged += len(verdicts)
                found += [verdict.id for verdict in verdicts if verdict.status.is_failure]
    except (BackendError, PassError) as error:
        return Count(len(found), judged, "".join(found[:1]), str(error).partition("\n")[0])
    return Count(len(found), judged, "".join(found[:1]))


@click.command()
@click.argument("names", nargs=-1)
@click.option("--class", "kind", default=FIELD, show_default=True, help="How classes begin.")
@click.option("--effort", type=click.Choice(EFFORTS), default="smoke", show_default=True)
@click.option("--level", "levels", help="Only these levels, separated by commas.")
@click.option("--most", default=sys.maxsize, help="Enough failing cases of a fault.")
def main(names: Sequence[str], kind: str, effort: str, levels: str | None, most: int) -> None:
    """Count for these NAMES, without any all faults of the classes; 1 where one is not found."""
    every = [m for m in mutants().values() if m.kind.startswith(kind) and not m.equivalent]
    faults = [find_mutant(name) for name in names] or every
    chosen = tuple(levels.split(",")) if levels else LEVELS
    counts = []
    for fault in faults:
        begun = time.monotonic()
        one = count(fault, Options(fault.backend, effort=effort, levels=chosen).checked(), most)
        counts.append(one)
        seconds = time.monotonic() - begun
        click.echo(
            f"{fault.name:41} {one.failing:5} of {one.judged:5} {seconds:6.1f} s  "
            f"{one.first or 'NOT FOUND'}  {one.ended}".rstrip()
        )
    found = [one.failing for one in counts if one.failing]
    click.echo(
        f"{effort}: {len(found)} of {len(counts)} found, "
        f"{sum(failing >= ENOUGH for failing in found)} of them by {ENOUGH} cases or more"
    )
    sys.exit(len(found) < len(counts))


if __name__ == "__main__":
    main()

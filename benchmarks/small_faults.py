"""Prints which faults of the small backend a run of the suite finds, and how soon.

`python benchmarks/small_faults.py [--effort smoke|default|full] [NAME...]`; each run is the
ordinary one, by one process, and ends with the first failing verdict.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NoReturn

import click

from uop.conformance.backends import MUTANT
from uop.conformance.mutants.catalogue import find_mutant, mutants
from uop.conformance.report.terminal import Display
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.suite.case import EFFORTS

if TYPE_CHECKING:
    from uop.conformance.judging.verdict import Verdict

KIND = "small backend"


class FailedError(Exception):
    """Ends a run at its first failing verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.id)
        self.verdict = verdict


class First(Display):
    """A display that wants no more than the first failure."""

    def failed(self, verdict: Verdict) -> NoReturn:
        raise FailedError(verdict)


@dataclass(frozen=True, slots=True)
class Run:
    """What a run showed after so many seconds; no `case` where nothing failed."""

    name: str
    seconds: float
    case: str
    said: str


def judged(name: str, backend: str, effort: str, begun: float) -> Run:
    """A run in this process, which has begun at that time and not imported the suite yet."""
    with TemporaryDirectory() as folder:
        options = Options(backend, effort=effort, workers=1, output=Path(folder)).checked()
        pool = Pool.start(options)
        # As long to load as a backend to start; `uop conform` does the same.
        from uop.conformance.run.conform import conform

        try:
            report = conform(options, First(), pool)
        except FailedError as found:
            verdict, seconds = found.verdict, time.monotonic() - begun
            said = verdict.failure.message if verdict.failure is not None else verdict.status.value
            return Run(name, seconds, verdict.id, said.partition("\n")[0])
        programs = f"{report.conclusion}: {report.summary.programs} programs"
        return Run(name, time.monotonic() - begun, "", programs)


def runs(chosen: Sequence[tuple[str, str]], effort: str) -> Iterator[Run]:
    """One run after the other, each in a new process, as a command is."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for name, backend in chosen:
            yield processes.submit(judged, name, backend, effort, time.monotonic()).result()


@click.command()
@click.argument("names", nargs=-1)
@click.option("--effort", type=click.Choice(EFFORTS), default="default", show_default=True)
def main(names: tuple[str, ...], effort: str) -> None:
    """Measure the faults of these NAMES, without any all of them; 1 where one is not found."""
    every = [m for m in mutants().values() if m.kind == KIND]
    faults = [find_mutant(name) for name in names] or every
    without = ("(no fault)", every[0].backend)
    found: list[Run] = []
    for run in runs([without, *((f.name, MUTANT + f.name) for f in faults)], effort):
        found.append(run)
        click.echo(f"{run.name:47} {run.seconds:6.2f} s  {run.case or 'NOT FOUND':45} {run.said}")
    (sound, *faulty), seconds = found, [run.seconds for run in found[1:] if run.case]
    middle = f", median {median(seconds):.2f} s, worst {max(seconds):.2f} s" if seconds else ""
    click.echo(f"{effort}: {len(seconds)} of {len(faulty)} found{middle}")
    sys.exit(bool(sound.case) or len(seconds) < len(faulty))


if __name__ == "__main__":
    main()

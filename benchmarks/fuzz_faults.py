"""Prints how soon a fuzz run finds seeded faults, and how small its repros are.

`python benchmarks/fuzz_faults.py [--faults 60] [--seeds 1] [--time 60] [NAME...]`: as many faults
of each class of `uop mutants`. Each run is the ordinary one, on all cores, with `--fail-fast`.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from uop.conformance.backends import MUTANT
from uop.conformance.checks import cores
from uop.conformance.mutants.catalogue import JUDGE, Mutant, find_mutant, mutants
from uop.conformance.report.terminal import Display
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool

if TYPE_CHECKING:
    from uop.conformance.judging.verdict import Verdict
    from uop.conformance.report.tally import Tally

NODES, ELEMENTS = 4, 8
"""The most of a small repro."""
NOT_DRAWN = "constraints"
"""A class that no fuzz run finds: it draws valid programs."""


@dataclass(slots=True)
class First(Display):
    """A display that notes when the first program fails, and how many were judged before."""

    at: float = math.inf
    programs: float = math.inf
    judged: int = 0

    def progress(self, tally: Tally, seconds: float) -> None:
        self.judged = tally.programs

    def failed(self, verdict: Verdict) -> None:
        self.at = min(self.at, time.monotonic())
        self.programs = min(self.programs, self.judged)


@dataclass(frozen=True, slots=True)
class Repro:
    """The computing nodes of a repro, and the elements of its outputs."""

    nodes: int
    elements: int

    @property
    def is_small(self) -> bool:
        return self.nodes <= NODES and self.elements <= ELEMENTS


@dataclass(frozen=True, slots=True)
class Run:
    """A run on a fault: the seconds to its first failing program, and the programs of the tasks
    before it. Both are infinite where none failed.
    """

    fault: str
    kind: str
    seconds: float
    programs: float
    repros: tuple[Repro, ...] = field(default=())
    searching: float = 0.0
    """The seconds of the search for causes."""


def fuzzed(mutant: Mutant, seed: int, limit: float, begun: float) -> Run:
    """A run in this process, which has begun at that time and not imported the suite yet."""
    with TemporaryDirectory() as folder:
        options = Options(
            MUTANT + mutant.name,
            seed,
            seconds=limit,
            fail_fast=True,
            workers=cores(),
            output=Path(folder),
        ).checked()
        pool, first = Pool.start(options), First()
        # As long to load as a backend to start; `uop fuzz` does the same.
        from uop.conformance.fuzz.fuzz import fuzz

        report = fuzz(options, first, pool)
    repros = tuple(repro_of(failure.text) for failure in report.failures)
    sooner, searching = first.at - begun, report.summary.searching
    return Run(mutant.name, mutant.kind, sooner, first.programs, repros, searching)


def repro_of(text: str) -> Repro:
    from uop.conformance.shrink.reduce import is_computing
    from uop.spec.case import outputs
    from uop.spec.text.uop_file import parse_file

    root = parse_file(text).cases[0].root
    assert root is not None
    nodes = sum(map(is_computing, root.toposort()))
    return Repro(nodes, sum(math.prod(u.shape) for u in outputs(root).values()))


def stratified(count: int) -> list[Mutant]:
    """As many faults of each class, drawn by a fixed seed."""
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in mutants().values():
        if mutant.backend != JUDGE and mutant.kind != NOT_DRAWN and not mutant.equivalent:
            by_kind.setdefault(mutant.kind, []).append(mutant)
    for own in by_kind.values():
        random.Random(0).shuffle(own)
    turns = chain.from_iterable(zip_longest(*by_kind.values()))
    return list(islice((mutant for mutant in turns if mutant is not None), count))


def runs(chosen: Sequence[Mutant], seeds: int, limit: float) -> Iterator[Run]:
    """One run after the other, each in a new process, as a command is."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for mutant in chosen:
            for seed in range(1, seeds + 1):
                yield processes.submit(fuzzed, mutant, seed, limit, time.monotonic()).result()


@click.command()
@click.argument("names", nargs=-1)
@click.option("--faults", "count", default=60, show_default=True)
@click.option("--seeds", default=1, show_default=True)
@click.option("--time", "limit", default=60.0, show_default=True, help="The seconds of a run.")
def main(names: tuple[str, ...], count: int, seeds: int, limit: float) -> None:
    """Measure the faults of these NAMES, without any some of each class."""
    chosen = [find_mutant(name) for name in names] or stratified(count)
    done: list[Run] = []
    for run in runs(chosen, seeds, limit):
        done.append(run)
        sizes = ", ".join(f"{repro.nodes} nodes {repro.elements} elements" for repro in run.repros)
        click.echo(
            f"{run.kind:28} {run.fault:44} {run.seconds:6.1f} s {run.programs:6} programs  {sizes}"
        )
    seconds, repros = [run.seconds for run in done], [one for run in done for one in run.repros]
    click.echo(f"{len(chosen)} faults of {len({m.kind for m in chosen})} classes, {seeds} seeds")
    found = sum(s < math.inf for s in seconds)
    click.echo(f"found: {found} of {len(done)} runs; {of(seconds, 's')} to the first failure")
    click.echo(f"programs before it: {of([run.programs for run in done], 'programs')}")
    click.echo(f"repros: {of([r.nodes for r in repros], 'nodes')}")
    click.echo(f"repros: {of([r.elements for r in repros], 'elements')}")
    small = sum(repro.is_small for repro in repros)
    click.echo(f"repros of at most {NODES} nodes and {ELEMENTS} elements: {small} of {len(repros)}")
    click.echo(f"search for causes: {of([run.searching for run in done if run.repros], 's')}")


def of(numbers: Sequence[float], unit: str) -> str:
    """The median, and what 95 % are at most."""
    if len(numbers) < 2:
        return f"{len(numbers)} runs"
    at_most = sorted(numbers)[math.ceil(0.95 * len(numbers)) - 1]
    return f"median {median(numbers):.1f} {unit}, 95 % at most {at_most:.1f} {unit}"


if __name__ == "__main__":
    main()

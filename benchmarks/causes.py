"""Puts many faults into the interpreter at once, and maps what a run finds to them.

`python benchmarks/causes.py [--seed N] [--faults N] [--effort smoke|default]`. A cause belongs to
the faults with each of which alone its repro fails. What the report calls one fault are the causes
that it puts together.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from uop.conformance.backends import MUTANT
from uop.conformance.mutants.catalogue import CatalogueError, mutants, mutated
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.replay import replay

BACKEND = "interpreter"


def drawn(seed: int, count: int) -> list[str]:
    """Faults of the interpreter that can be put in together."""
    every = [m for m in mutants().values() if m.backend == BACKEND and not m.equivalent]
    random.Random(seed).shuffle(every)
    texts: dict[str, str] = {}
    names: list[str] = []
    for mutant in every:
        spec = find_spec(mutant.module)
        assert spec is not None
        assert spec.origin is not None
        try:
            text = texts.get(mutant.module) or Path(spec.origin).read_text(encoding="utf-8")
            texts[mutant.module] = mutated(mutant, text)
        except CatalogueError:
            # Another fault has changed this code.
            continue
        names.append(mutant.name)
        if len(names) == count:
            break
    return names


def failing(name: str, repros: Sequence[Path]) -> set[Path]:
    """The repros that fail with one fault alone."""
    return {one.path for one in replay(repros, MUTANT + name) if one.verdict.status.is_failure}


@click.command()
@click.option("--seed", default=1, show_default=True)
@click.option("--faults", "count", default=30, show_default=True)
@click.option("--effort", type=click.Choice(("smoke", "default")), default="default")
def main(seed: int, count: int, effort: str) -> None:
    """Print the faults that no cause shows, and those that several show."""
    names = drawn(seed, count)
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        report = conform(Options(MUTANT + ",".join(names), effort=effort, output=Path(folder)))
        repros = [Path(cause.repro) for cause in report.failures]
        found = list(threads.map(lambda name: failing(name, repros), names))
    shown = {name: own for name, own in zip(names, found, strict=True) if own}
    fault = {Path(one.repro): Path(all[0].repro).stem for all in report.faults for one in all}
    parts = {name: sorted({fault[path] for path in own}) for name, own in shown.items()}
    for name in names:
        if len(parts.get(name, ())) != 1:
            click.echo(f"{name}: {', '.join(parts.get(name, ())) or 'no cause'}")
    for first, *alike in report.faults:
        mixed = {name for name, own in shown.items() if own & {Path(f.repro) for f in alike}}
        own_faults = {name for name, own in shown.items() if Path(first.repro) in own}
        if mixed - own_faults:
            click.echo(f"{first.signature}: {', '.join(sorted(mixed | own_faults))}")
    summary = report.summary
    click.echo(
        f"seed {seed}, {effort}: {len(shown)} of {count} faults have a cause, "
        f"{sum(len(own) > 1 for own in parts.values())} have several; {len(repros)} causes, "
        f"{len(report.faults)} faults in the report, explain "
        f"{summary.wrong - len(report.unexplained)} of {summary.wrong} failing programs; "
        f"{summary.seconds:.0f} s, {summary.searching:.0f} s of these for causes"
    )


if __name__ == "__main__":
    main()

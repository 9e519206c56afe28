"""Writes which cases each fault of a module fails, one line of JSON for each fault.

`python benchmarks/strangers.py OUT MODULE.py [--effort smoke] [--seed N] [--skip-op OP] [NAME...]`.
The faults are subclasses of `Fault` in `examples/backends/faults.py`. The witness of each must fail
with it, and pass without. What is accepted is computed once. A case whose programs a fault leaves
as they are is not judged, unless the fault is not of graphs alone. Lines of OUT that are there
stay, so a run that was cut off goes on. `kill_curve.py` reads OUT as it reads the files of
`kill_matrix.py`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import click
from kill_matrix import AnyCase, Kills, Known, Remembering

from uop import UOp, parse
from uop.conformance.mutants.hunt import SEED, TOGETHER
from uop.conformance.protocol.types import Program
from uop.conformance.run.replay import judge_files
from uop.conformance.suite.case import EFFORTS
from uop.conformance.suite.generate import cases
from uop.conformance.suite.own_cases import read_cases
from uop.conformance.suite.vocabulary import Skips, vocabulary_of
from uop.conformance.workers.in_process import Fitting
from uop.spec.errors import UopError
from uop.spec.latitude import STRICT

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "backends"
ENOUGH = 3
MOST = 4
"""A case that so many faults fail, and half of all, fails by what these have in common."""
NOT_OF_GRAPHS = {"start", "inputs", "outputs", "one", "run", "__init__"}
"""A fault that overrides one of these may show in a program that it does not rewrite."""
FaultClass = Any
"""A subclass of `Fault`; the examples have no types."""


class Suite:
    """The cases that a sound backend passes, what is accepted, and the programs of each case."""

    def __init__(self, sound: FaultClass, every: Sequence[AnyCase]) -> None:
        self.known: Known = {}
        self.programs: dict[AnyCase, tuple[str, ...]] = {}
        sent: list[str] = []

        class Recording(sound):  # type: ignore[misc]
            def run(self, programs: Sequence[Program]) -> Any:
                sent.extend(program.text for program in programs)
                return super().run(programs)

        for case in every:
            sent.clear()
            if not self.failing(Recording(), [case]):
                self.programs[case] = tuple(sent)
        self.roots: dict[str, UOp] = {}
        for text in {text for texts in self.programs.values() for text in texts}:
            with suppress(UopError):
                self.roots[text] = parse(text)

    def failing(self, backend: Any, some: Sequence[AnyCase]) -> list[str]:
        """Return the ids of those of some cases that fail."""
        judge = Remembering(Fitting(backend), STRICT)
        judge.known = self.known
        parts = [some[k : k + TOGETHER] for k in range(0, len(some), TOGETHER)]
        verdicts = [verdict for part in parts for verdict in judge.judge(part)]
        return [verdict.id for verdict in verdicts if verdict.status.is_failure]

    def touched(self, fault: FaultClass) -> list[AnyCase]:
        """Return the cases that a fault may change."""
        if NOT_OF_GRAPHS & vars(fault).keys():
            return [*self.programs]
        graph = fault().graph
        hit = {text for text, root in self.roots.items() if _is_rewritten(graph, root)}
        return [case for case, texts in self.programs.items() if not hit.isdisjoint(texts)]


def _is_rewritten(graph: Callable[[UOp], UOp], root: UOp) -> bool:
    try:
        return graph(root) is not root
    except UopError:
        return True


def kills(suite: Suite, fault: FaultClass, about: tuple[str, str, int]) -> Kills:
    """Judge what a fault touches."""
    begun = time.monotonic()
    name, effort, seed = about
    some = suite.touched(fault)
    failed = suite.failing(fault(), some)
    seconds = round(time.monotonic() - begun, 1)
    return Kills(name, "strangers", "interpreter", effort, seed, len(some), failed, seconds)


def check(fault: FaultClass, sound: FaultClass) -> None:
    """ClickException unless the witness fails with the fault alone."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{fault.__name__}.uop"
        path.write_text(fault.WITNESS)
        witness = list(read_cases(path))
    for backend, is_wrong in ((fault, True), (sound, False)):
        fails = [v.status.is_failure for v in judge_files(witness, Fitting(backend()))]
        if fails != [is_wrong]:
            what = "fails with the fault alone" if is_wrong else "passes without the fault"
            raise click.ClickException(f"{fault.__name__}: expected a witness that {what}")


def in_child(write: Callable[[], None]) -> None:
    """Run in a process of its own: a fault may leave state behind."""
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            raise click.ClickException("a fault ended its process")
        return
    write()
    os._exit(0)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("module", type=click.Path(path_type=Path, exists=True))
@click.argument("names", nargs=-1)
@click.option("--effort", type=click.Choice(EFFORTS), default="smoke", show_default=True)
@click.option("--seed", type=int, default=SEED, show_default=True)
@click.option("--skip-op", "skipped", multiple=True, help="An op that no program has.")
def main(
    file: Path, module: Path, names: Sequence[str], effort: str, seed: int, skipped: Sequence[str]
) -> None:
    """Judge the faults NAMES of MODULE, without any all, and append their kills to FILE."""
    sys.path[:0] = [str(EXAMPLES), str(module.parent)]
    sound = import_module("faults").Fault
    found = vars(import_module(module.stem))
    faults = {
        f"{module.stem}-{name}": fault
        for name, fault in found.items()
        if isinstance(fault, type) and issubclass(fault, sound) and fault.WITNESS
        and (not names or name in names)
    }  # fmt: skip
    entries = map(json.loads, file.open()) if file.exists() else ()
    done = {entry["fault"] for entry in entries if entry["seed"] == seed}
    for fault in faults.values():
        check(fault, sound)
    vocabulary = vocabulary_of([sound().hello()], Skips(frozenset(skipped)))
    suite = Suite(sound, list(cases(seed=seed, effort=effort, vocabulary=vocabulary)))
    gc.freeze()
    with file.open("a") as out:
        for name, fault in faults.items():
            if name not in done:
                in_child(partial(_write, out, suite, fault, (name, effort, seed)))
    entries = [
        e for e in map(json.loads, file.open()) if e["fault"] in faults and e["seed"] == seed
    ]
    counts = [len(entry["failed"]) for entry in entries]
    by = f"{sum(n >= ENOUGH for n in counts)} of them by {ENOUGH} cases or more"
    click.echo(f"{effort}: {sum(map(bool, counts))} of {len(counts)} found, {by}")
    by_case = Counter(id for entry in entries for id in entry["failed"])
    common = sorted(id for id, n in by_case.items() if n >= max(MOST, len(entries) / 2))
    if common:
        what = f"{len(common)} cases fail with half of the faults, by what these have in common"
        raise click.ClickException(f"{what}; expected none; the first is {common[0]}")


def _write(out: IO[str], suite: Suite, fault: FaultClass, about: tuple[str, str, int]) -> None:
    one = kills(suite, fault, about)
    print(json.dumps(asdict(one)), file=out, flush=True)
    click.echo(f"{one.fault:45} {len(one.failed):5} of {one.judged:5} {one.seconds:6.1f} s")


if __name__ == "__main__":
    main()

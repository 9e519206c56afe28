"""Writes which cases of a run each seeded fault fails, one line of JSON for each fault.

`python benchmarks/kill_matrix.py FILE [--effort smoke] [--seed N] [--part K/N] [--class CLASS]
[--cases IDS] [NAME...]`. Faults that are in FILE already, at this seed, are left out, so a run
that was cut off goes on; what the suite gained since needs a file of its own, with `--cases`. The
faults of the judge are left out too: no case fails with them alone. What is accepted is computed
once for all faults, and a failure counts as it came, without a second run alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import click

from uop.conformance.backends import MUTANT
from uop.conformance.judging.judge import AllSets, Judge, Prepared, Reference
from uop.conformance.judging.verdict import Verdict
from uop.conformance.mutants.catalogue import JUDGE, Mutant, find_mutant, mutants
from uop.conformance.mutants.hunt import SEED, TOGETHER
from uop.conformance.suite.case import EFFORTS, Case, InvalidCase
from uop.conformance.suite.generate import cases
from uop.conformance.suite.priority import LEFT_OUT
from uop.conformance.workers.sessions import started
from uop.spec.errors import BackendError, PassError, UopError
from uop.spec.text.profile_text import parse_profile

AnyCase = Case | InvalidCase
Known = dict[tuple[object, ...], AllSets | UopError]
"""What is accepted, by case, program (that of a twin has the same id) and profile."""


@dataclass(frozen=True, slots=True)
class Kills:
    """The cases that fail with a fault, in the order of the suite; `ended` where a run broke."""

    fault: str
    kind: str
    backend: str
    effort: str
    seed: int
    judged: int
    failed: list[str]
    seconds: float
    ended: str = ""


class Remembering(Judge):
    """A judge that computes what is accepted once for all sessions."""

    known: Known

    def _reference(self, case: AnyCase) -> Reference | None:
        return None

    def _accepted(self, case: AnyCase) -> AllSets | UopError:
        program = case.root if isinstance(case, Case) else case.text
        key = str(case.id), program, str(self.demanded(case))
        if key not in self.known:
            self.known[key] = super()._accepted(case)
        return self.known[key]

    def _confirmed(self, p: Prepared, verdict: Verdict) -> Verdict:
        return verdict


def kills(mutant: Mutant, effort: str, seed: int, every: Sequence[AnyCase], known: Known) -> Kills:
    """Judge all cases with a fault; a backend that is lost too often ends it."""
    failed: list[str] = []
    judged, ended, begun = 0, "", time.monotonic()
    try:
        with started(MUTANT + mutant.name) as session:
            judge = Remembering(session, parse_profile(mutant.profile))
            judge.known = known
            for k in range(0, len(every), TOGETHER):
                verdicts = judge.judge(every[k : k + TOGETHER])
                judged += len(verdicts)
                failed += [v.id for v in verdicts if v.status.is_failure]
    except (BackendError, PassError) as error:
        ended = str(error).partition("\n")[0]
    about = mutant.name, mutant.kind, mutant.backend, effort, seed
    return Kills(*about, judged, failed, round(time.monotonic() - begun, 1), ended)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--class", "kind", default="", help="How classes begin.")
@click.option("--effort", type=click.Choice(EFFORTS), default="smoke", show_default=True)
@click.option("--seed", type=int, default=SEED, show_default=True)
@click.option("--part", default="1/1", help="Part K/N of the faults.")
@click.option("--cases", "ids", type=click.File(), help="Only the cases with the ids in this file.")
def main(
    file: Path,
    names: Sequence[str],
    kind: str,
    effort: str,
    seed: int,
    part: str,
    ids: IO[str] | None,
) -> None:
    entries = map(json.loads, file.open()) if file.exists() else ()
    done = {entry["fault"] for entry in entries if entry["seed"] == seed}
    k, n = map(int, part.split("/"))
    chosen = [
        m
        for m in ([find_mutant(name) for name in names] or mutants().values())
        if m.kind.startswith(kind) and not m.equivalent and m.backend != JUDGE
    ]
    LEFT_OUT.clear()
    every = list(cases(seed=seed, effort=effort))
    if ids is not None:
        only = set(ids.read().split())
        every = [case for case in every if str(case.id) in only]
    known: Known = {}
    with file.open("a") as out:
        for mutant in chosen[k - 1 :: n]:
            if mutant.name in done:
                continue
            one = kills(mutant, effort, seed, every, known)
            print(json.dumps(asdict(one)), file=out, flush=True)
            click.echo(f"{one.fault:45} {len(one.failed):5} {one.seconds:6.1f} s {one.ended}")


if __name__ == "__main__":
    main()

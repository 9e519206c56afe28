"""How often the locator blames the stage, and the rule, that a seeded fault is in.

`python benchmarks/blame.py [--kills FILE] [NAME...]` takes each mutant of the compiler, and the
case that kills it from a file of `uop mutants --json FILE`, or hunts for one. What counts as right
is said here, before anything is run:

- A fault in the module of a stage is that stage's; other modules say at the end of their first
  line which stage they are part of, "(in rangeify)". Those of several are in HOMES: `simplify`,
  `fold` and `validity` belong to every stage that calls them. What the compiler does with a
  program before its first stage is `entry`. Targets, their helpers and statements are `render`; so
  is a source that no second driver shows to be right. Faults of the runtime are not those of a
  stage, and not counted.
- A case that kills a fault of `optimize` holds kernels that are optimized already. The graph that
  it is made of is compiled again, with each of a few sequences of optimizations.
- A fault in a function that a rule calls is that rule's: the rule is right that is the function, or
  reaches it by calls within the module. Only such faults count for rules.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from uop.conformance.mutants.catalogue import Mutant, find_mutant, mutants

COMPILER = "uop.compiler."
STAGES = f"{COMPILER}stages."
ANY_GRAPH = ("entry", "callify", "rangeify", "optimize", "expand", "select")
HOMES = {
    f"{COMPILER}rewriting.simplify": ANY_GRAPH,
    f"{COMPILER}rewriting.fold": ANY_GRAPH,
    f"{COMPILER}validity": ANY_GRAPH,
    f"{STAGES}scalars": ("entry", "linearize"),
    f"{STAGES}tiles": ("optimize", "select"),
    f"{STAGES}grid": ("render", "run"),
}
OUTSIDE = (f"{COMPILER}runtime.", f"{COMPILER}bundle", f"{COMPILER}execute", f"{COMPILER}steps")
PART = re.compile(r"\(in (\w+)\)")
SECONDS = 300
OPTIMIZING = (f"{STAGES}optimize", f"{STAGES}tiles")
TILE = "SPLIT(0, 2, LOCAL); SPLIT(1, 1, UPCAST); SPLIT(3, 2, LOCAL); SPLIT(4, 1, UPCAST)"
SEQUENCES = (
    "PADTO(0, 5)",
    "PADTO(1, 5)",
    "SPLIT(0, 2, LOCAL, INNER)",
    "SPLIT(0, 2, LOCAL, OUTER)",
    *(f"{TILE}; SPLIT(6, {steps}, UNROLL)" for steps in (2, 3)),
    "SPLIT(0, 1, UPCAST); SPLIT(2, 2, UNROLL); SPLIT(4, 2, UNROLL)",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A mutant and what was blamed for it; `rules` are those that reach the fault, if any."""

    mutant: str
    module: str
    right: tuple[str, ...]
    rules: frozenset[str]
    stage: str
    rule: str
    note: str = ""

    @property
    def stage_is_right(self) -> bool:
        return self.stage in self.right

    @property
    def rule_is_right(self) -> bool:
        return self.rule in self.rules


def of_stages() -> list[Mutant]:
    """The mutants in stages of the compiler."""
    return [
        m
        for m in mutants().values()
        if m.module.startswith(COMPILER) and not m.module.startswith(OUTSIDE) and not m.equivalent
    ]


def homes(mutant: Mutant) -> tuple[str, ...]:
    """The stages that it is right to blame for a fault."""
    if mutant.module in HOMES:
        return HOMES[mutant.module]
    said = PART.search((ast.get_docstring(_module(mutant)) or "").partition("\n\n")[0])
    if said is not None:
        return (said[1],)
    if mutant.module.startswith(STAGES):
        return (mutant.module.removeprefix(STAGES).partition(".")[0],)
    return ("render",)


def rules_that_reach(mutant: Mutant) -> frozenset[str]:
    """The rules of a module that are the faulty definition, or call it, by way of others too."""
    tree = _module(mutant)
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    fault = mutant.inside.rpartition(".")[2]
    reaching, size = {fault}, 0
    while len(reaching) > size:
        size = len(reaching)
        reaching |= {name for name, f in functions.items() if not reaching.isdisjoint(_named(f))}
    return frozenset(reaching & functions.keys() & _rules())


@cache
def _rules() -> frozenset[str]:
    # Not imported above: a fault is put into modules that were not imported yet.
    from uop.compiler.pipeline import TARGETS, rules_of

    return frozenset(rule.partition("/")[2] for target in TARGETS for rule in rules_of(target))


def _module(mutant: Mutant) -> ast.Module:
    spec = find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _named(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def blamed(mutant: Mutant, case: str) -> Row:
    """Locate the fault of a mutant in its killing case, in a process of its own."""
    row = (mutant.name, mutant.module, homes(mutant), rules_that_reach(mutant))
    command = [sys.executable, __file__, "--one", mutant.name, case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Row(*row, "", "", f"not done in {SECONDS} s")
    if done.returncode:
        return Row(*row, "", "", (done.stderr.strip().splitlines() or ["ended"])[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    return Row(*row, found["stage"], found["rule"], found["message"])


def locate_one(name: str, id: str) -> None:
    """In a process of its own: plant a fault, and print what is blamed for the failing case."""
    from uop.conformance.mutants.run import install

    mutant = find_mutant(name)
    install([mutant])
    from uop.compiler.execute import open_device
    from uop.compiler.pipeline import Setting, find_target
    from uop.conformance.locate.device import check_device
    from uop.conformance.locate.stages import check_stages
    from uop.conformance.suite.generate import case_by_id
    from uop.spec.errors import InvalidError
    from uop.spec.kernel.optimization import parse_optimizations

    setting = Setting(find_target("opencl" if mutant.backend == "judge" else mutant.backend))
    device = open_device(setting.target)
    blame = None
    case = case_by_id(id, 0)
    programs = [(program, setting) for program in case.programs]
    if mutant.module.startswith(OPTIMIZING):
        assert case.source is not None
        sequences = map(parse_optimizations, SEQUENCES)
        programs = [(case.source, replace(setting, optimizations=(s,))) for s in sequences]
    for program, setting in programs:
        batches = [batch.inputs for batch in program.batches]
        try:
            checked = check_stages(program.root, batches, setting)
        except InvalidError:
            # The kernel has no such axis.
            continue
        if checked.blame is None:
            checked = check_device(program.root, batches, checked, setting, device)
        if (blame := checked.blame) is not None:
            break
    found = {"stage": "", "rule": "", "message": "nothing is wrong"}
    if blame is not None:
        rule = "" if blame.firing is None else blame.firing.rule
        found = {"stage": blame.stage, "rule": rule, "message": blame.message}
    print(json.dumps(found))


def killing_case(mutant: Mutant, kills: dict[str, str]) -> str:
    if mutant.name not in kills:
        from uop.conformance.mutants.hunt import hunt

        kills[mutant.name] = hunt(mutant).case
    return kills[mutant.name]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The figures by module, then what was missed."""
    yield "| module | faults | stage named | in rules | rule named |"
    yield "|---|---:|---:|---:|---:|"
    for module in sorted({row.module for row in rows}):
        yield _line(module.removeprefix(COMPILER), [r for r in rows if r.module == module])
    yield _line("all", rows)
    for row in rows:
        if not row.stage_is_right or (row.rules and not row.rule_is_right):
            said = row.note.partition("\n")[0]
            yield (
                f"missed: {row.mutant} ({row.module.removeprefix(COMPILER)}): "
                f"{row.stage or '-'}/{row.rule or '-'}, {said[:120]}"
            )


def _line(name: str, rows: Sequence[Row]) -> str:
    in_rules = [row for row in rows if row.rules]
    figures = [
        len(rows),
        sum(row.stage_is_right for row in rows),
        len(in_rules),
        sum(row.rule_is_right for row in in_rules),
    ]
    return f"| {name} | " + " | ".join(map(str, figures)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="mutants; by default all in stages")
    parser.add_argument("--kills", type=Path, help="a file of `uop mutants --json`")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        locate_one(*options.one)
        return
    kills: dict[str, str] = {}
    if options.kills:
        report = json.loads(options.kills.read_text(encoding="utf-8"))
        kills = {m["mutant"]: m["case"] for m in report["mutants"] if m["case"]}
    chosen = [find_mutant(name) for name in options.names] or of_stages()
    cases = [(mutant, killing_case(mutant, kills)) for mutant in chosen]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda pair: blamed(*pair), cases))
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()

"""Chooses by the seeded faults that they kill which groups come first and which make a smoke run.

`python benchmarks/kill_curve.py FILE... [--write] [--picture SVG]` reads what `kill_matrix.py`
wrote for effort smoke. The groups that come first are a greedy cover: each next one has the most
kills for its cases, where a kill counts less the more often its fault is killed already. A group
stays in smoke if the ledger needs it at some seed, or if without it a fault would be killed by
fewer than three cases, and by fewer than by all groups. Each kind of program counts as a fault that
its cases kill, since a fault that nobody has thought of may show in it alone. Of several groups
that would do, the one stays that takes the least time. A fault counts once for each seed at which
it was judged: the cases of a group are others there. What is chosen on four fifths of the faults is
tried on the fifth that is left. `--write` writes both lists into the suite.
"""

from __future__ import annotations

import gzip
import heapq
import json
import random
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import click

from uop.compiler.pipeline import compile
from uop.conformance.coverage.exercised import exercised
from uop.conformance.coverage.points import by_point, keys_of
from uop.conformance.judging.verdict import Status
from uop.conformance.mutants.hunt import TOGETHER, sound_judge
from uop.conformance.run.selection import in_turns
from uop.conformance.suite.case import Case, CaseId
from uop.conformance.suite.generate import cases
from uop.conformance.suite.priority import FILE, LEFT_OUT, key_of, text_of
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UopError

SEEDS = (0, 1, 2)
FOLDS = 5
ENOUGH = 3
"""A fault that fewer cases kill hangs on them; of what is chosen, so many kill it."""
TIMES = 10
"""The greedy cover ends with a fault that is killed so often."""
FIRST = 256
"""The groups that come first: then levels, ops and dtypes take turns, so that all have evidence."""
PREFIXES = (32, 64, 128, 256, 512, 1024)
DRAWS = 40
"""The random choices of groups that a choice is compared with."""
DTYPES = ("int32", "float32")
"""The dtypes on which an op alone is judged most: its own groups stay."""
NAMES = ("hand", "ranks", "compositions")
"""How the names of groups begin that stay: by hand, most after a fault; every rank of each op; what
bug reports were about.
"""
Group = str


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A fault at a seed."""

    name: str
    seed: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """By fault the cases that fail with it, and the groups of all cases, the same at each seed."""

    killers: Mapping[Fault, frozenset[str]]
    groups: Mapping[Group, Sequence[str]]

    def killed(self, chosen: Collection[Group], faults: Iterable[Fault], least: int = 1) -> float:
        """The share of these faults that so many cases of these groups kill."""
        inside = {id for group in chosen for id in self.groups[group]}
        return mean(len(self.killers[fault] & inside) >= least for fault in faults)

    def only(self, chosen: Collection[Group]) -> Matrix:
        """The matrix of these groups."""
        groups = {group: self.groups[group] for group in chosen}
        ids = {id for found in groups.values() for id in found}
        return Matrix({fault: killers & ids for fault, killers in self.killers.items()}, groups)


def read(files: Sequence[Path]) -> Matrix:
    killers: dict[Fault, frozenset[str]] = {}
    for path in files:
        opened = gzip.open if path.suffix == ".gz" else open
        for line in opened(path, "rt"):
            entry = json.loads(line)
            fault = Fault(entry["fault"], entry["seed"])
            killers[fault] = killers.get(fault, frozenset()).union(entry["failed"])
    groups: dict[Group, list[str]] = {}
    for case in cases(effort="smoke"):
        groups.setdefault(key_of(case.id), []).append(str(case.id))
    known = {id for ids in groups.values() for id in ids}
    return Matrix({f: ids & known for f, ids in killers.items() if ids & known}, groups)


def points(seed: int) -> dict[Group, set[object]]:
    """The points of the ledger that each group covers at a seed, and the ranks of each op."""
    found: dict[Group, set[object]] = {}
    every = list(cases(effort="smoke", seed=seed))
    with sound_judge("interpreter", "strict") as setup:
        for k in range(0, len(every), TOGETHER):
            part = every[k : k + TOGETHER]
            for case, verdict in zip(part, setup.judging.judge(part), strict=True):
                if verdict.status is not Status.SKIPPED:
                    keys = dict.fromkeys(keys_of(verdict, exercised(case)), 1)
                    seen = found.setdefault(key_of(case.id), set())
                    seen.update((seed, point) for point in by_point(keys))
                    if isinstance(case, Case) and case.level == "op":
                        seen.update((u.op, len(u.shape)) for u in case.root.toposort())
    return found


def kills_of_groups(matrix: Matrix, faults: Iterable[Fault]) -> dict[Group, Counter[Fault]]:
    """By group how many of its cases kill each fault."""
    found: dict[Group, Counter[Fault]] = {group: Counter() for group in matrix.groups}
    group_of = {id: group for group, ids in matrix.groups.items() for id in ids}
    for fault in faults:
        for id in matrix.killers[fault]:
            found[group_of[id]][fault] += 1
    return found


def _stays(group: Group) -> bool:
    level, _, dtype, name = group.split("/", 3)
    is_usual = level == "op" and dtype in DTYPES
    return level == "invalid" or is_usual or name.startswith(NAMES)


def seconds_of_groups() -> dict[Group, float]:
    """The processor seconds that the programs of each group take to make and to compile."""
    found: dict[Group, float] = {}
    begun = time.process_time()
    for case in cases(effort="smoke"):
        if isinstance(case, Case):
            with suppress(UopError):
                compile(case.root)
        now, key = time.process_time(), key_of(case.id)
        found[key] = found.get(key, 0) + now - begun
        begun = now
    return found


@dataclass(frozen=True, slots=True)
class Groups:
    """By group what a run has of it besides kills, and what it takes."""

    covers: Mapping[Group, set[object]]
    seconds: Mapping[Group, float]

    @classmethod
    def measured(cls) -> Groups:
        covers: dict[Group, set[object]] = {}
        for seed in SEEDS:
            for group, seen in points(seed).items():
                level, op, dtype, name = group.split("/", 3)
                # Each op stays on each dtype, and each kind of program on dtypes of each class.
                kind = (level, op, name) if level == "op" else (level, op, name, _class(dtype))
                covers.setdefault(group, set()).update(seen, {(op, dtype), kind})
        return cls(covers, seconds_of_groups())


def _class(name: str) -> str:
    """What a fault may need of a dtype: that it is unsigned, signed, a float; else its name."""
    dtype: DType = getattr(dtypes, name)
    if dtype.is_float:
        return "float"
    return ("signed" if dtype.is_signed else "unsigned") if dtype.is_int else name


def kinds(matrix: Matrix) -> dict[Fault, frozenset[str]]:
    """The cases of each kind of program above single ops, on all dtypes."""
    found: dict[Fault, set[str]] = {}
    for group, ids in matrix.groups.items():
        level, op, _, name = group.split("/", 3)
        if level not in ("op", "invalid"):
            found.setdefault(Fault(f"{level}/{op}/{name}", 0), set()).update(ids)
    return {kind: frozenset(ids) for kind, ids in found.items()}


def choose(matrix: Matrix, groups: Groups, faults: Sequence[Fault]) -> set[Group]:
    """Groups that cover all points, and kill each fault and kind as often as all do, or enough.

    Those without which the others do that too are left out, the slowest first.
    """
    covers, of_kinds = groups.covers, kinds(matrix)
    matrix = replace(matrix, killers={**matrix.killers, **of_kinds})
    faults = [*faults, *of_kinds]
    demands = Counter({fault: min(ENOUGH, len(matrix.killers[fault])) for fault in faults})
    of_group = kills_of_groups(matrix, faults)
    chosen = {*filter(_stays, matrix.groups), *greedy(matrix, faults)}
    left = set().union(*covers.values()).difference(*(covers.get(g, set()) for g in chosen))
    for group in chosen:
        demands -= of_group[group]

    def worth(group: Group) -> int:
        kills = sum(min(n, demands[fault]) for fault, n in of_group[group].items())
        return kills * 8 + len(covers.get(group, set()) & left)

    heap = [(-worth(group), group) for group in matrix.groups if group not in chosen]
    heapq.heapify(heap)
    while heap:
        before, group = heapq.heappop(heap)
        now = worth(group)
        if now == -before and now:
            chosen.add(group)
            left -= covers.get(group, set())
            demands -= of_group[group]
        elif now:
            heapq.heappush(heap, (-now, group))
    return _without_needless(matrix, groups, faults, chosen)


def _without_needless(
    matrix: Matrix, groups: Groups, faults: Sequence[Fault], chosen: set[Group]
) -> set[Group]:
    spare = Counter({fault: -min(ENOUGH, len(matrix.killers[fault])) for fault in faults})
    of_group = kills_of_groups(matrix, faults)
    covered: Counter[object] = Counter()
    for group in chosen:
        spare.update(of_group[group])
        covered.update(groups.covers.get(group, ()))
    for group in sorted(chosen, key=lambda group: -groups.seconds[group]):
        kills, seen = of_group[group], groups.covers.get(group, ())
        is_needed = any(spare[f] < n for f, n in kills.items()) or any(
            covered[point] == 1 for point in seen
        )
        if not is_needed and not _stays(group):
            chosen.remove(group)
            spare.subtract(kills)
            covered.subtract(seen)
    return chosen


def greedy(matrix: Matrix, faults: Sequence[Fault]) -> list[Group]:
    """The groups that come first."""
    left = dict.fromkeys(faults, TIMES)
    of_group = kills_of_groups(matrix, faults)

    def worth(group: Group) -> float:
        kills = of_group[group].items()
        gain = sum(min(n, left[fault]) * (left[fault] / TIMES) ** 2 for fault, n in kills)
        return gain / len(matrix.groups[group])

    found: list[Group] = []
    heap = [(-worth(group), group) for group in matrix.groups]
    heapq.heapify(heap)
    while heap and len(found) < FIRST:
        before, group = heapq.heappop(heap)
        now = worth(group)
        if now >= -before > 0:
            found.append(group)
            for fault, n in of_group[group].items():
                left[fault] = max(left[fault] - n, 0)
        elif now:
            heapq.heappush(heap, (-now, group))
    return found


def ordered(matrix: Matrix, first: Sequence[Group]) -> list[str]:
    """All cases, those of the groups that come first before the others."""
    before = [id for group in first for id in matrix.groups[group]]
    every = in_turns([CaseId.parse(id) for ids in matrix.groups.values() for id in ids], 0)
    return [*before, *(id for id in map(str, every) if id not in set(before))]


def held_out(matrix: Matrix, groups: Groups) -> dict[str, list[float]]:
    """Print what is chosen on four fifths of the faults kills of the others; return the curves."""
    faults = sorted(matrix.killers)
    names = sorted({fault.name for fault in faults})
    random.Random(0).shuffle(names)
    shares: list[float] = []
    kills: dict[str, list[Sequence[float]]] = {}
    curves: dict[str, list[Sequence[float]]] = {}
    for fold in range(FOLDS):
        left_out = {*names[fold::FOLDS]}
        unseen = [fault for fault in faults if fault.name in left_out]
        seen = [fault for fault in faults if fault not in unseen]
        chosen = choose(matrix, groups, seen)
        shares.append(sum(len(matrix.groups[group]) for group in chosen))
        draws = [random.Random(k).sample(sorted(matrix.groups), len(chosen)) for k in range(DRAWS)]
        for name, picks in (("chosen", [chosen]), ("all", [matrix.groups]), ("random", draws)):
            each = [mean(matrix.killed(g, unseen, n) for g in picks) for n in (1, ENOUGH)]
            kills.setdefault(name, []).append(each)
        part = replace(matrix, killers={fault: matrix.killers[fault] for fault in unseen})
        prioritized = greedy(matrix.only(sorted(chosen)), seen)
        for name, first in (("prioritized", prioritized), ("in turns", [])):
            for least in (1, ENOUGH):
                shown = curve(part, ordered(matrix, first), least)
                curves.setdefault(f"{name}, killed by {least}", []).append(shown)
    count = sum(map(len, matrix.groups.values()))
    what = f"{len(names)} faults, {len(faults)} with their seeds, {FOLDS} folds"
    click.echo(f"{what}; {mean(shares):,.0f} of {count:,} cases chosen")
    click.echo(f"| groups | killed | by {ENOUGH} |\n|---|---:|---:|")
    for name, rows in kills.items():
        click.echo(_row(name, rows))
    click.echo(f"| first cases | {' | '.join(map(str, PREFIXES))} |\n|---{'|---:' * 6}|")
    for name, rows in curves.items():
        click.echo(_row(name, [[row[n - 1] for n in PREFIXES] for row in rows]))
    return {
        name: [mean(shares) for shares in zip(*rows, strict=True)] for name, rows in curves.items()
    }


def _row(name: str, rows: Sequence[Sequence[float]]) -> str:
    cells = [f"{mean(column):.1%}" for column in zip(*rows, strict=True)]
    return f"| {name} | {' | '.join(cells)} |"


def curve(matrix: Matrix, ids: Sequence[str], least: int) -> list[float]:
    """The share of the faults that the first 1, 2, 3 ... cases kill, each so often or as often as
    all of them do.
    """
    wanted = Counter({f: min(least, len(killers)) for f, killers in matrix.killers.items()})
    shares: list[float] = []
    by_case: dict[str, list[Fault]] = {}
    for fault, killers in matrix.killers.items():
        for id in killers:
            by_case.setdefault(id, []).append(fault)
    for id in ids:
        wanted -= Counter(by_case.get(id, ()))
        shares.append(1 - len(wanted) / len(matrix.killers))
    return shares


def picture(lines: Mapping[str, Sequence[float]]) -> str:
    """The curves as SVG: cases to the right, the share that is killed upwards."""
    width, height, most = 640, 320, max(map(len, lines.values()))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-50 -10 {width + 70} {height + 60}"'
             ' font-family="sans-serif" font-size="12" fill="currentColor">']  # fmt: skip
    for k in range(6):
        y = height * (1 - k / 5)
        parts.append(f'<path d="M0 {y:.0f}H{width}" stroke="currentColor" opacity=".2"/>')
        parts.append(f'<text x="-8" y="{y + 4:.0f}" text-anchor="end">{k * 20} %</text>')
    for k in range(0, most + 1, 500):
        x = width * k / most
        parts.append(f'<text x="{x:.0f}" y="{height + 18}" text-anchor="middle">{k:,}</text>')
    parts.append(f'<text x="{width}" y="{height + 38}" text-anchor="end">cases judged</text>')
    for number, (name, shares) in enumerate(lines.items()):
        steps = range(0, len(shares), 8)
        at = " ".join(f"{width * k / most:.1f},{height * (1 - shares[k]):.1f}" for k in steps)
        dashes = ("", "6 3", "2 3", "8 2 2 2")[number % 4]
        parts.append(f'<polyline points="{at}" fill="none" stroke="currentColor" '
                     f'stroke-width="1.5" stroke-dasharray="{dashes}"/>')  # fmt: skip
        y = height * 0.62 + 20 * number
        parts.append(f'<path d="M{width - 250} {y:.0f}h30" stroke="currentColor" '
                     f'stroke-width="1.5" stroke-dasharray="{dashes}"/>')  # fmt: skip
        parts.append(f'<text x="{width - 212}" y="{y + 4:.0f}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--write", is_flag=True, help="Write the groups that smoke leaves out.")
@click.option("--picture", "svg", type=click.Path(path_type=Path), help="Write the curve there.")
def main(files: Sequence[Path], write: bool, svg: Path | None) -> None:
    LEFT_OUT.clear()
    matrix = read(files)
    groups = Groups.measured()
    curves = held_out(matrix, groups)
    faults = sorted(matrix.killers)
    chosen = choose(matrix, groups, faults)
    first = greedy(matrix.only(sorted(chosen)), faults)
    stay = sum(len(matrix.groups[group]) for group in chosen)
    click.echo(f"{stay:,} cases of {len(chosen):,} groups stay of all {len(faults)} faults:")
    share = sum(map(groups.seconds.__getitem__, chosen)) / sum(groups.seconds.values())
    click.echo(f"they take {share:.0%} of the time of all groups")
    for n in (1, ENOUGH):
        ours, full = (matrix.killed(g, faults, n) for g in (chosen, matrix.groups))
        click.echo(f"killed by {n} or more: {ours:.1%}, by all groups {full:.1%}")
    hanging = [fault for fault in faults if len(matrix.killers[fault]) < ENOUGH]
    shown = ", ".join(dict.fromkeys(fault.name for fault in hanging))
    click.echo(f"killed by fewer than {ENOUGH} of all: {len(hanging)}: {shown}")
    if svg is not None:
        svg.write_text(picture(curves))
    if write:
        left_out = sorted(group for group in matrix.groups if group not in chosen)
        FILE.write_text(text_of(first, left_out), "utf-8")


if __name__ == "__main__":
    main()

"""What commands cost at two commits: processor seconds of all their processes, in turns.

`python benchmarks/price.py --base REV [--turns N] [--only NAME ...]`, with the packages of both
commits installed. The base is checked out beside this one. Each command has an empty home, so that
no driver has a cache; the bytecode of both is written before. A row has the median of the turns
and of their ratios, also for each program that was judged.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from uop.conformance.workers import guard

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Row:
    """A command, and the ratio to the base that is the goal."""

    name: str
    words: tuple[str, ...]
    goal: float


def conform(*words: str) -> tuple[str, ...]:
    return ("-m", "uop", "conform", *words)


ROWS = (
    Row("smoke opencl", conform("opencl", "--effort", "smoke"), 0.33),
    Row("smoke interpreter", conform("interpreter", "--effort", "smoke"), 0.5),
    Row("default opencl", conform("opencl", "--effort", "default"), 0.33),
    Row("one case", conform("interpreter", "--case", "op/ADD/int8/edges/0@2"), 0.25),
    Row("backends", ("-m", "uop", "backends"), 0.06),
    Row("lowering", ("benchmarks/lowering.py",), 0.5),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """Processor seconds, and the programs that the report counts, 0 where there is none."""

    seconds: float
    programs: int

    @property
    def each(self) -> float:
        return self.seconds / max(self.programs, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="a commit")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=[row.name for row in ROWS])
    options = parser.parse_args()
    # Processes that outlive their parent come here, so that their time counts too.
    guard.adopt()
    print("| command | base, s | now, s | ratio | a program | goal |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    with checkout(options.base) as base, tempfile.TemporaryDirectory() as bytecode:
        for root in (base, ROOT):
            compiled(root, bytecode)
        for row in ROWS:
            if not options.only or row.name in options.only:
                print(compared(row, base, bytecode, options.turns), flush=True)
    return 0


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "base"
        words = ["git", "worktree", "add", "--detach", "--quiet", str(place), commit]
        subprocess.run(words, cwd=ROOT, check=True)
        try:
            yield place
        finally:
            words = ["git", "worktree", "remove", "--force", str(place)]
            subprocess.run(words, cwd=ROOT, check=True)


def compared(row: Row, base: Path, bytecode: str, turns: int) -> str:
    pairs = [
        (python(base, bytecode, *row.words), python(ROOT, bytecode, *row.words))
        for _ in range(turns)
    ]
    before, after = (median(taken.seconds for taken in side) for side in zip(*pairs, strict=True))
    ratio = median(new.seconds / old.seconds for old, new in pairs)
    counted = all(taken.programs for pair in pairs for taken in pair)
    each = f"{median(new.each / old.each for old, new in pairs):.2f}" if counted else ""
    return f"| {row.name} | {before:.1f} | {after:.1f} | {ratio:.2f} | {each} | {row.goal} |"


def compiled(root: Path, bytecode: str) -> None:
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    words = [sys.executable, "-m", "compileall", "-q", "."]
    subprocess.run(words, cwd=root, env=variables, check=True, stdout=subprocess.DEVNULL)


def python(root: Path, bytecode: str, *words: str) -> Taken:
    """Run Python in a checkout. Raises CalledProcessError where a command fails."""
    with tempfile.TemporaryDirectory() as home:
        variables = {
            **os.environ,
            "HOME": home,
            "XDG_CACHE_HOME": home,
            "PYTHONPATH": str(root),
            "PYTHONPYCACHEPREFIX": bytecode,
        }
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        begun = spent()
        done = subprocess.run(
            [sys.executable, *words],
            cwd=home if "-m" in words else root,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        done.check_returncode()
        adopted()
        found = re.search(r"^([\d,]+) programs", done.stdout, re.MULTILINE)
        return Taken(spent() - begun, int(found[1].replace(",", "")) if found else 0)


def adopted() -> None:
    """Wait for the processes that came here."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())

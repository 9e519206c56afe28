"""What the fast half of the tests catches of what both halves catch, with mutants of our own code.

    python benchmarks/strength_of_tests.py draw FOLDER [--count 60] [--seed 0]
    python benchmarks/strength_of_tests.py cover FOLDER      # which tests run each mutant's lines
    python benchmarks/strength_of_tests.py judge FOLDER fast [--part K/N]
    python benchmarks/strength_of_tests.py judge FOLDER slow [--part K/N]
    python benchmarks/strength_of_tests.py table FOLDER

FOLDER keeps what is known, one line of JSON each, so that a run that was cut off goes on. A mutant
is one small change of one expression, at a place drawn at random from all product files. It is run
in a copy of the project by the tests of each module that ran its lines, those first that ran the
fewest mutants; `slow` judges what the fast half let pass. Needs Python 3.12 (`sys.monitoring`) and
what `tox -e slow` installs.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType
from typing import cast

import click
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = "spec", "interpreter", "compiler", "conformance", "uop"
NOT_PRODUCT = "conformance/mutants/", "conformance/findings/"
"""Faults that are planted, and records of what others did."""
HALVES = {"fast": "not slow", "slow": "slow"}
LIMIT = 1500
"""Seconds after which a mutant that never ends counts as caught."""
ENV_TARGETS, ENV_HITS = "UOP_STRENGTH_TARGETS", "UOP_STRENGTH_HITS"
ENV_CHOSEN, ENV_FAILING = "UOP_STRENGTH_RUN", "UOP_STRENGTH_FAILING"
AT_IMPORT = "import"
FAILING = "failing.txt"
"""In the folder: the tests that fail without a mutant, which judge none."""


@dataclass(frozen=True, slots=True)
class Site:
    """The text from `start` to `end` (bytes of the file) becomes `text`."""

    file: str
    line: int
    last: int
    start: int
    end: int
    before: str
    text: str
    at_import: bool


@dataclass(frozen=True, slots=True)
class Run:
    """What one half of the tests said about one mutant."""

    number: int
    half: str
    tests: int
    caught: bool
    by: str
    seconds: float


SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def changed(node: ast.AST) -> Iterator[str]:
    """Each text that a mutant has in place of the node."""
    match node:
        case ast.Compare(ops=[op]) if swap := SWAPS.get(type(op)):
            yield ast.unparse(ast.Compare(node.left, [swap()], node.comparators))  # type: ignore[list-item]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if swap := SWAPS.get(type(op)):
            other = ast.parse(ast.unparse(node), mode="eval").body
            other.op = swap()  # type: ignore[attr-defined]
            yield f"({ast.unparse(other)})"
        case ast.UnaryOp(op=ast.Not()):
            yield ast.unparse(node.operand)
        case ast.IfExp():
            yield f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() as value):
            yield str(value + 1)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "pass"


def sites(file: str) -> Iterator[Site]:
    """Each mutant of a file. Annotations, f-strings and what only types read are left out."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for text_line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text_line))

    def visit(node: ast.AST, inside: bool) -> Iterator[Site]:
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            return
        for text in changed(node):
            assert isinstance(node, ast.expr | ast.stmt)
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[cast(int, node.end_lineno) - 1] + cast(int, node.end_col_offset)
            before = source[start:end].decode()
            last = cast(int, node.end_lineno)
            yield Site(file, node.lineno, last, start, end, before, text, at_import=not inside)
        for name, value in ast.iter_fields(node):
            body = isinstance(node, ast.FunctionDef | ast.Lambda) and name == "body"
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, inside or body)

    yield from visit(ast.parse(source), inside=False)


def product_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    return [file for file in listed if file.endswith(".py") and not file.startswith(NOT_PRODUCT)]


def drawn(folder: Path) -> list[Site]:
    return [Site(**json.loads(line)) for line in (folder / "mutants.jsonl").open(encoding="utf-8")]


def hits(folder: Path) -> dict[int, set[str]]:
    """By mutant the tests that ran its lines; of the processes that tests start too."""
    found: dict[int, set[str]] = defaultdict(set)
    for line in (folder / "hits.txt").read_text("utf-8").splitlines():
        number, _, test = line.partition("\t")
        found[int(number)].add(test)
    return found


# --- in the processes of the tests


def watch() -> None:
    """Write the test that runs a mutant's lines to the file of hits, each once a process."""
    targets: dict[str, list[tuple[int, int, int]]] = {}
    for file, number, first, last in json.loads(os.environ[ENV_TARGETS]):
        targets.setdefault(file, []).append((number, first, last))
    seen: set[tuple[str, int]] = set()
    monitoring, events = sys.monitoring, sys.monitoring.events
    tool = monitoring.COVERAGE_ID
    root = f"{ROOT}{os.sep}"

    def places(code: CodeType) -> list[tuple[int, int, int]]:
        if not code.co_filename.startswith(root):
            return []
        return targets.get(code.co_filename[len(root) :], [])

    def started(code: CodeType, _: int) -> object:
        lines = {line for _, _, line in code.co_lines() if line is not None}
        if any(lines.intersection(range(a, b + 1)) for _, a, b in places(code)):
            monitoring.set_local_events(tool, code, events.LINE)
        return monitoring.DISABLE

    def ran(code: CodeType, line: int) -> object:
        here = [number for number, a, b in places(code) if a <= line <= b]
        if not here:
            return monitoring.DISABLE
        test = os.environ.get("PYTEST_CURRENT_TEST", AT_IMPORT).rpartition(" ")[0]
        for number in here:
            if (test, number) not in seen:
                seen.add((test, number))
                # Processes that are forked close what is open, and take its number for a pipe.
                with open(os.environ[ENV_HITS], "a", encoding="utf-8") as out:
                    out.write(f"{number}\t{test}\n")
        return None

    monitoring.use_tool_id(tool, "uop tests")
    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.LINE, ran)
    monitoring.set_events(tool, events.PY_START)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that are chosen, in their order, and that pass without a mutant."""
    failing = set(Path(os.environ[ENV_FAILING]).read_text("utf-8").splitlines())
    items[:] = [item for item in items if item.nodeid not in failing]
    if (path := os.environ.get(ENV_CHOSEN)) is None:
        return
    rank = {name: at for at, name in enumerate(Path(path).read_text("utf-8").splitlines())}
    kept = [item for item in items if item.nodeid in rank]
    items[:] = sorted(kept, key=lambda item: rank[item.nodeid])


# --- the commands


@click.group(help=__doc__)
def main() -> None:
    pass


def run_pytest(
    copy: Path, half: str, more: list[str], env: dict[str, str]
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", HALVES[half]]
    paths = [str(copy), str(copy / "benchmarks"), env.pop("PYTHONPATH", "")]
    return subprocess.Popen(
        [*command, "--uop", "uop", "--tb=line", *more],
        cwd=copy,
        env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@main.command()
@click.argument("folder", type=Path)
@click.option("--count", default=60, show_default=True)
@click.option("--seed", default=0, show_default=True)
def draw(folder: Path, count: int, seed: int) -> None:
    """Draw mutants, of different lines."""
    every = [site for file in product_files() for site in sites(file)]
    random.Random(seed).shuffle(every)
    chosen = list({(site.file, site.line): site for site in reversed(every)}.values())
    random.Random(seed + 1).shuffle(chosen)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "mutants.jsonl").open("x", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(site)) + "\n" for site in chosen[:count])
    click.echo(f"{count} of {len(every):,} mutants")


@main.command()
@click.argument("folder", type=Path)
def cover(folder: Path) -> None:
    """Run both halves once, and note which tests run each mutant's lines."""
    targets = [(site.file, n, site.line, site.last) for n, site in enumerate(drawn(folder))]
    started = folder.resolve() / "started"
    started.mkdir(exist_ok=True)
    text = "import strength_of_tests\nstrength_of_tests.watch()\n"
    (started / "sitecustomize.py").write_text(text, "utf-8")
    for half in HALVES:
        env = {
            ENV_TARGETS: json.dumps(targets),
            ENV_HITS: str(folder.resolve() / "hits.txt"),
            "PYTHONPATH": str(started),
        }
        process = run_pytest(ROOT, half, ["-n", "2", "--dist", "worksteal", "tests"], env)
        assert process.stdout is not None
        with (folder / FAILING).open("a", encoding="utf-8") as failing:
            for line in process.stdout:
                click.echo(line, nl=False)
                if line.startswith("FAILED "):
                    failing.write(line[len("FAILED ") :].partition(" - ")[0].strip() + "\n")


@main.command()
@click.argument("folder", type=Path)
@click.argument("half", type=click.Choice(list(HALVES)))
@click.option("--part", default="1/1", show_default=True, help="every Nth mutant, from the Kth")
def judge(folder: Path, half: str, part: str) -> None:
    """Run each mutant by the tests of one half that ran its lines."""
    k, n = map(int, part.split("/"))
    copy = folder.resolve() / f"copy{k}"
    if not copy.exists():
        git = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True)
        for name in git.stdout.decode().splitlines():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    found, done = hits(folder), {(run.number, run.half): run for run in runs(folder)}
    broad = Counter(test for tests in found.values() for test in tests)
    for number, site in enumerate(drawn(folder)):
        fast = done.get((number, "fast"))
        if (
            number % n != k - 1
            or (number, half) in done
            or (half == "slow" and (not fast or fast.caught))
        ):
            continue
        run = run_of(copy, number, site, half, sorted(found[number], key=lambda t: (broad[t], t)))
        with (folder / "runs.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(run)) + "\n")
        said = f"{run.by or 'passes'} {run.seconds:.0f} s"
        click.echo(f"{number} {site.file}:{site.line} {half}: {said}")


def run_of(copy: Path, number: int, site: Site, half: str, tests: list[str]) -> Run:
    """Run the tests that ran the lines; where more may have, as they ran on import, then all."""
    path = copy / site.file
    source = path.read_bytes()
    assert source[site.start : site.end].decode() == site.before, "the product has changed"
    modules = sorted({test.partition("::")[0] for test in tests if "::" in test})
    chosen = copy.with_suffix(".chosen")
    chosen.write_text("\n".join(tests), "utf-8")
    env = {ENV_FAILING: str(copy.parent / FAILING)}
    tries = [([m for m in modules if (copy / m).exists()], {**env, ENV_CHOSEN: str(chosen)})]
    if site.at_import or "" in tests:
        tries.append((["tests"], env))
    path.write_bytes(source[: site.start] + site.text.encode() + source[site.end :])
    began, by = time.monotonic(), ""
    try:
        for places, variables in tries:
            by = by or (first_failure(copy, half, places, variables) if places else "")
    finally:
        path.write_bytes(source)
    return Run(number, half, len(tests), bool(by), by[:200], time.monotonic() - began)


def first_failure(copy: Path, half: str, places: list[str], env: dict[str, str]) -> str:
    """The line of the first failure; empty if the tests pass."""
    process = run_pytest(copy, half, ["-x", "-p", "strength_of_tests", *places], env)
    try:
        text, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return f"no end within {LIMIT} s"
    by = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    # 5: no test was chosen; other codes are failures, of the tests or of their import.
    return by[0] if by else "" if process.returncode in (0, 5) else "pytest did not start"


def runs(folder: Path) -> list[Run]:
    path = folder / "runs.jsonl"
    if not path.exists():
        return []
    return [Run(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


@main.command()
@click.argument("folder", type=Path)
def table(folder: Path) -> None:
    """Print what each half caught."""
    told = {(run.number, run.half): run for run in runs(folder)}
    caught = {half: {n for n, h in told if h == half and told[n, h].caught} for half in HALVES}
    for number, site in enumerate(drawn(folder)):
        half = next((half for half in HALVES if number in caught[half]), "none")
        change = f"{' '.join(site.before.split())[:60]} -> {' '.join(site.text.split())[:60]}"
        click.echo(f"{number:3} {half:5} {site.file}:{site.line} {change}")
    fast, both = len(caught["fast"]), len(caught["fast"] | caught["slow"])
    click.echo(f"fast {fast} of {both} that both catch; {len(drawn(folder))} mutants")


if __name__ == "__main__":
    main()

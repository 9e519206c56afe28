"""Prints the figures this project promises, as measured here.

`python benchmarks/figures.py [PART...]`; the parts are command, machine, tensor, ledger, editions,
interpreter, fuzz_programs, stablehlo, adversary, pushed, opencl, smoke, warm and full, without any
all of them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from drawn import fuzz_programs
from evaluation import machine, tensor
from figure import Figure, at_least, at_most, equal
from language import editions, ledger
from modules import stablehlo
from rich.console import Console
from rich.table import Table

from uop.conformance.backends.adversary import AdversaryBackend
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.report.model import Report
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.shrink.reduce import is_computing
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id, groups
from uop.conformance.workers.transport import Local
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

UOP = [sys.executable, "-m", "uop"]
WORKERS = 2


def judged(backend: str, **chosen: Any) -> Report:
    """A run of the suite, with an empty kernel cache, as all runs are."""
    with tempfile.TemporaryDirectory() as folder:
        return conform(Options(backend, workers=WORKERS, output=Path(folder), **chosen))


def first_result(backend: str) -> float:
    """Seconds from the command to the first result on screen."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*UOP, "conform", backend, "-n", str(WORKERS), "--time", "5", "--output", folder],
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        seconds = time.monotonic() - begun
        process.communicate()
    return seconds


def command() -> Iterator[Figure]:
    """The command line itself."""
    subprocess.run([*UOP, "--help"], check=True, capture_output=True)
    times = []
    for _ in range(5):
        begun = time.monotonic()
        subprocess.run([*UOP, "--help"], check=True, capture_output=True)
        times.append(time.monotonic() - begun)
    yield at_most("uop --help", min(times), 0.3, "s")


def interpreter() -> Iterator[Figure]:
    """The reference judged by the suite, as a whole and on random graphs of some size."""
    whole = judged("interpreter")
    yield equal("uop conform interpreter", whole.conclusion.value, "conforms")
    yield Figure("speed over all levels", "", f"{speed(whole):,.0f} programs/s")
    middle = graphs_of(range(8, 13))
    nodes = sum(map(computing, middle)) / len(middle)
    inputs = [a.size for case in middle for batch in case.batches for a in batch.inputs.values()]
    about = f"{len(middle)} graphs, {nodes:.1f} nodes and {sum(inputs) / len(inputs):.0f} elements"
    before = children_seconds()
    report = judged("interpreter", cases=tuple(str(case.id) for case in middle))
    each = (children_seconds() - before) / len(middle)
    yield at_least(f"speed on {about} on average", speed(report), 1000, "programs/s")
    yield Figure(
        "processor time of all processes, their start included", "", f"{each * 1e3:.2g} ms"
    )
    here = judged_here([str(case.id) for case in middle])
    yield at_most("processor time of a program, no process started", here * 1e3, 2, "ms")


def judged_here(ids: list[str]) -> float:
    """Processor seconds of a program: made, printed, parsed, evaluated, and judged by its sets."""
    judge = Judge(Local(InterpreterBackend()), STRICT)
    begun = time.process_time()
    for start in range(0, len(ids), 64):
        judge.judge([case_by_id(id) for id in ids[start : start + 64]])
    return (time.process_time() - begun) / len(ids)


def graphs_of(sizes: range) -> list[Case]:
    """The random graphs with so many computing nodes."""
    ids = selected(Options("interpreter", levels=("graph",), effort="full"))
    cases = (case_by_id(str(id)) for id in ids)
    return [case for case in cases if isinstance(case, Case) and computing(case) in sizes]


def computing(case: Case) -> int:
    return sum(is_computing(u) for u in case.root.toposort())


def children_seconds() -> float:
    """The processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def speed(report: Report) -> float:
    return report.summary.programs / report.summary.seconds


def adversary() -> Iterator[Figure]:
    """The adversarial conformer: never accused."""
    elements = alarms = seed = 0
    while elements < 10**7:
        summary = judged("adversary", seed=seed).summary
        elements, seed = elements + summary.elements, seed + 1
        alarms += summary.wrong
    yield at_least("uop conform adversary: elements", elements, 10**7, "")
    yield equal("alarms", alarms, 0)


def pushed() -> Iterator[Figure]:
    """The adversarial conformer with one op pushed outside what it may return: always accused."""
    programs = accused = 0
    for op in [d.op for d in DECLARATIONS.values() if d.is_elementwise]:
        judge = Judge(Local(AdversaryBackend(op.name)), STRICT)
        cases = list(single_op_cases(op))
        statuses = [verdict.status for verdict in judge.judge(cases)]
        programs, accused = programs + len(cases), accused + statuses.count(Status.FAILED)
    yield equal(f"accused of {programs} single-op programs, each op pushed", accused, programs)


def single_op_cases(op: Op) -> Iterator[Case]:
    """The programs of one op on special values, per dtype."""
    for group in groups("op"):
        if group.op == op.name and group.id(0).group == "edges":
            case = group.case(0, 0)
            if isinstance(case, Case):
                yield case


def opencl() -> Iterator[Figure]:
    """The project's own compiler on OpenCL."""
    report = judged("opencl")
    summary = report.summary
    exhaustive = sum(id.group == "exhaustive" for id in selected(Options("opencl")))
    cells = [cell for cell in report.cells if cell.level == "op" and cell.elements]
    least = min(cells, key=lambda cell: cell.constrained_share)
    yield equal(f"uop conform opencl, {report.backend.device}", report.conclusion, "conforms")
    yield equal("failed, crashed", summary.wrong, 0)
    yield at_least("programs but the exhaustive ones", summary.programs - exhaustive, 2000, "")
    yield at_least("distinct graphs of 8 nodes or more", report.graphs or 0, 1000, "")
    yield at_least("elements", summary.elements, 10**6, "")
    yield at_least("constrained", 100 * summary.constrained_share, 97, "%")
    name = f"least constrained cell of level op ({least.op} {least.dtype})"
    yield at_least(name, 100 * least.constrained_share, 90, "%")
    yield at_most("time from an empty kernel cache", report.summary.seconds, 240, "s")
    yield at_least("cold", speed(report), 60, "programs/s")
    yield at_most("first result on screen", first_result("opencl"), 1.5, "s")


def smoke() -> Iterator[Figure]:
    """The shortest run."""
    report = judged("opencl", effort="smoke")
    about = f"uop conform opencl --effort smoke, {report.summary.programs:,} programs"
    yield at_most(about, report.summary.seconds, 15, "s")


def warm() -> Iterator[Figure]:
    """The same run again, with the kernels that the driver has kept."""
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, POCL_CACHE_DIR=cache):
        judged("opencl")
        yield at_least("uop conform opencl, warm", speed(judged("opencl")), 300, "programs/s")


def full() -> Iterator[Figure]:
    """The longest run."""
    report = judged("opencl", effort="full")
    yield equal("uop conform opencl --effort full: failed, crashed", report.summary.wrong, 0)
    yield Figure(
        "programs, elements", "", f"{report.summary.programs:,}, {report.summary.elements:,}"
    )
    yield at_most("time", report.summary.seconds / 60, 30, "min")


PARTS: dict[str, Callable[[], Iterator[Figure]]] = {
    part.__name__: part
    for part in (
        command,
        machine,
        tensor,
        ledger,
        editions,
        interpreter,
        fuzz_programs,
        stablehlo,
        adversary,
        pushed,
        opencl,
        smoke,
        warm,
        full,
    )
}


def main(chosen: list[str]) -> int:
    """Measure and print; 1 where a figure does not hold."""
    table = Table("figure", "promised", "measured", "")
    holds = True
    for name in chosen or PARTS:
        for figure in PARTS[name]():
            missed = "NO" if figure.holds is False else ""
            table.add_row(figure.name, figure.promised, figure.measured, missed)
            holds &= figure.holds is not False
    Console(width=130).print(table)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

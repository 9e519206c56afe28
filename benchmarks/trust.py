"""Tries what must not change a verdict: a busy machine, killed processes, how much time there was.

    python benchmarks/trust.py verdicts [--busy 16] [--count 5]  # innocent backends, guilty ones
    python benchmarks/trust.py kills [--busy N] [--count 40]     # each kind of process killed
    python benchmarks/trust.py recipe [--busy N] [--count 10]    # two timed runs, and `uop diff`
    python benchmarks/trust.py memory                            # runs that fail on many programs

`--busy N` runs N processes beside it that want a processor all the time; `recipe` changes their
number at random. The exit code is 1 where something is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

import psutil

WORKER = f"command:{sys.executable} {Path(__file__).parents[1] / 'examples/workers/worker.py'}"
JUDGED = ("interpreter", "numpy", "opencl", WORKER)
STUCK = """
import threading, time
from uop.conformance.backends.interpreter import InterpreterBackend

class Backend(InterpreterBackend):
    def run(self, programs):
        return self.stop() if any("SIN" in p.text for p in programs) else super().run(programs)

class Sleeps(Backend):
    def stop(self):
        time.sleep(1e6)

class Spins(Backend):
    def stop(self):
        while True:
            pass

class Deadlocks(Backend):
    def stop(self):
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
"""
WRONG = """
from zlib import crc32
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.types import Outputs, Problem, ProblemKind

class Wrong(InterpreterBackend):
    def run(self, programs):
        problem = Problem(ProblemKind.INTERNAL, "wrong")
        return [o if crc32(p.text.encode()) % 8 == 0 else problem
                for p, o in zip(programs, super().run(programs))]
"""
HUNGRY = (
    ("tinygrad:CPU", "--effort", "smoke"),
    ("tinygrad:X86", "--effort", "smoke"),
    ("tinygrad:PYTHON", "--effort", "smoke"),
    ("tinygrad:CL", "--time", "6m"),
    ("wrong:Wrong", "--effort", "full", "--time", "20m"),
)
MOST_BYTES, MOST_SECONDS = 1 << 30, 1500
ONE = ("--op", "SIN", "--dtype", "float32", "--effort", "smoke", "--examples", "1", "-n", "1")
GUILTY = ("Deadlocks", "Sleeps", "Spins")
FEW = ("--op", "ADD,MUL,CAST,WHERE,REDUCE,PERMUTE,NEG,MAX", "--dtype", "int8,float32")
FAULT, BROKEN = "mutant:integer-casts-saturate", "op/CAST/int8"
"""A fault of one op on one dtype, and where its first failing program is."""
VICTIMS = {"worker": "serve", "judge": "judge", "server": "fork server", "main": "python"}
"""By kind what its name and command line begin with."""
RUNS = {
    "conform": ("conform", "interpreter", "--op", "ADD,CAST,REDUCE,LOAD", "--effort", "smoke"),
    "fuzz": ("fuzz", "interpreter", "--time", "15s"),
}
ALLOWED = {"worker": (0, 4), "judge": (0, 4), "server": (0, 4), "main": (-signal.SIGKILL,)}
PATIENCE = 30.0
LATEST = 4.0
"""The latest moment of a kill, in seconds after the start of a run."""


@dataclass(frozen=True, slots=True)
class Killed:
    """What a run ended with."""

    command: str
    victim: str
    at: float
    hit: bool
    code: int
    wrong: tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=sorted(TRIALS))
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--busy", type=int, default=0, help="busy processes beside it")
    options = parser.parse_args()
    good = all_of = 0
    for said, is_right in TRIALS[options.what](options):
        good, all_of = good + is_right, all_of + 1
        print(f"{'ok   ' if is_right else 'WRONG'} {said}", flush=True)
    print(f"{good} of {all_of} as they should")
    return int(good < all_of)


def verdicts(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Smoke runs alone and beside busy processes; workers that give no answer, in both."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stuck.py").write_text(STUCK)
        alone: dict[str, list[str]] = {}
        for count in (0, options.busy):
            with busy(count):
                for backend in JUDGED * (options.count or 5 if count else 1):
                    _, said, seconds = uop(folder, "conform", backend, "--effort", "smoke")
                    end = said.partition("verdict: ")[2]
                    found = [verdict(said), *re.findall(r"[\d,]+ programs, .* failed", end)[:1]]
                    expected = alone.setdefault(backend, found)
                    yield f"{seconds:5.0f} s  {backend}: {'; '.join(found)}", found == expected
                for how in GUILTY:
                    _, said, seconds = uop(folder, "conform", f"stuck:{how}", *ONE)
                    yield f"{seconds:5.0f} s  {how}: {verdict(said)}", "[hang " in said


def memory(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Runs that fail on many programs: each process stays small, and each run ends by itself."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "wrong.py").write_text(WRONG)
        for backend, *words in HUNGRY[: options.count or None]:
            report = Path(folder, "report.json")
            command = [sys.executable, "-P", "-m", "uop", "conform", backend, *words]
            begun = time.monotonic()
            run = subprocess.Popen([*command, "--json", str(report)], cwd=folder, text=True)
            held = [0]
            while run.poll() is None:
                held.append(most_held(run.pid))
                time.sleep(0.5)
            seconds = time.monotonic() - begun
            third = len(held) // 3
            # Programs of 2^24 elements take more for a moment; what grows stays to the end.
            bounded = held[2 * third :] if "full" in words else held
            summary = json.loads(report.read_text("utf-8"))
            yield (
                f"{backend}: {seconds:.0f} s; at most {max(held) >> 20} MiB a process "
                f"({max(held[:third]) >> 20} in the first third, "
                f"{max(held[2 * third :]) >> 20} in the last); {figures(summary)}",
                max(bounded) <= MOST_BYTES and seconds < MOST_SECONDS,
            )


def most_held(pid: int) -> int:
    """The bytes that the largest process of a run holds now."""
    most = 0
    with suppress(psutil.Error):
        run = psutil.Process(pid)
        for process in (run, *run.children(recursive=True)):
            with suppress(psutil.Error):
                most = max(most, process.memory_info().rss)
    return most


def figures(report: dict[str, Any]) -> str:
    """The failing programs of a report, their causes, and how many of them stay unexplained."""
    sums = report["summary"]
    unexplained = len(report.get("unexplained", ()))
    return (
        f"{sums['programs']:,} programs, {sums['failed'] + sums['crashed']:,} failed, "
        f"{len(report['failures'])} causes, {unexplained:,} unexplained; {sums['verdict']}"
    )


def recipe(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """The judging and comparing steps of docs/ci.md, on one commit and on one with a fault."""
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        before, _ = timed(folder, "before", "interpreter", chance)
        for number in range(options.count or 10):
            for backend in ("interpreter", FAULT):
                after, judged = timed(folder, f"{number}", backend, chance)
                code, said, _ = uop(folder, "diff", before, after)
                cause = said.partition("new cause: ")[2].partition("\n")[0]
                is_right = code == 1 and BROKEN in cause if backend == FAULT else code == 0
                codes = f"exit codes {judged} of the run and {code} of diff"
                yield f"{backend}: {codes}; {cause or 'no new cause'}", is_right


def timed(folder: str, name: str, backend: str, chance: random.Random) -> tuple[str, int]:
    """The report and exit code of a run of a minute beside a random number of busy processes."""
    report = str(Path(folder, f"{name}.json"))
    with busy(chance.choice((0, 1, 4, 16))):
        code, *_ = uop(folder, "conform", backend, *FEW, "--time", "60s", "--json", report)
    return report, code


def uop(folder: str, *words: str) -> tuple[int, str, float]:
    """Run a command in a folder; its exit code, output and seconds."""
    begun = time.monotonic()
    command = [sys.executable, "-P", "-m", "uop", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - begun


def verdict(said: str) -> str:
    return next((line for line in said.splitlines() if line.startswith("verdict: ")), said[-300:])


def kills(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Runs of which a process is killed at a random moment: nothing is charged, nothing is left."""
    chance = random.Random(options.seed)
    with busy(options.busy):
        for command, victim in islice(cycle(product(RUNS, VICTIMS)), options.count or 40):
            result = killed(command, victim, chance.uniform(0.2, LATEST))
            said = "; ".join(result.wrong) or "as it should"
            hit = "killed" if result.hit else "had ended"
            text = (
                f"{command}: {victim} {hit} at {result.at:.1f} s: exit code {result.code}, {said}"
            )
            yield text, not result.wrong


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that want a processor all the time."""
    spin = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    # In one session they would share what Linux gives to a session.
    every = [subprocess.Popen(spin, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in every:
            process.kill()
            process.wait()


def killed(command: str, victim: str, at: float) -> Killed:
    """Run a command in folders of its own and kill a process of it."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder, "tmp")
        scratch.mkdir()
        report = Path(folder, "report.json")
        words = [sys.executable, "-P", "-m", "uop", *RUNS[command], "-n", "2"]
        process = subprocess.Popen(
            [*words, "--json", str(report), "--output", str(Path(folder, "repros"))],
            env={**os.environ, "TMPDIR": str(scratch)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(at)
        hit = kill(process.pid, victim)
        said, _ = process.communicate()
        wrong = (
            []
            if process.returncode in (ALLOWED[victim] if hit else (0,))
            else ["a wrong exit code"]
        )
        if "Traceback" in said:
            wrong.append("a traceback")
        if hit and victim != "main" and not is_report(report):
            wrong.append("no report")
        wrong += [f"left {name}" for name in left(scratch)]
        if wrong:
            print(said)
    return Killed(command, victim, at, hit, process.returncode, tuple(wrong))


def kill(pid: int, victim: str) -> bool:
    """Kill a process of a run; False where there is none now."""
    with suppress(psutil.Error):
        run = psutil.Process(pid)
        for process in (run, *run.children(recursive=True)):
            if re.match(VICTIMS[victim], " ".join([process.name(), *process.cmdline()])):
                process.kill()
                return True
    return False


def is_report(path: Path) -> bool:
    try:
        return "summary" in json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False


def left(scratch: Path) -> list[str]:
    """The processes and files of a run that are still there a while after its end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        there = [path.name for path in scratch.iterdir()]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(str(scratch)):
                    there.append(" ".join(process.cmdline()[:6]))
        if not there or time.monotonic() > deadline:
            return there
        time.sleep(0.1)


TRIALS = {"kills": kills, "memory": memory, "recipe": recipe, "verdicts": verdicts}

if __name__ == "__main__":
    sys.exit(main())

"""Kills a worker, a judging process or a run itself at random moments, and says how it ends.

`python benchmarks/kills.py [--count N] [--seed S] [--busy N]`. Of a worker or a judge that is
killed nothing may be charged to the backend: the exit code is 0, or 4 with a report. Nothing is
left: no process and no temporary file. Exit code 1 where one of these fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
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

import psutil

VICTIMS = {"worker": "workers.serve", "judge": "pool_member", "main": "-m uop"}
"""By kind what its command line has."""
COMMANDS = {
    "conform": ("conform", "interpreter", "--op", "ADD,CAST,REDUCE,LOAD", "--effort", "smoke"),
    "fuzz": ("fuzz", "interpreter", "--time", "15s"),
}
ALLOWED = {"worker": (0, 4), "judge": (0, 4), "main": (-signal.SIGKILL,)}
PATIENCE = 30.0
LATEST = 8.0
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
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--busy", type=int, default=0, help="busy processes beside it")
    options = parser.parse_args()
    chance, bad = random.Random(options.seed), 0
    with busy(options.busy):
        for command, victim in islice(cycle(product(COMMANDS, VICTIMS)), options.count):
            result = killed(command, victim, chance.uniform(0.2, LATEST))
            bad += bool(result.wrong)
            said = "; ".join(result.wrong) or "as it should"
            hit = "killed" if result.hit else "had ended"
            print(
                f"{command}: {victim} {hit} at {result.at:.1f} s: exit code {result.code}, {said}",
                flush=True,
            )
    print(f"{options.count - bad} of {options.count} as they should")
    return int(bad > 0)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that want a processor all the time."""
    spin = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    every = [subprocess.Popen(spin) for _ in range(count)]
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
        words = [sys.executable, "-P", "-m", "uop", *COMMANDS[command], "-n", "2"]
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
            if VICTIMS[victim] in " ".join(process.cmdline()):
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


if __name__ == "__main__":
    sys.exit(main())

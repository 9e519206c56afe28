"""Tests, judges and measures CUDA on a machine with a GPU, where this project is not installed.

`benchmarks/on_gpu.sh [--output FOLDER] [--seconds N]`. Each step is a process whose output goes to
a file as it comes; a step that fails or takes too long does not keep the next from running.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 520
PATIENCE = 20.0
"""The seconds that a step has to write its report when its time is over."""
SHOWN = 70
"""The last lines of the output of a step that the summary shows."""
MARK = "pytest.mark.cuda"


@dataclass(frozen=True, slots=True)
class Step:
    """A command of Python, and the most of the remaining time that it may take."""

    name: str
    words: Sequence[str]
    share: float


@dataclass(slots=True)
class Done:
    """A step that ran, or runs."""

    step: Step
    outcome: str = "cut off"
    seconds: float = 0.0


class Results:
    """The files of a run: the output of each step, and a summary that is written after each."""

    def __init__(self, folder: Path) -> None:
        self.begun = datetime.now(UTC)
        self.folder = folder
        self.name = f"{self.begun:%Y-%m-%d-%H%M}-cuda"
        self.done: list[Done] = []
        folder.mkdir(parents=True, exist_ok=True)

    def place(self, name: str, kind: str = "txt") -> Path:
        return self.folder / f"{self.name}-{name}.{kind}"

    def write(self) -> None:
        lines = [f"# CUDA, {self.begun:%Y-%m-%d %H:%M} UTC", "", f"commit {commit()}", ""]
        lines += ["| step | outcome | seconds | command |", "|---|---|---|---|"]
        for one in self.done:
            command = shlex.join(("python3", *one.step.words))
            lines.append(f"| {one.step.name} | {one.outcome} | {one.seconds:.0f} | `{command}` |")
        for one in self.done:
            said = self.place(one.step.name).read_text("utf-8", "replace").splitlines()
            lines += ["", f"## {one.step.name}", "", "```", *said[-SHOWN:], "```"]
        (self.folder / f"{self.name}.md").write_text("\n".join(lines) + "\n", "utf-8")


def steps(results: Results, scratch: str, quick: bool) -> list[Step]:
    """All steps, the longest last. `quick` tries the script itself: few cases, small sizes."""
    marked = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
        if MARK in path.read_text("utf-8")
    ]
    few = ["-k", "runtime_cuda and not suite"] if quick else []
    test = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--uop", "uop", "-m", "cuda"]
    part = ["2^22"] if quick else []
    figures, size = "benchmarks/gpu_figures.py", ["--quick"] if quick else []
    return [
        Step("machine", [figures, "machine"], 0.2),
        Step("tests", [*test, *few, *marked], 0.4),
        Step("smoke", conform(results, scratch, "smoke", quick), 0.5),
        Step("figures", [figures, "figures", *size], 0.4),
        Step("kernels", ["benchmarks/kernels.py", "--target", "cuda", *part], 0.5),
        Step("default", conform(results, scratch, "default", quick), 1.0),
    ]


def conform(results: Results, scratch: str, effort: str, quick: bool) -> list[str]:
    """The suite; its `--time` is known when it starts."""
    few = ["--op", "ADD,EXP2", "--level", "op", "-n", "2"] if quick else []
    report = str(results.place(effort, "json"))
    words = ["-m", "uop", "conform", "cuda", "--effort", effort, *few]
    return [*words, "--json", report, "--output", f"{scratch}/{effort}"]


def run(step: Step, left: float, log: Path) -> str:
    """Run a step in its time: "passed", or why it has not."""
    limit = left * step.share
    words = list(step.words)
    if "conform" in words:
        # What it judges by then is followed by the search for causes and the report.
        words += ["--time", f"{max(limit * 0.7, 1):.0f}s"]
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
        # The machine's other plugins are none of these tests' concern.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(max(limit - PATIENCE, 1))
        except subprocess.TimeoutExpired:
            return f"over its {limit:.0f} s"
        finally:
            end(process)
    return f"exit code {code}" if code else "passed"


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with its group; it may write its report first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def commit() -> str:
    """The commit of the checkout; where git does not say, unknown."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.decode().strip()


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """1 where a step has not passed, 130 where the run was cut off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all steps together")
    parser.add_argument("--quick", action="store_true", help="few cases and small sizes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    last = time.monotonic() + options.seconds
    results = Results(options.output.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        for step in steps(results, scratch, options.quick):
            if not take(step, results, last - time.monotonic()):
                return 130
    return int(any(done.outcome != "passed" for done in results.done))


def take(step: Step, results: Results, left: float) -> bool:
    """Run a step and write the summary before and after it; False where the run is cut off."""
    done = Done(step)
    results.done.append(done)
    results.place(step.name).touch()
    results.write()
    begun = time.monotonic()
    try:
        done.outcome = run(step, left, results.place(step.name))
    except KeyboardInterrupt:
        return False
    finally:
        done.seconds = time.monotonic() - begun
        results.write()
        print(f"{step.name}: {done.outcome}, {done.seconds:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())

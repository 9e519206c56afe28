"""Faults of the judge that show in whole runs, not in a case: tests kill them, not `uop mutants`.

`python tests/faults_of_judge.py` puts each into all processes of the test that shall
fail with it, and names those that survive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from uop.conformance.mutants.catalogue import JUDGE, Mutant

FOLDER = Path(__file__).parent
FAULT = "UOP_FAULT"
"""The variable with the name of the fault that `with_fault/sitecustomize.py` puts in."""
FAILED = 1
"""How pytest ends where tests ran and failed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the judge, and the test that fails with it: `conformance/test_x.py::test_y`."""

    mutant: Mutant
    killed_by: str


@cache
def faults() -> Mapping[str, Fault]:
    """The faults by name, in the order of the file."""
    tables = tomllib.loads(Path(FOLDER, "faults_of_judge.toml").read_text("utf-8"))["fault"]
    found = {}
    for table in tables:
        killed_by = table.pop("killed_by")
        mutant = Mutant(**{"inside": "", **table}, breaks=(), backend=JUDGE)
        found[mutant.name] = Fault(mutant, killed_by)
    return found


def is_killed(fault: Fault, root: Path) -> bool:
    """Whether an assertion of its test fails with the fault in every process.

    `root` is the folder of `uop`.
    """
    paths = [str(FOLDER / "with_fault"), str(FOLDER), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        FAULT: fault.mutant.name,
    }
    test = str(FOLDER / fault.killed_by)
    # Rewritten assertions are in modules that pytest loads itself, without the fault.
    options = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "--uop", str(root))
    command = [sys.executable, "-P", "-m", "pytest", *options, test]
    ran = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300)
    return ran.returncode == FAILED and b"AssertionError" in ran.stdout


def main() -> int:
    import uop

    root, survivors = Path(str(uop.__file__)).resolve().parent, 0
    for name, fault in faults().items():
        begun = time.monotonic()
        killed = is_killed(fault, root)
        survivors += not killed
        seconds = time.monotonic() - begun
        print(f"{'killed' if killed else 'SURVIVES':8} {seconds:5.1f} s {name}", flush=True)
    print(f"{len(faults()) - survivors} of {len(faults())} killed")
    return survivors


if __name__ == "__main__":
    sys.exit(main())

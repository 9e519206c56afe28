"""An op that another package adds, by one module and one entry point: the suite knows all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A command of Python where a package that adds `added_op` is installed."""
    return installed(tmp_path_factory.mktemp("added"), "added_op")


def installed(folder: Path, module: str) -> Run:
    package = folder / "added-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[uop.additions]\nadded = {module}\n")
    path = os.pathsep.join([str(folder), str(TESTS), os.environ.get("PYTHONPATH", "")])

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_suite_judges_it(added: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = added("uop", "conform", "interpreter", "--op", "ABS", "--json", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = json.loads(report.read_text())["ledger"]
    kinds = {kind: (of["checked"], of["total"]) for kind, of in ledger["kinds"].items()}
    assert kinds["cell"] == (14, 14)
    assert kinds["label"] == (3, 3)
    assert ledger["checked"] == ledger["total"]


def test_a_fault_in_it_is_found(added: Run) -> None:
    done = added("uop", "conform", "added_fault:Faulty", "--op", "ABS", "--effort", "smoke")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "op/ABS/float32" in done.stdout
    assert "op/ABS/int32" not in done.stdout


def test_the_compiler_has_it(added: Run, tmp_path: Path) -> None:
    program = tmp_path / "abs.uop"
    program.write_text("%0 = PARAM [4] {slot=0, dtype=int16}\n%1 = ABS %0\n")
    done = added("uop", "compile", str(program), "--target", "cuda")
    assert "t0 < 0 ? (i16)(0 - (u32)t0) : t0" in done.stdout, done.stderr
    done = added("uop", "conform", "opencl", "--op", "ABS", "--effort", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_explained(added: Run) -> None:
    page = added("uop", "explain", "ABS").stdout
    assert page.startswith("ABS(T)\n  |x|; the lowest integer stays.\n")
    assert "-128  -128" in page
    rejected = added("uop", "explain", "ABS.arity").stdout
    assert "ABS %0, %0" in rejected


def test_it_has_a_page(added: Run, tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    added("uop.conformance.reference.docs", str(tmp_path))
    assert "|x|; the lowest integer stays." in (tmp_path / "ops" / "ABS.md").read_text()
    assert "[ABS](ABS.md)" in (tmp_path / "ops" / "README.md").read_text()


def test_what_a_module_leaves_out_is_named(tmp_path: Path) -> None:
    """A declaration alone: no meaning, no accepted floats, no cases."""
    (tmp_path / "half.py").write_text(
        "from uop.spec import latitude\n"
        "from uop.spec.dtype import FLOATS\n"
        "from uop.spec.ops.elementwise import elementwise\n"
        "from uop.spec.ops.names import Op\n"
        'elementwise(Op("ABS"), ("T",), "|x|.", FLOATS, latitude=latitude.RECIP)\n'
    )
    run = installed(tmp_path, "half")
    for backend in ("interpreter", "opencl"):
        done = run("uop", "conform", backend, "--op", "ABS", "--effort", "smoke")
        assert done.returncode == 2, done.stdout
        said = [line.strip().partition(":")[0] for line in done.stderr.splitlines()]
        assert said == [
            "error",
            "a meaning",
            "a set of accepted floats, as its latitude is not EXACT",
            "cases with its special values",
        ]


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = installed(tmp_path, "absent_module")("uop", "explain", "ADD")
    assert done.returncode == 2
    assert done.stderr.startswith("error: addition 'added' cannot be imported: No module")

"""An op or dtype that another package adds, by a module and an entry point: the suite knows it."""

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


@pytest.fixture(scope="module")
def with_dtype(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same for `added_dtype`."""
    return installed(tmp_path_factory.mktemp("dtype"), "added_dtype")


def installed(folder: Path, *modules: str) -> Run:
    package = folder / "added-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
    names = ("added", "later")
    lines = ["[uop.additions]", *(f"{n} = {m}" for n, m in zip(names, modules, strict=False))]
    (package / "entry_points.txt").write_text("\n".join(lines))
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


@pytest.mark.slow
def test_the_suite_judges_it(added: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = added("uop", "conform", "interpreter", "--op", "ABS", "--json", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = json.loads(report.read_text())["ledger"]
    kinds = {kind: (of["checked"], of["total"]) for kind, of in ledger["kinds"].items()}
    assert kinds["cell"] == (14, 14)
    assert kinds["label"] == (3, 3)
    assert ledger["checked"] == ledger["total"]


@pytest.mark.slow
def test_a_fault_in_it_is_found(added: Run) -> None:
    done = added("uop", "conform", "added_fault:Faulty", "--op", "ABS", "--effort", "smoke")
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    (explained,) = [line for line in done.stdout.splitlines() if "explains" in line]
    assert "[result ABS float" in found
    assert {"float16", "float32"} <= set(explained.replace(",", "").split())
    assert "int" not in explained


@pytest.mark.slow
def test_the_compiler_has_it(added: Run, tmp_path: Path) -> None:
    program = tmp_path / "abs.uop"
    program.write_text("%0 = PARAM [4] {slot=0, dtype=int16}\n%1 = ABS %0\n")
    done = added("uop", "compile", str(program), "--target", "cuda")
    assert "t0 < 0 ? (i16)(0 - (u32)t0) : t0" in done.stdout, done.stderr
    done = added("uop", "conform", "opencl", "--op", "ABS", "--effort", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_it_is_explained(added: Run) -> None:
    page = added("uop", "explain", "ABS").stdout
    assert page.startswith("ABS(T)\n  |x|; the lowest integer stays.\n")
    assert "-128  -128" in page
    rejected = added("uop", "explain", "ABS.arity").stdout
    assert "ABS %0, %0" in rejected


@pytest.mark.slow
def test_it_has_a_page(added: Run, tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    added("uop.conformance.reference.docs", str(tmp_path))
    assert "|x|; the lowest integer stays." in (tmp_path / "ops" / "ABS.md").read_text()
    assert "[ABS](ABS.md)" in (tmp_path / "ops" / "README.md").read_text()


@pytest.mark.slow
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


ABOUT_DTYPE = ("conform", "--dtype", "float8_e3m4", "--effort", "smoke")


def test_a_dtype_has_values(with_dtype: Run, tmp_path: Path) -> None:
    """By hand: 4 fraction bits, exponents -2 to 3, so 15.5 is the largest and 2^-6 the least."""
    program = tmp_path / "values.uop"
    program.write_text(
        "%0 = PARAM [2,3] {slot=0, dtype=float32}\n"
        "%1 = CAST %0 {dtype=float8_e3m4}\n"
        "%2 = CAST %1 {dtype=float32}\n"
        "%3 = ADD %1, %1\n"
        "%4 = REDUCE %1 {op=ADD, axes=(1)}\n"
        "%5 = CMPLT %1, %3\n"
        "%6 = TUPLE %2, %3, %4, %5\n"
        "input 0 = [1.03125, 1.09375, -0x1.8p-6, 15.74, 15.75, 0x1p-7]\n"
    )
    done = with_dtype("uop", "run", str(program))
    assert " ".join(done.stdout.split()) == (
        "0 : float32[2,3] = [[1.0, 1.125, -0.03125], [15.5, inf, 0.0]] "
        "1 : float8_e3m4[2,3] = [[2, 2.25, -0.0625], [inf, inf, 0]] "
        "2 : float8_e3m4[2,1] = [[2.125], [inf]] "
        "3 : bool[2,3] = [[true, true, false], [true, false, false]]"
    ), done.stderr


@pytest.mark.slow
def test_the_suite_judges_a_dtype(with_dtype: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = with_dtype("uop", *ABOUT_DTYPE, "interpreter", "--json", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = json.loads(report.read_text())["ledger"]
    assert ledger["kinds"]["cell"]["checked"] == ledger["kinds"]["cell"]["total"] == 25
    assert ledger["checked"] == ledger["total"]


@pytest.mark.slow
def test_a_fault_in_a_dtype_is_found(with_dtype: Run) -> None:
    options = ("--op", "CAST", "--dtype", "float32")
    done = with_dtype("uop", "conform", "added_fault:Truncating", *options)
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert failed
    assert all("float8_e3m4" in case for case in failed)


@pytest.mark.slow
def test_the_compiler_has_a_dtype(with_dtype: Run, tmp_path: Path) -> None:
    """Its conversions in C follow from its format."""
    program = tmp_path / "twice.uop"
    program.write_text("%0 = PARAM [4] {slot=0, dtype=float8_e3m4}\n%1 = ADD %0, %0\n")
    done = with_dtype("uop", "compile", str(program), "--stage", "callify")
    assert "ADD" in done.stdout, done.stderr
    assert ": float8_e3m4[4]" in done.stdout
    done = with_dtype("uop", "compile", str(program), "--target", "cuda")
    assert "f32_to_float8_e3m4(t2)" in done.stdout, done.stderr
    done = with_dtype("uop", *ABOUT_DTYPE, "opencl")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_dtype_is_named_where_dtypes_are(with_dtype: Run) -> None:
    assert "fp8e5m2 float8_e3m4" in with_dtype("uop", "explain", "SQRT").stdout
    refused = with_dtype("uop", "eval", "sqrt(i8(1))").stderr
    assert "SQRT.c1: operand 0 is one of: float16 " in refused
    assert " float8_e3m4\n" in refused


@pytest.mark.slow
@pytest.mark.parametrize("modules", [("added_op", "added_dtype"), ("added_dtype", "added_op")])
def test_an_op_takes_a_dtype_of_another_package(tmp_path: Path, modules: tuple[str, str]) -> None:
    run = installed(tmp_path, *modules)
    for backend in ("interpreter", "opencl"):
        done = run("uop", *ABOUT_DTYPE, backend, "--op", "ABS")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 of 1 listed cells judged" in done.stdout


@pytest.mark.slow
def test_a_dtype_without_a_storage_is_named(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(
        "from uop.spec.dtype import DType, FloatFormat, Kind\n"
        'DType("float8_e3m4", Kind.FLOAT, 8, FloatFormat(3, 4))\n'
    )
    run = installed(tmp_path, "alone")
    for arguments in (("conform", "interpreter"), ("eval", "float8_e3m4(1)")):
        done = run("uop", *arguments)
        assert done.returncode == 2, done.stdout
        assert done.stderr.splitlines() == [
            "error: float8_e3m4 is declared, but lacks:",
            "  its numpy dtype: add_storage of interpreter/numeric/storage.py",
        ]


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = installed(tmp_path, "absent_module")("uop", "explain", "ADD")
    assert done.returncode == 2
    assert done.stderr.startswith("error: addition 'added' cannot be imported: No module")

"""Whose fault an error is: what an adapter does wrong says nothing about its library."""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import Run
from packaging.requirements import Requirement
from reports import PASSED, SKIPPED, report

from uop.conformance.adapters.onnx import library as onnx_library
from uop.conformance.adapters.stablehlo import library
from uop.conformance.backends import tinygrad_library
from uop.conformance.backends.attempt import DRIVER, place_in_adapter
from uop.conformance.backends.numpy import NumpyBackend
from uop.conformance.backends.onnx import OnnxRuntimeBackend, OpenVINOBackend, TVMBackend
from uop.conformance.backends.stablehlo import IREEBackend
from uop.conformance.backends.versions import is_tested, version_of
from uop.conformance.judging.verdict import together
from uop.conformance.report.format import read_report
from uop.conformance.report.merge import joined
from uop.conformance.report.model import Conclusion

LIBRARY = """
from enum import Enum
class Error(RuntimeError): pass
class Ops(Enum): ADD = 1
def two(): return 1, 2
def takes(a): return a
def fails(): return {}["key"]
class Lazy:
    def __getattr__(self, name): raise AttributeError(name)
lazy = Lazy()
def refuses(): raise Error("no")
"""
ADAPTER = """
import math
from uop import Op, UOp
def run(library):
    {}
"""
OF_ADAPTER = (
    "library.gone",
    "library.lazy.gone",
    "library.takes(1, 2)",
    "a, b, c = library.two()",
    "library.two()[2]",
    "library.Ops['SUB']",
    "gone",
    "import library.gone",
    "math.sqrt('')",
    "getattr(math, 'gone')",
    "UOp(Op.ADD)",
)
OF_LIBRARY = ("library.fails()", "library.refuses()", "math.sqrt(-1.0)", "raise library.Error")


def place(statement: str, module: str) -> str:
    """Where the error of a statement in a module of that name comes from."""
    used = ModuleType("library")
    exec(LIBRARY, vars(used))
    adapter: dict[str, Any] = {"__name__": module}
    exec(ADAPTER.format(statement), adapter)
    try:
        adapter["run"](used)
    except Exception as error:  # noqa: BLE001 - the test is about errors of any class
        return place_in_adapter(error)
    raise AssertionError(f"no error: {statement}")


@pytest.mark.parametrize("statement", OF_ADAPTER)
def test_an_error_of_a_bundled_adapter_is_its_own(statement: str) -> None:
    assert place(statement, "uop.conformance.adapters.some").startswith("uop.")


@pytest.mark.parametrize("statement", OF_LIBRARY)
def test_an_error_of_a_library_is_not_the_adapters(statement: str) -> None:
    """Nor is one of a function in C, which has no frame."""
    assert place(statement, "uop.conformance.adapters.some") == ""


@pytest.mark.parametrize("module", ["some_plugin", DRIVER])
@pytest.mark.parametrize("statement", [s for s in OF_ADAPTER if s != "UOp(Op.ADD)"])
def test_an_error_of_a_plugin_is_the_backends(module: str, statement: str) -> None:
    """So is one about what it returns."""
    assert place(statement, module) == ""


SMOKE = ("--effort", "smoke", "--level", "op")


def judged(uop: Run, name: str, folder: Path, *options: str) -> tuple[int, str, Any]:
    """The exit code of `uop conform`, its output and its report."""
    file = folder / "report.json"
    files = ("--json", file, "--output", folder / "failures")
    found = uop("conform", f"moved_library:{name}", *SMOKE, *options, *files)
    return found.code, found.out, read_report(file)


def test_an_untested_version_is_said_in_a_line(uop: Run, tmp_path: Path) -> None:
    code, out, report = judged(uop, "Untested", tmp_path, "--op", "ADD")
    note = f"note: the adapter was not tested with moved {report.backend.version}, but with 1"
    assert code == 0, out
    assert note in out.splitlines()
    assert report.backend.tested == ("1",)
    assert (report.summary.unfit, report.summary.unjudged) == (False, {})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "Moved",
            "the adapter raises AttributeError: module 'numpy' has no attribute 'multiply' at uop.",
        ),
        ("Refusing", "each of 12 programs of its self-test raises AttributeError: 'int' object"),
    ],
)
def test_a_library_that_has_moved_is_not_accused(
    uop: Run, tmp_path: Path, name: str, why: str
) -> None:
    code, out, report = judged(uop, name, tmp_path, "--op", "ADD")
    version = report.backend.version
    assert code == 4, out
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert report.summary.unfit
    assert report.summary.programs == 0
    expected = f"the adapter, tested with 1, does not fit moved {version}: {why}"
    assert report.summary.open_because.startswith(expected)
    assert f"verdict: moved: inconclusive, {expected}" in out
    assert "next:" not in out


def test_what_an_adapter_cannot_run_is_not_judged(uop: Run, tmp_path: Path) -> None:
    """Though all that it can run is right, the run is inconclusive."""
    code, out, report = judged(uop, "PartlyMoved", tmp_path, "--op", "ADD,LOG2")
    ((error, count),) = report.summary.unjudged.items()
    assert code == 4, out
    assert error.startswith(
        "the adapter raises AttributeError: module 'numpy' has no attribute 'log2' at uop."
    )
    assert f"inconclusive, {count} programs not judged: {error}" in out
    assert report.summary.passed
    assert not report.summary.failed
    assert {c.op for c in report.cells if c.skipped} == {"LOG2"}


@pytest.mark.slow
def test_what_is_wrong_beside_that_fails_the_run(uop: Run, tmp_path: Path) -> None:
    code, out, report = judged(uop, "PartlyMovedAndWrong", tmp_path, "--op", "ADD,LOG2")
    assert code == 1, out
    assert {cell.op for cell in report.cells if cell.failed} == {"ADD"}
    assert "programs not judged: the adapter raises AttributeError" in out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("OwnFault", "AttributeError: 'numpy.ndarray' object has no attribute 'square_root'"),
        ("UnderTest", "AttributeError: 'int' object has no attribute 'const'"),
        ("Nothing", "TypeError: 'NoneType' object is not iterable"),
    ],
    ids=["OwnFault", "UnderTest", "Nothing"],
)
def test_a_fault_of_a_plugin_is_not_excused(uop: Run, tmp_path: Path, name: str, said: str) -> None:
    code, out, report = judged(uop, name, tmp_path, "--op", "SQRT", "--dtype", "float32")
    assert code == 1, out
    assert report.conclusion is Conclusion.DOES_NOT
    assert all(said in failure.message for failure in report.failures)
    assert not report.summary.unjudged


def test_one_that_does_not_start_does_not_fit_either(uop: Run) -> None:
    found = uop("conform", "moved_library:NotStarting", "--op", "ADD")
    assert found.code == 4
    assert "the adapter, tested with 1, does not fit numpy" in found.err
    assert "it does not start: AttributeError" in found.err


FILE = """\
%0 = PARAM [2] {slot=0, dtype=float32}
%1 = ADD %0, %0
input 0 = [1.0, 2.0]
"""


@pytest.mark.parametrize("options", [(), ("--bisect",)])
def test_replay_and_bisect(uop: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    file = tmp_path / "add.uop"
    file.write_text(FILE)
    found = uop("replay", file, "moved_library:Refusing", *options)
    assert found.code == (125 if options else 4)
    assert "does not fit moved" in found.err
    assert uop("replay", file, "moved_library:Untested", *options).code == 0


def test_a_replayed_program_that_the_adapter_cannot_run(uop: Run, tmp_path: Path) -> None:
    file = tmp_path / "two.uop"
    file.write_text(f"case add\n{FILE}case log\n{FILE.replace('ADD %0, %0', 'LOG2 %0')}")
    found = uop("replay", file, "moved_library:PartlyMoved")
    assert found.code == 4, found.out
    assert "log: not judged: the adapter raises AttributeError" in found.out


def test_fuzz(uop: Run, tmp_path: Path) -> None:
    backend, options = "moved_library:Refusing", ("--time", "5s", "--output", tmp_path / "failures")
    found = uop("fuzz", backend, *options)
    assert found.code == 4, found.out
    assert "does not fit moved" in found.out
    found = uop("fuzz", "interpreter", "--against", backend, *options)
    assert found.code == 4
    assert "does not fit moved" in found.err


def test_a_comparison(uop: Run, tmp_path: Path) -> None:
    """What fails on another backend is not tried on one that does not fit."""
    file, page = tmp_path / "both.json", tmp_path / "page.html"
    names = ("moved_library:OwnFault", "moved_library:Refusing")
    selected = (*SMOKE, "--op", "SQRT", "--dtype", "float32", "--output", tmp_path / "failures")
    found = uop("compare", *names, *selected, "--json", file, "--html", page)
    assert found.code == 0, found.out
    assert "moved_library:Refusing: inconclusive: the adapter, tested with 1, does not" in found.out
    other = read_report(file).every[1]
    assert other.summary.unfit
    assert other.tried is None
    assert "does not fit moved" in page.read_text()


def test_reports_in_every_form(uop: Run, tmp_path: Path) -> None:
    page, junit = tmp_path / "page.html", tmp_path / "junit.xml"
    forms = ("--html", str(page), "--junit", str(junit))
    judged(uop, "PartlyMoved", tmp_path, "--op", "LOG2", "--dtype", "float32", *forms)
    for text in (page.read_text(), junit.read_text()):
        assert "the adapter raises AttributeError: module" in text
    assert "the adapter was not tested with moved" in page.read_text()


def test_reports_without_these_keys_are_read(uop: Run, tmp_path: Path) -> None:
    judged(uop, "Untested", tmp_path, "--op", "ADD", "--dtype", "float32")
    file = tmp_path / "report.json"
    written = json.loads(file.read_text())
    del written["backend"]["tested"], written["summary"]["unfit"], written["summary"]["unjudged"]
    file.write_text(json.dumps(written))
    old = read_report(file)
    assert (old.backend.tested, old.summary.unfit, old.summary.unjudged) == ((), False, {})


def test_shards_and_twins_keep_what_is_not_judged() -> None:
    unjudged = replace(SKIPPED, unjudged="KeyError: 'no'")
    merged = joined([report(PASSED), report(PASSED, unjudged), report(PASSED, unjudged)])
    assert merged.conclusion is Conclusion.INCONCLUSIVE
    assert merged.summary.unjudged == {"KeyError: 'no'": 2}
    assert merged.summary.open_because.startswith("2 programs not judged")
    for verdicts in ([PASSED, unjudged], [PASSED, PASSED, unjudged], [PASSED, SKIPPED, unjudged]):
        assert together(verdicts).unjudged == unjudged.unjudged


PROJECT = Path(__file__).parents[2] / "pyproject.toml"
STATED = {
    tinygrad_library.NAME: tinygrad_library.TESTED,
    "jax": library.TESTED,
    "onnx": onnx_library.TESTED,
    "onnxruntime": OnnxRuntimeBackend.tested,
    OpenVINOBackend.distribution: OpenVINOBackend.tested,
    TVMBackend.distribution: TVMBackend.tested,
    IREEBackend.distribution: IREEBackend.tested,
    NumpyBackend.distribution: NumpyBackend.tested,
}
"""By distribution the versions that its adapters state."""


def requirements() -> dict[str, Requirement]:
    """What this project asks of each distribution."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return {one.name: one for one in map(Requirement, lines)}


@pytest.mark.parametrize("name", STATED)
def test_adapters_state_versions_that_the_project_installs(name: str) -> None:
    """An extra whose lower bound is raised, or that a later version ends, shows here."""
    asked = requirements()[name].specifier
    assert [v for v in STATED[name] if not asked.contains(f"{v}.99")] == []
    least = next((s.version for s in asked if s.operator in (">=", "==")), "")
    assert is_tested(least.removesuffix(".*"), STATED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", STATED)
def test_adapters_state_the_version_that_these_tests_run(name: str) -> None:
    try:
        installed = distribution(name).version
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert is_tested(installed, STATED[name]), f"{name} {installed}: state it where it passes"


def test_versions() -> None:
    for version in ("0.14", "0.14.0", "0.14.2.dev1", "0.14rc1", "0.14.0 (sources)"):
        assert is_tested(version, ("0.13", "0.14"))
    for version in ("0.145", "0.1", "10.14", "unknown (sources)"):
        assert not is_tested(version, ("0.13", "0.14"))


def test_sources_in_place_of_an_installed_package_say_their_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert version_of("numpy") == distribution("numpy").version
    sources = ModuleType("numpy")
    sources.__file__ = str(tmp_path / "numpy" / "__init__.py")
    monkeypatch.setitem(sys.modules, "numpy", sources)
    assert version_of("numpy") == "unknown (sources)"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "numpy"\nversion = "9.1.0"\n')
    assert version_of("numpy") == "9.1.0 (sources)"
    monkeypatch.setattr(sources, "__version__", "9.2.0", raising=False)
    assert version_of("numpy") == "9.2.0 (sources)"


def test_another_tinygrad_does_not_fit(
    uop: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in without its parts, as sources in front of the installed ones."""
    (tmp_path / "tinygrad").mkdir()
    (tmp_path / "tinygrad" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.99.0"\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    found = uop("conform", "tinygrad:PYTHON", "--op", "ADD")
    assert found.code == 4
    assert "tested with 0.14, does not fit tinygrad 0.99.0 (sources): it does not" in found.err

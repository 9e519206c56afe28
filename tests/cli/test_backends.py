"""`uop backends` and `uop run --backend`: who is here, what the others lack, and bad replies."""

import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop.cli.suite import backends
from uop.conformance import backends as registered
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind
from uop.conformance.workers import single
from uop.spec.errors import BackendError, UndefinedError, UnsupportedError, UopError
from uop.spec.text.program import parse

PROGRAM = """\
%0 = PARAM [3] {slot=0, dtype=int8} : int8[3]
%1 = NEG %0 : int8[3]
input 0 = [1,2,-128]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM)
    return path


@pytest.mark.slow
def test_every_registered_backend_has_a_line(uop: Any) -> None:
    outcome = uop("backends", "--devices")
    assert outcome.code == 0
    lines = {line.split()[0]: line for line in outcome.out.splitlines() if not line.startswith(" ")}
    assert sorted(lines) == registered.names()
    assert "ready" in lines["interpreter"]


def test_the_list_starts_nothing_and_says_which_package_is_missing(
    uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(name: str) -> tuple[bool, str]:
        raise AssertionError(name)

    monkeypatch.setattr(backends, "probe", start)
    monkeypatch.setitem(backends.NEEDS, "tvm", ("no_such.module", "tvm"))
    outcome = uop("backends")
    assert outcome.code == 0
    *lines, last = outcome.out.splitlines()
    assert [line.split()[0] for line in lines] == registered.names()
    states = dict(line.split(maxsplit=1) for line in lines)
    assert states["interpreter"] == "installed"
    assert states["tvm"].startswith("missing")
    assert states["tvm"].endswith('install it with: pip install "uop[tvm]"')
    assert "--devices" in last


def test_what_a_backend_needs_is_what_its_extra_brings() -> None:
    """Each extra is one of the project, and each backend with an extra of its name has a line."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    assert {extra for _, extra in backends.NEEDS.values()} <= extras.keys()
    assert set(registered.names()) & extras.keys() <= backends.NEEDS.keys()


def test_entry_points_have_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on they are found by name alone."""
    mine = EntryPoint("mine", "some:Class", registered.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: iter([mine]))
    assert registered.find("mine")[0] is mine


def test_a_backend_that_lacks_its_library_says_so_and_how_to_get_it(
    uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(name: str) -> tuple[bool, str]:
        return False, "pyopencl is not usable here"

    monkeypatch.setattr(registered, "names", lambda: ["opencl"])
    monkeypatch.setattr(backends, "probe", lacking)
    monkeypatch.setattr(backends, "devices", lambda: iter(()))
    outcome = uop("backends", "--devices")
    assert outcome.code == 0
    assert outcome.out.startswith("opencl  missing  pyopencl is not usable here\n")
    for _, command in backends.WAYS:
        assert command in outcome.out


def test_a_program_runs_on_a_backend(uop: Any, program: Path) -> None:
    assert uop("run", program, "--backend", "interpreter").out == "0 : int8[3] = [-1, -2, -128]\n"


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name in registered.names() if name != "cuda"])
def test_every_backend_gives_the_exact_result(name: str) -> None:
    root = parse(PROGRAM.partition("input")[0])
    try:
        results = single.run_on(name, root, {0: np.array([1, 2, -128], np.int8)})
    except BackendError as error:
        pytest.skip(str(error))
    assert {n: value.data.tolist() for n, value in results.items()} == {0: [-1, -2, -128]}


def test_an_unknown_backend_is_bad_input(uop: Any, program: Path) -> None:
    outcome = uop("run", program, "--backend", "abacus")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no backend 'abacus'; known: " in outcome.err


def test_a_backend_that_does_not_start_is_exit_3(
    uop: Any, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BackendError("backend 'interpreter' did not start: no device")

    monkeypatch.setattr(single, "started", refused)
    monkeypatch.setattr(single, "known", lambda name: None)
    outcome = uop("run", program, "--backend", "elsewhere")
    assert (outcome.code, outcome.out) == (3, "")
    assert "did not start: no device" in outcome.err


def test_trace_is_for_the_interpreter(uop: Any, program: Path) -> None:
    outcome = uop("run", program, "--backend", "elsewhere", "--trace")
    assert outcome.code == 2
    assert "--trace is for the interpreter" in outcome.err


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Problem(ProblemKind.UNSUPPORTED, "no float64"), UnsupportedError),
        (Problem(ProblemKind.TRAP, "out of bounds"), UndefinedError),
        (Problem(ProblemKind.CRASH, "ended by SIGSEGV"), BackendError),
        (Problem(ProblemKind.COMPILE, "syntax"), BackendError),
        (Outputs(()), BackendError),
    ],
)
def test_a_problem_is_its_error(outcome: Outcome, error: type[UopError]) -> None:
    with pytest.raises(error, match="elsewhere"):
        single.outputs_of("elsewhere", outcome)


def test_a_backend_that_stops_may_say_the_clause() -> None:
    outcome = Problem(ProblemKind.TRAP, "INDEX.u1: too far\n  found: 3", "INDEX.u1")
    with pytest.raises(UndefinedError) as caught:
        single.outputs_of("elsewhere", outcome)
    assert caught.value.label == "INDEX.u1"
    assert str(caught.value) == "INDEX.u1: backend 'elsewhere': too far\n  |   found: 3"


def test_results_of_effects_are_numbered_by_slot() -> None:
    root = parse(
        "%0 = BUFFER [1] {slot=5, dtype=int8}\n%1 = CONST {value=2, dtype=int8}\n%2 = STACK %1\n"
        "%3 = STORE %0, %2\n%4 = SINK %3\n"
    )
    results = single.run_on("interpreter", root, {})
    assert {slot: value.data.tolist() for slot, value in results.items()} == {5: [2]}


@pytest.mark.slow
def test_a_worker_starts_in_a_folder_that_hides_the_packages(tmp_path: Path, program: Path) -> None:
    """As a clone of the repository does: its folder `uop` holds the front door only."""
    (tmp_path / "uop").mkdir()
    (tmp_path / "uop" / "__init__.py").write_text("")
    script = "import sys\nfrom uop.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    words = ("run", str(program), "--backend", "interpreter")
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "0 : int8[3] = [-1, -2, -128]\n"), done.stderr

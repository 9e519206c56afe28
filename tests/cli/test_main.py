"""The frame of the command line: help, usage errors, exit codes, what an import costs."""

import json
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest

from uop.cli import COMMANDS, cli
from uop.cli.program import exit_code
from uop.conformance.run import Exit
from uop.spec import errors
from uop.spec.errors import (
    BackendError,
    InvalidError,
    MalformedError,
    PassError,
    UndefinedError,
    UnsupportedError,
    UopError,
)


def test_help_names_every_command(uop: Any) -> None:
    outcome = uop("--help")
    assert outcome.code == 0
    assert set(COMMANDS) <= set(outcome.out.split())


def test_help_loads_no_third_party_module_but_click() -> None:
    script = (
        "import sys, json\nfrom uop.__main__ import main\nmain(['--help'])\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert not loaded & {"numpy", "ml_dtypes", "flint", "rich", "pyopencl", "cupy", "hypothesis"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_that_starts_with_its_line(uop: Any, name: str) -> None:
    outcome = uop(name, "--help")
    assert outcome.code == 0
    assert COMMANDS[name][1] in outcome.out


def test_version_is_that_of_the_distribution(uop: Any) -> None:
    assert uop("--version").out == f"uop {version('uop')}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"]])
def test_wrong_usage_is_exit_2(uop: Any, arguments: list[str]) -> None:
    outcome = uop(*arguments)
    assert outcome.code == Exit.USAGE
    assert "nonsense" in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MalformedError("unknown op", 3, 6), Exit.USAGE),
        (InvalidError("ADD.c1", "one dtype"), Exit.USAGE),
        (errors.NativeError("a BINARY"), Exit.USAGE),
        (UndefinedError("INDEX.u1", "out of bounds"), Exit.USAGE),
        (UnsupportedError("no float64"), Exit.USAGE),
        (errors.RefusedError("may be dependent"), Exit.USAGE),
        (errors.DeviceLacksError("no float64"), Exit.USAGE),
        (errors.LackingError("INS.n1", "no meaning"), Exit.USAGE),
        (errors.IncompleteError("ABS", "a meaning"), Exit.USAGE),
        (PassError("rangeify"), Exit.FAILED),
        (BackendError("crashed"), Exit.NO_BACKEND),
        (errors.UnfitError("another version"), Exit.INCONCLUSIVE),
        (errors.LaunchError("wrote outside"), Exit.NO_BACKEND),
        (errors.OutOfMemoryError("too little"), Exit.NO_BACKEND),
        (errors.DeviceLostError("a wrong address"), Exit.NO_BACKEND),
        (errors.ChangedError("another device"), Exit.INCONCLUSIVE),
        (errors.JudgeLostError("killed"), Exit.INCONCLUSIVE),
    ],
)
def test_the_exit_code_of_every_error(error: UopError, code: Exit) -> None:
    assert exit_code(error) is code


def test_every_error_has_its_exit_code_tested() -> None:
    marks = test_the_exit_code_of_every_error.pytestmark  # type: ignore[attr-defined]
    tested = {type(case[0]) for case in marks[0].args[1]}
    declared = {e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, UopError)}
    # The roots are raised as what is below them only.
    assert tested == declared - {UopError, errors.LabelledError}


def test_ctrl_c_is_exit_130_without_a_traceback(uop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "get_command", interrupted)
    outcome = uop("anything")
    assert outcome.code == Exit.INTERRUPTED
    assert outcome.err.strip() == "interrupted"

"""Runs the command line as a user does, and hands back all that it says."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from uop.__main__ import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command did: its exit code and both of its streams."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def uop(capsys: pytest.CaptureFixture[str]) -> Run:
    """`uop("run", path)` is the command `uop run PATH`."""

    def run(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run

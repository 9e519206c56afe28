"""Adds the options of `pytest --pyargs uop.conformance`, which judges a backend test by test."""

from __future__ import annotations

import contextlib
from itertools import chain
from typing import TYPE_CHECKING

from uop.conformance.run import Exit

if TYPE_CHECKING:
    import pytest
    from _pytest.terminal import TerminalReporter

DEFAULT = "interpreter"
JUDGED = "uop_judged"
"""The property of a test that holds the number of programs it has judged."""
NOTHING = "uop: inconclusive, no program was judged: the backend takes none of those chosen"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, unless another plugin has them already."""
    options = parser.getgroup("uop", "judge a backend of the UOp language")
    with contextlib.suppress(ValueError):
        options.addoption(
            "--backend", default=DEFAULT, help="The backend that uop.conformance judges."
        )
        options.addoption(
            "--programs", type=int, default=10, help="Programs for each op and level."
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Exit with inconclusive where no program was judged: such a run must not be green."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _judged_nothing(reporter) and session.exitstatus == 0:
        session.exitstatus = Exit.INCONCLUSIVE


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say that no program was judged."""
    if _judged_nothing(terminalreporter):
        terminalreporter.write_line(NOTHING)


def _judged_nothing(reporter: TerminalReporter) -> bool:
    """Whether tests of the suite ran, but judged no program."""
    reports = chain.from_iterable(reporter.stats.values())
    counts = [n for r in reports for name, n in getattr(r, "user_properties", ()) if name == JUDGED]
    return bool(counts) and not any(counts)

"""The options of `pytest --pyargs uop.conformance`, which judges a backend test by test."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

DEFAULT = "interpreter"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; one that another plugin has already is left to it."""
    options = parser.getgroup("uop", "judge a backend of the UOp language")
    with contextlib.suppress(ValueError):
        options.addoption(
            "--backend", default=DEFAULT, help="The backend that uop.conformance judges."
        )
        options.addoption(
            "--programs", type=int, default=10, help="Programs for each op and level."
        )

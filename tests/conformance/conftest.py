"""Makes the faulty backends importable by the processes of workers."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _faulty_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    there = os.environ.get("PYTHONPATH")
    paths = [str(Path(__file__).parent), *([there] if there else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

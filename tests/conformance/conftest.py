"""Fixtures: backends that can be imported, and files of known failures."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reports import REPRO


@pytest.fixture(autouse=True, scope="module")
def _faulty_backends() -> Iterator[None]:
    """Makes the faulty backends importable by the processes of workers."""
    there = os.environ.get("PYTHONPATH")
    paths = [str(Path(__file__).parent), *([there] if there else [])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield


@pytest.fixture
def choosing_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the backends that choose importable in this process."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a file of known failures, with two programs: one beside it, one that is its own."""

    def write(text: str) -> Path:
        path = tmp_path / "uop-known.toml"
        for program in (tmp_path / "r.uop", tmp_path / "uop-known" / "a.uop"):
            program.parent.mkdir(exist_ok=True)
            program.write_text(REPRO)
        path.write_text(text)
        return path

    return write

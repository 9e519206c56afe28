"""Which dtypes a known failure covers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uop.__main__ import main
from uop.conformance.run import Exit
from uop.conformance.run.known import read_known


@pytest.mark.slow
def test_a_known_failure_of_one_dtype_hides_none_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ("--op", "CAST", "--dtype", "float32", "--level", "op", "-n", "1")
    chosen = (*chosen, "--profile", "strict")
    assert main(["conform", "backends_for_tests:WrongByte", *chosen, "--update-known"]) == Exit.OK
    assert "joined: result CAST float32+uint8\n" in capsys.readouterr().out
    path = Path("uop-known.toml")
    path.write_text(path.read_text().replace("WrongByte", "WrongUnsigned"))
    assert main(["conform", "backends_for_tests:WrongUnsigned", *chosen]) == Exit.FAILED
    said = capsys.readouterr().out
    assert "[result CAST float32+uint16]" in said
    assert "[result CAST float32+uint8]" not in said
    # Unless the line says so.
    path.write_text(path.read_text().replace("reason =", 'dtypes = "any", reason ='))
    assert main(["conform", "backends_for_tests:WrongUnsigned", *chosen]) == Exit.OK
    assert "but for" in capsys.readouterr().out


@pytest.mark.slow
def test_a_known_failure_of_any_dtypes_explains_where_its_own_are_not_judged(
    uop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ("--op", "CAST", "--dtype", "float32", "--level", "op", "--profile", "strict")
    run = ("conform", "backends_for_tests:WrongUnsigned", *chosen, "-n", "1")
    assert uop(*run, "--update-known").code == Exit.OK
    path = Path("uop-known.toml")
    eight = next(e for e in read_known(path).entries if e.signature.endswith("+uint8"))
    line = f'signature = "{eight.signature}", reason = "r", repro = "{eight.repro}"'
    for extra, code in (("", Exit.FAILED), (', dtypes = "any"', Exit.OK)):
        path.write_text(f"known = [\n  {{ {line}{extra} }},\n]\n")
        outcome = uop(*run, "--skip-dtype", "uint8", "--json", "r.json")
        assert outcome.code == code, outcome.out
    found = json.loads(Path("r.json").read_text())
    assert (found["failures"], found["summary"]["failed"]) == ([], 0)
    assert found["summary"]["known"] > 0

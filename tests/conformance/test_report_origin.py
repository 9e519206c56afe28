"""Where a report comes from: date, host, commit and command line, in all of its forms."""

import json
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from reports import PASSED, report

from uop.__main__ import main
from uop.conformance.checks import OptionError
from uop.conformance.report.ci import junit_text
from uop.conformance.report.diff import changes, notes
from uop.conformance.report.format import as_json, parse_report, read_report
from uop.conformance.report.html.page import page
from uop.conformance.report.model import Report
from uop.conformance.report.options import Origin

ADD = ["--case", "op/ADD/int32/edges/0", "-n", "1"]
ORIGIN = {"date": "2030-12-31T23:59:59+00:00", "host": "<h>", "commit": "c0ffee", "command": "uop"}


def git(*words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No checkout: git does not look above it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))


def test_a_run_says_where_it_comes_from() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    assert main(["conform", "interpreter", *ADD, "--json", "a report.json"]) == 0
    origin = read_report(Path("a report.json")).origin
    assert origin is not None
    assert before <= datetime.fromisoformat(origin.date) <= datetime.now(UTC)
    assert origin.host == platform.node()
    assert origin.commit == ""
    words = " ".join(ADD)
    assert origin.command == f"uop conform interpreter {words} --json 'a report.json'"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_the_checkout() -> None:
    git("init")
    assert Origin.now(()).commit == ""
    Path("a").write_text("a")
    git("add", "a")
    git("commit", "-m", "a")
    commit = git("rev-parse", "HEAD")
    assert Origin.now(()).commit == commit
    Path("a").write_text("b")
    assert Origin.now(()).commit == f"{commit}-dirty"


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert Origin.now(("uop", "a b")).commit == ""


def made(**origin: str) -> Report:
    return report(PASSED, origin=Origin(**ORIGIN | origin))


def test_reports_that_differ_in_it_alone_say_the_same() -> None:
    a, b = made(), made(date="2031", host="other", commit="", command="uop conform x")
    assert changes(a, b) == []
    assert notes(a, b) == []
    assert changes(report(PASSED), b) == []


def test_every_form_shows_it() -> None:
    found = made()
    (suite,) = ElementTree.fromstring(junit_text(found))
    assert (suite.get("timestamp"), suite.get("hostname")) == (ORIGIN["date"], "<h>")
    shown = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert shown == {"commit": "c0ffee", "command": "uop"}
    text = page(found)
    assert all(f"<code>{value}</code>" in text for value in ("c0ffee", "&lt;h&gt;"))


def test_reports_of_before_have_none() -> None:
    found = as_json(report(PASSED))
    assert "origin" not in found
    assert parse_report(json.dumps(found), "r.json").origin is None
    assert "timestamp" not in junit_text(report(PASSED))
    with pytest.raises(OptionError, match="origin"):
        parse_report(json.dumps(found | {"origin": "here"}), "r.json")

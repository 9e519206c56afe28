"""`uop conform` and `uop replay`: exit codes, what stands on the screen and on disk, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import reports

from uop.__main__ import main
from uop.conformance.report.format import as_json, read_report, report_text
from uop.conformance.run import Exit
from uop.conformance.workers.transport import Allowance

FAULTY = Path(__file__).parents[1] / "conformance"
WORKER = FAULTY / "worker_for_tests.py"
ADD = ("--level", "op", "--op", "ADD", "--dtype", "int32", "-n", 1, "--examples", 1)
SMALL = ("--level", "op", "--op", "PERMUTE", "--dtype", "int8", "-n", 1)
CASE = "op/ADD/int32/edges/0@2"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs leave their failures in the working folder; the faulty backends are importable."""
    monkeypatch.chdir(tmp_path)
    paths = [str(FAULTY), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def test_a_backend_that_conforms_is_exit_0_in_plain_lines(uop: Any) -> None:
    outcome = uop("conform", "interpreter", *SMALL, "--json", "report.json")
    assert outcome.code == 0
    assert "interpreter conforms" in outcome.out
    assert "\x1b" not in outcome.out
    assert len(outcome.out.splitlines()) <= 60
    report = json.loads(Path("report.json").read_text())
    assert report["summary"]["verdict"] == "conforms"
    assert {(c["op"], c["dtype"]) for c in report["cells"]} == {("PERMUTE", "int8")}


@pytest.mark.slow
def test_a_backend_that_does_not_is_exit_1_and_its_repro_replays(uop: Any) -> None:
    select = ("--level", "op", "--op", "ADD", "--dtype", "int32", "-n", 1, "--examples", 2)
    backend = "backends_for_tests:Inaccurate"
    outcome = uop("conform", backend, *select, "--json", "report.json")
    assert outcome.code == 1
    assert "does not conform" in outcome.out
    failures = json.loads(Path("report.json").read_text())["failures"]
    repro = Path(failures[0]["repro"])
    assert repro.is_file()
    assert f"uop replay {repro}" in outcome.out
    assert uop("replay", repro, backend).code == 1
    assert uop("replay", "uop-failures", "interpreter").code == 0


@pytest.mark.slow
def test_a_run_that_checks_nothing_is_exit_4(uop: Any) -> None:
    outcome = uop("conform", "interpreter", "--level", "op", "--op", "SIN", "--dtype", "int8")
    assert outcome.code == 4
    assert "inconclusive" in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("no_such_module:Backend", "No module named 'no_such_module'"),
        ("backends_for_tests:Missing", "pip install driver"),
        ("backends_for_tests:DeadAtStart", "did not start"),
    ],
)
def test_a_backend_that_does_not_start_is_exit_3(uop: Any, backend: str, said: str) -> None:
    outcome = uop("conform", backend, *SMALL)
    assert outcome.code == 3
    assert said in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("backends_for_tests:HangingAtStart", "did not start: no hello within 1 s"),
        (f"command:{sys.executable} {WORKER} mute", "did not start: no reply within 1 s"),
    ],
)
def test_a_start_that_hangs_ends_at_the_timeout(uop: Any, backend: str, said: str) -> None:
    begun = time.monotonic()
    outcome = uop("conform", backend, *SMALL, "--timeout", "1s")
    assert outcome.code == Exit.NO_BACKEND
    assert said in outcome.err
    assert time.monotonic() - begun < Allowance().start_seconds


@pytest.mark.slow
def test_a_year_is_not_too_long_to_wait(uop: Any) -> None:
    assert uop("conform", "interpreter", *ADD, "--timeout", "8760h", "--json", "r.json").code == 0
    assert read_report(Path("r.json")).options.timeout == 8760 * 3600
    worker = f"command:{sys.executable} {WORKER} none"
    float32 = ("--op", "ADD", "--dtype", "float32", "-n", 1, "--examples", 1)
    assert uop("conform", worker, *float32, "--timeout", "8760h").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["abacus"], "no backend 'abacus'; known: "),
        (["interpreter:\ud800"], "expected no NUL and no half a character"),
        (["interpreter", "--op", "PLUS"], "'PLUS'"),
        (["interpreter", "--dtype", "int7"], "'int7'"),
        (["interpreter", "--level", "sea"], "'sea'"),
        (["interpreter", "--effort", "none"], "'none'"),
        (["interpreter", "--time", "soon"], "'soon'"),
        (["interpreter", "--timeout", "8761h"], "--timeout: expected at most a year, 8760h"),
        (["interpreter", "--time", "9" * 400], "--time: expected at most a year"),
        (["interpreter", "--case", "op/ADD"], "'op/ADD'"),
        (["interpreter", "--op", ""], "--op: expected a name, found none"),
        (["interpreter", "--dtype", ","], "--dtype: expected a name, found none"),
        (["interpreter", "--level", ""], "--level: expected a name, found none"),
        (["interpreter", "--case", CASE, "--op", "MUL"], f"--op: MUL; but --case asks for {CASE}"),
        (["interpreter", "--case", CASE, "--dtype", "int8"], "--dtype: int8; but --case asks for"),
        (["interpreter", "--case", CASE, "--level", "twin"], "--level: twin; but --case asks for"),
        (["interpreter", "--profile", "lax=1"], "lax"),
        (["interpreter", "--profile", "NONE.TOML"], "cannot read NONE.TOML"),
        (["interpreter", "--seed", "x"], "'x'"),
        (["interpreter", "-n", "-1"], "-n"),
        (["interpreter", "--examples", "0"], "--examples"),
        (["interpreter", "--json", "file/report.json"], "cannot write file/report.json"),
        (["interpreter", "--json", "."], "cannot write"),
        (["interpreter", "--json", "-"], "expected the name of a file, found -"),
        (["interpreter", "--json", "x" * 300], "cannot write"),
        (["interpreter", "--output", "file"], "cannot write"),
        (["interpreter", "--html", "file/report.html"], "cannot write file/report.html"),
        (["interpreter", "--junit", "."], "cannot write"),
        (["interpreter", "--format", "prose"], "'prose'"),
        (
            ["interpreter", "--json", "a", "--html", "./a"],
            "cannot write two forms of a report to a",
        ),
        (["interpreter", "interpreter"], "expected different backends"),
        (["interpreter", "abacus"], "no backend 'abacus'"),
        ([], "BACKEND"),
    ],
)
def test_bad_usage_is_exit_2_before_anything_runs(uop: Any, options: list[str], said: str) -> None:
    Path("file").write_text("no folder")
    outcome = uop("conform", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_costs_the_files_but_not_the_verdict(uop: Any) -> None:
    Path("report.json").symlink_to("/dev/full")
    outcome = uop("conform", "interpreter", *SMALL, "--json", "report.json")
    assert outcome.code == 2
    assert "interpreter conforms" in outcome.out
    assert "cannot write report.json: No space left on device" in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_each_file_is_written_though_others_cannot_be(uop: Any) -> None:
    Path("uop-failures").mkdir()
    Path("uop-failures/result-ADD-int32.uop").symlink_to("/dev/full")
    Path("report.json").symlink_to("/dev/full")
    files = ("--json", "report.json", "--junit", "report.xml", "--html", "report.html")
    outcome = uop("conform", "backends_for_tests:Inaccurate", *ADD, *files)
    assert outcome.code == 2
    assert "does not conform" in outcome.out
    for name in ("uop-failures/result-ADD-int32.uop", "report.json"):
        assert f"cannot write {name}: No space left on device" in outcome.err
    repro = "%2 = ADD"
    assert all(repro in Path(name).read_text() for name in ("report.xml", "report.html"))


def test_github_gets_annotations_and_a_summary(
    uop: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    outcome = uop("conform", "backends_for_tests:Inaccurate", *ADD, "--format", "github")
    assert outcome.code == 1
    line, *_ = [line for line in outcome.out.splitlines() if line.startswith("::")]
    assert line.startswith(f"::error title={CASE}%3A result ADD int32::")
    assert "does not conform" in Path("summary.md").read_text()


@pytest.mark.slow
def test_several_backends_vote(uop: Any) -> None:
    backends = ("adversary", "backends_for_tests:Missing", "backends_for_tests:Inaccurate")
    outcome = uop("conform", *backends, *ADD, "--json", "report.json")
    assert outcome.code == 1
    assert "odd one out on op/ADD/int32: backends_for_tests:Inaccurate" in outcome.out
    assert "not started: backends_for_tests:Missing: " in outcome.out
    report = read_report(Path("report.json"))
    assert report.vote is not None
    assert report.vote.backends == (backends[0], backends[2])
    failure, *_ = report.every[1].failures
    assert Path(failure.repro).is_file()


@pytest.mark.slow
def test_most_against_the_interpreter_make_it_suspect(uop: Any) -> None:
    pair = ("backends_for_tests:Inaccurate", "backends_for_tests:InaccurateToo")
    outcome = uop("conform", *pair, *ADD)
    assert outcome.code == 1
    assert "interpreter suspect on op/ADD/int32" in outcome.out


def test_where_no_backend_starts_there_is_no_vote(uop: Any) -> None:
    outcome = uop("conform", "backends_for_tests:Missing", "no_such_module:Backend", *SMALL)
    assert outcome.code == 3
    assert "pip install driver" in outcome.err


@pytest.mark.slow
def test_a_report_is_judged_again(uop: Any) -> None:
    uop("conform", "backends_for_tests:Inaccurate", *ADD, "--json", "report.json")
    refused = uop("replay", "report.json", "--sample", 2)
    assert (refused.code, "found 'backends_for_tests:Inaccurate'" in refused.err) == (2, True)
    outcome = uop("replay", "report.json", "--sample", 2, "--native")
    assert (outcome.code, outcome.out) == (0, "2 of 2 verdicts hold\n")
    outcome = uop("replay", "report.json", "interpreter")
    assert outcome.code == 1
    assert "op/ADD/int32/edges/0@2 was failed, is now passed" in outcome.out
    outcome = uop("replay", "report.json", "--sample", 5, "--emit-requests")
    assert (outcome.code, "not for a report" in outcome.err) == (2, True)


@pytest.mark.slow
def test_a_report_of_which_something_cannot_be_judged_again_is_inconclusive(uop: Any) -> None:
    uop("conform", "interpreter", *ADD, "--json", "report.json")
    report = json.loads(Path("report.json").read_text())
    report["cases"]["op/ADD/int32/none"] = "."
    Path("report.json").write_text(json.dumps(report))
    outcome = uop("replay", "report.json")
    assert outcome.code == Exit.INCONCLUSIVE
    assert "op/ADD/int32/none/0@2 was passed, is not judged: " in outcome.out
    assert outcome.out.endswith("verdicts hold; 1 not judged\n")


def test_reports_are_compared(uop: Any) -> None:
    for name, made in (("a.json", reports.report(reports.PASSED)), ("b.json", reports.failing())):
        Path(name).write_text(report_text(made))
    outcome = uop("diff", "a.json", "b.json")
    assert outcome.code == 1
    assert "worse: op/EXP2/float32: passed, then failed (1 of 2 programs)" in outcome.out
    outcome = uop("diff", "b.json", "b.json")
    assert (outcome.code, outcome.out) == (0, "0 worse, 0 better, 0 neither\n")


def test_half_a_character_in_a_report_is_spelled(uop: Any) -> None:
    made = as_json(reports.failing())
    made["failures"][0]["signature"] = "half \ud800"
    Path("a.json").write_text(report_text(reports.report(reports.PASSED)))
    Path("b.json").write_text(json.dumps(made))
    outcome = uop("diff", "a.json", "b.json")
    assert "new cause: half \\ud800" in outcome.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read bad.json: No such file"),
        ('{"schema": "uop-report/1", "suite": "0.', "bad.json:1:37: the file is cut off"),
        ('{"schema": "uop-report/9"}', "expected a report of version 'uop-report/1'"),
        ("{}", "expected a report"),
    ],
)
@pytest.mark.parametrize("command", [("diff", "bad.json"), ("replay",)])
def test_what_is_no_report_is_exit_2(
    uop: Any, command: tuple[str, ...], text: str | None, said: str
) -> None:
    if text is not None:
        Path("bad.json").write_text(text)
    outcome = uop(*command, "bad.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_replay_lists_what_it_skipped_before_what_passed(uop: Any) -> None:
    Path("a.uop").write_text("%0 = ADD 0, 1 : index[]\n")
    Path("b.uop").write_text("undefined\n%0 = ADD 0, 1 : index[]\n")
    lines = uop("replay", "a.uop", "b.uop", "interpreter").out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["SKIPPED", "PASSED"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no file or folder bad.uop"),
        ("%0 = CONST {value=1, dt", "bad.uop:1:"),
        ("%0 = PLUS 1, 2", "bad.uop:1:6: unknown op 'PLUS'"),
        ("case a\nexpect 0 = 1\n", "bad.uop:"),
    ],
)
def test_replay_says_what_is_wrong_with_a_file(uop: Any, text: str | None, said: str) -> None:
    if text is not None:
        Path("bad.uop").write_text(text)
    outcome = uop("replay", "bad.uop", "interpreter")
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.slow
def test_ctrl_c_while_a_second_backend_starts_ends_the_run(tmp_path: Path) -> None:
    """Nothing is judged before all have said what they list."""
    command = [sys.executable, "-P", "-u", "-m", "uop", "conform", "interpreter"]
    options = [*map(str, ADD), "--json", "report.json"]
    run = subprocess.Popen(
        [*command, "backends_for_tests:HangingAtStart", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    # Where it has started processes, its own imports have ended.
    while not psutil.Process(run.pid).children():
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out, err.strip()) == (130, "", "interrupted")
    assert not (tmp_path / "report.json").exists()


@pytest.mark.slow
def test_ctrl_c_gives_the_verdict_so_far_and_leaves_the_report(tmp_path: Path) -> None:
    command = "import sys\nfrom uop.__main__ import main\nsys.exit(main())"
    options = ["conform", "interpreter", "--json", "report.json", "-n", "1"]
    run = subprocess.Popen(
        [sys.executable, "-P", "-u", "-c", command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert run.stdout is not None
    # The second line is the first result.
    head = [run.stdout.readline() for _ in range(2)]
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "programs" in head[1]
    assert "(interrupted)" in out
    assert "Traceback" not in err
    report = read_report(tmp_path / "report.json")
    assert report.summary.interrupted
    assert sum(len(marks.replace(" ", "")) for marks in report.cases.values()) > 0


@pytest.mark.slow
def test_a_case_of_a_small_backend_is_made_again_from_the_list_in_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, known = tmp_path / "r.json", "uop.conformance.mutants.small:SmallBackend"
    asked = ("--level", "graph", "--examples", "1", "--effort", "smoke", "-n", "1")
    assert main(["conform", known, *asked, "--json", str(path)]) == Exit.OK
    report = json.loads(path.read_text())
    key = report["generator"]["vocabulary"]["key"]
    name = next(name for name in report["cases"] if name.endswith(f"+{key}"))
    capsys.readouterr()
    case = ("--case", f"{name}/0@{report['generator']['version']}", "-n", "1")
    assert main(["conform", "interpreter", *case]) == Exit.USAGE
    assert "--list REPORT.json" in capsys.readouterr().err
    assert main(["conform", "interpreter", *case, "--list", str(path)]) == Exit.OK
    assert "1 programs" in capsys.readouterr().out

"""The file of known failures: what it may hold and covers, when it is stale."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from reports import REPRO

from uop.__main__ import main
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.model import BackendInfo, Conclusion, Report
from uop.conformance.report.tally import Tally
from uop.conformance.report.text import known_lines
from uop.conformance.run import Exit
from uop.conformance.run.conform import conform
from uop.conformance.run.known import KnownError, KnownFailures, KnownFile, KnownLine, read_known
from uop.conformance.run.options import Options
from uop.conformance.run.replay import conclusions

CASE = "op/ADD/int8/edges/0@2"
SIGNATURE = "result ADD int8"
TODAY = date(2030, 6, 15)
REST = 'reason = "r", repro = "r.uop"'


Write = Callable[[str], Path]


def test_entries_are_read_with_their_lines(file: Write) -> None:
    path = file(
        "# a comment\nknown = [\n"
        f'  {{ case = "{CASE}", {REST} }},\n\n'
        f'  {{ signature = "s", {REST}, expires = 2030-01-02, link = "l", backend = "b" }},\n]\n'
    )
    first, second = read_known(path).entries
    assert first == KnownLine(CASE, "", "r", "r.uop", line=3)
    assert second == KnownLine("", "s", "r", "r.uop", "l", "b", date(2030, 1, 2), 5)
    assert (first.key, second.key) == (CASE, "s")
    assert read_known(path).of(BackendInfo("c", "1", ""), "module:Class").entries == (first,)


@pytest.mark.parametrize(
    ("backend", "matches"),
    [
        ("", True),
        ("tinygrad", True),
        ("tinygrad:X86", True),
        ("tinygrad:CPU", False),
        ("X86", False),
        ("opencl", False),
        # As files of before say it.
        ("mine:Adapter:X86", True),
    ],
)
def test_a_line_is_about_a_backend_by_its_name_and_variant(
    backend: str, matches: bool, file: Write
) -> None:
    about = f', backend = "{backend}"' if backend else ""
    path = file(f'known = [\n  {{ signature = "s", {REST}{about} }},\n]\n')
    info = BackendInfo("tinygrad", "0.14.2", "X86 (some processor)", "X86")
    assert bool(read_known(path).of(info, "mine:Adapter:X86").entries) == matches


def test_a_line_that_matches_no_case_is_told(file: Write, tmp_path: Path) -> None:
    lines = (f'  {{ signature = "{s}", {REST} }},' for s in (SIGNATURE, "result NEG int8"))
    known = file("known = [\n" + "\n".join(lines) + "\n]\n")
    options = Options(
        "backends_for_tests:Inaccurate",
        cases=(CASE,),
        workers=1,
        profile="strict",
        known=known,
        output=tmp_path / "failures",
    )
    met = conform(options)
    assert [line.note for line in met.known] == [""]
    whole = known_failures(entry())
    (told,) = whole.results(whole.selected(None), {})
    assert told.note == f"f.toml:4: {SIGNATURE} matches no case of this run"
    shown = known_lines(replace(met, known=(told,)))
    assert shown[-1] == f"note: {told.note}"


def test_tables_of_many_lines_are_read_too(file: Write) -> None:
    rest = REST.replace(", ", "\n")
    path = file(f'[[known]]\ncase = "{CASE}"\n{rest}\n\n[[known]]\nsignature = "s"\n{rest}\n')
    assert [e.line for e in read_known(path).entries] == [1, 6]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'known'; it is missing: is the file cut off"),
        ("known = 3", "expected a list of tables, found 3"),
        ("known = [3]", "expected a list of tables"),
        ("known = []\nother = 1", "found other"),
        ("known = [\n  { case =", "expected TOML: .*(line 2|end of document)"),
        (f'known = [\n  {{ case = "{CASE}", {REST} }},', "expected TOML"),
        (f"known = [\n  {{ {REST} }},\n]", ":2: expected a case or a signature"),
        ('known = [\n  { case = "a/b/c/d/0", reason = "r" },\n]', ":2: expected a repro"),
        ('known = [\n  { case = "a/b/c/d/0", repro = "r.uop" },\n]', ":2: expected a reason"),
        (f'known = [\n  {{ case = "ADD", {REST} }},\n]', ":2: case: .*found 'ADD'"),
        (f"known = [\n  {{ case = 3, {REST} }},\n]", ":2: case: expected a text.*found 3"),
        (f'known = [\n  {{ signature = " ", {REST} }},\n]', ":2: signature: expected a text"),
        (f'known = [\n  {{ signature = "s", why = "w", {REST} }},\n]', ":2: .*found 'why'"),
        (f'known = [\n  {{ signature = "s", expires = "soon", {REST} }},\n]', ":2: .*a date"),
        (
            f'known = [\n  {{ signature = "s", expires = 2030-01-01T00:00:00, {REST} }},\n]',
            ":2: .*a date",
        ),
        (f'known = [\n  {{ signature = "s", dtypes = "int8", {REST} }},\n]', "expected 'any'"),
        (f'known = [\n  {{ case = "{CASE}", dtypes = "any", {REST} }},\n]', "a signature"),
        (
            'known = [\n  { signature = "s", reason = "r", repro = "gone.uop" },\n]',
            ":2: repro: no file .*gone.uop",
        ),
        (
            f'known = [\n  {{ signature = "s", {REST} }},\n  {{ signature = "s", {REST} }},\n]',
            ":3: 's' stands in line 2 too",
        ),
    ],
)
def test_what_is_no_such_file_is_told_with_its_line(text: str, said: str, file: Write) -> None:
    with pytest.raises(KnownError, match=said) as raised:
        read_known(file(text))
    assert "uop-known.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("repro", "said"),
    [
        (b"nonsense", "expected %N"),
        (b"", "no program"),
        (b"\xff", "expected text in UTF-8"),
        (REPRO.encode()[:20], "r.uop:2:"),
    ],
)
def test_a_program_that_cannot_decide_is_told_before_the_run(
    repro: bytes, said: str, file: Write
) -> None:
    path = file(f'known = [\n  {{ signature = "s", {REST} }},\n]\n')
    (path.parent / "r.uop").write_bytes(repro)
    with pytest.raises(KnownError, match=said) as raised:
        Options("interpreter", known=path).checked()
    assert str(raised.value).startswith(f"{path}:2: repro: ")


def test_a_program_that_goes_during_the_run_costs_no_verdict(
    file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = file(f'known = [\n  {{ case = "{CASE}", {REST} }},\n]\n')
    options = Options("interpreter", cases=(CASE,), known=known, output=tmp_path / "f", workers=1)
    checked = options.checked()
    monkeypatch.setattr(Options, "checked", lambda self: checked)
    monkeypatch.setattr(
        "uop.conformance.run.known.read_known", lambda path: read_known_and_lose(path)
    )
    report = conform(options)
    assert report.summary.passed == 1
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert "r.uop" in report.summary.lost


def test_a_program_without_inputs_is_told_with_the_file(file: Write, tmp_path: Path) -> None:
    path = file(f'known = [\n  {{ case = "{CASE}", {REST} }},\n]\n')
    (tmp_path / "r.uop").write_text(REPRO.replace("input 0 = [1]\nexpect 0 = [2]\n", ""))
    options = Options("interpreter", cases=(CASE,), workers=1, known=path, output=tmp_path / "o")
    report = conform(options)
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert report.summary.lost.startswith(f"the programs of {path} cannot be judged: INPUT.c3")


def read_known_and_lose(path: Path) -> KnownFile:
    found = read_known(path)
    (path.parent / "r.uop").unlink()
    return found


def test_a_mark_of_the_byte_order_is_passed_over(file: Write) -> None:
    path = file("")
    path.write_bytes(b"\xef\xbb\xbfknown = []\n")
    assert read_known(path).entries == ()


def test_a_file_that_cannot_be_read(tmp_path: Path, file: Write) -> None:
    with pytest.raises(KnownError, match=r"cannot read .*No such file"):
        read_known(tmp_path / "none.toml")
    path = file("")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(KnownError, match="UTF-8"):
        read_known(path)


def entry(expires: date | None = None) -> KnownLine:
    return KnownLine(CASE, SIGNATURE, "r", "r.uop", expires=expires, line=4)


def known_failures(*entries: KnownLine) -> KnownFailures:
    return KnownFailures(KnownFile(Path("f.toml"), entries), TODAY)


def test_an_entry_covers_its_key_until_its_last_day() -> None:
    assert known_failures(entry()).covers(SIGNATURE, [CASE])
    assert not known_failures(entry()).covers(CASE, [CASE])
    assert known_failures(entry(TODAY)).covers(SIGNATURE, [CASE])
    assert not known_failures(entry(date(2030, 6, 14))).covers(SIGNATURE, [CASE])
    # Another cause of the same ops and dtype.
    assert not known_failures(entry()).covers(f"{SIGNATURE}#2", [CASE])


@pytest.mark.parametrize(
    ("expires", "now", "state", "stale"),
    [
        (None, Conclusion.DOES_NOT, "known", ""),
        (None, Conclusion.INCONCLUSIVE, "known", ""),
        (None, None, "known", ""),
        (None, Conclusion.CONFORMS, "fixed", f"f.toml:4: {SIGNATURE} passes now: remove this line"),
        (
            date(2030, 6, 14),
            Conclusion.DOES_NOT,
            "expired",
            f"f.toml:4: {SIGNATURE} was accepted until 2030-06-14",
        ),
    ],
)
def test_the_program_that_stands_with_an_entry_decides(
    expires: date | None, now: Conclusion | None, state: str, stale: str
) -> None:
    found = known_failures(entry(expires))
    shown = {} if now is None else {Path("r.uop"): now}
    (told,) = found.results(found.selected(None), shown)
    assert (told.state, told.stale) == (state, stale)


def test_a_program_of_which_nothing_follows_decides_nothing() -> None:
    """Not where the line is about this backend, or covers what failed here."""
    stale = "f.toml:4: nothing follows from its program r.uop"
    shown = {Path("r.uop"): Conclusion.INCONCLUSIVE}
    found = known_failures(replace(entry(), backend="b"))
    (told,) = found.results(found.selected(None), shown)
    assert (told.state, told.stale) == ("undecided", stale)
    found = known_failures(entry())
    found.covers(SIGNATURE, [CASE])
    (told,) = found.results(found.selected(None), shown)
    assert (told.state, told.stale) == ("undecided", stale)


def test_a_line_whose_program_was_not_run_in_time_fails_nothing(tmp_path: Path) -> None:
    found = KnownFailures(KnownFile(entries=(KnownLine("", "result ADD int8", "why", "a.uop"),)))
    (line,) = found.results(found.selected(None), {}, in_time=False)
    assert (line.state, line.stale) == ("known", "")
    assert "the time was over before its program a.uop was run" in line.note
    assert conclusions([tmp_path / "absent.uop"], "interpreter", deadline=0.0) == {}


def test_a_narrowed_run_tells_an_expired_line_that_it_met() -> None:
    found = known_failures(entry(expires=date(2020, 1, 1)))
    assert not found.covers(SIGNATURE, ["op/ADD/int8/edges/9@2"])
    (line,) = found.results(found.selected(set()), {})
    assert (line.state, line.cases) == ("expired", ())
    assert line.stale == f"f.toml:4: {SIGNATURE} was accepted until 2020-01-01"


def test_a_narrowed_run_asks_what_it_met() -> None:
    found = known_failures(entry(), KnownLine("op/SIN/int8/edges/0@2", "other", "r", "r.uop"))
    assert found.selected({CASE}) == [entry()]
    assert found.selected(set()) == []
    found.covers("other", ["op/SIN/int8/edges/3@2"])
    assert len(found.selected({CASE})) == 2


CHOSEN = ("--op", "ADD", "--dtype", "int8", "--level", "op", "--effort", "smoke", "-n", "1")


@pytest.mark.slow
def test_known_failures_end_a_run_well_until_they_are_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = ("conform", "backends_for_tests:Inaccurate", *CHOSEN, "--profile", "strict")
    path = Path("uop-known.toml")
    assert main([*wrong, "--update-known"]) == Exit.OK
    assert "joined: result ADD int8\nwritten: uop-known.toml" in capsys.readouterr().out
    assert main([*wrong, "--json", "r.json"]) == Exit.OK
    assert "but for" in capsys.readouterr().out
    found: dict[str, Any] = json.loads(Path("r.json").read_text())
    assert found["failures"] == []
    assert found["summary"]["failed"] == 0 < found["summary"]["known"]
    (known,) = found["known"]
    assert (known["state"], known["stale"]) == ("known", "")
    assert CASE in known["cases"]
    # On a backend that is right its program passes.
    path.write_text(path.read_text().replace(', backend = "Inaccurate"', ""))
    right = ("conform", "interpreter", *CHOSEN, "--profile", "strict")
    assert main([*right]) == Exit.FAILED
    assert (
        "uop-known.toml:6: result ADD int8 passes now: remove this line" in capsys.readouterr().out
    )
    assert main([*right, "--update-known"]) == Exit.OK
    assert "removed, passes now: result ADD int8" in capsys.readouterr().out
    assert read_known(path).entries == ()
    assert list(Path("uop-known").iterdir()) == []


def test_a_case_is_known_by_its_id_and_expiry_ends_it(file: Write, tmp_path: Path) -> None:
    def run(extra: str) -> Report:
        known = file(f'known = [\n  {{ case = "{CASE}", {REST}{extra} }},\n]\n')
        return conform(
            Options(
                "backends_for_tests:Inaccurate",
                cases=(CASE,),
                workers=1,
                profile="strict",
                known=known,
                output=tmp_path / "failures",
            )
        )

    found = run("")
    assert found.conclusion is Conclusion.CONFORMS
    assert found.summary.known == 1
    expired = run(", expires = 2020-01-01")
    assert expired.conclusion is Conclusion.DOES_NOT
    assert [f.id for f in expired.failures] == [CASE]
    assert "was accepted until 2020-01-01" in expired.stale[0]


def test_a_file_that_is_named_must_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "interpreter", "--known", "none.toml"]) == Exit.USAGE
    assert "cannot read none.toml" in capsys.readouterr().err
    several = ["conform", "interpreter", "adversary", "--update-known"]
    assert main(several) == Exit.USAGE
    assert "expected one backend" in capsys.readouterr().err


def test_a_file_that_cannot_be_edited_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.uop").write_text(REPRO)
    Path("uop-known.toml").write_text(f'known = [{{ signature = "a", {REST} }}]\n')
    assert main(["conform", "interpreter", *CHOSEN, "--update-known"]) == Exit.USAGE
    said = capsys.readouterr()
    assert (said.out, "each entry on a line below it" in said.err) == ("", True)


def test_an_interrupted_run_leaves_the_file_and_ends_as_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uop.conformance.run.run.Run.judge_cases", interrupted)
    assert main(["conform", "interpreter", *CHOSEN, "--update-known"]) == Exit.INTERRUPTED
    assert "uop-known.toml stays as it is" in capsys.readouterr().err
    assert not Path("uop-known.toml").exists()


def test_a_tally_moves_a_case_among_the_known() -> None:
    tally = Tally()
    tally.add(Verdict(CASE, Status.CRASHED, 1))
    tally.accept(CASE)
    assert (tally.counts[Status.CRASHED], tally.counts[Status.KNOWN]) == (0, 1)
    (cell,) = tally.cells.values()
    assert (cell.programs, cell.failed, cell.known) == (1, 0, 1)
    assert list(tally.cases.values()) == [{0: Status.KNOWN}]

"""How the file of known failures is edited: what joins, what leaves, what may not change."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from reports import REPRO

from uop.conformance.report.model import BackendInfo, Conclusion, Failure, KnownFailure, Report
from uop.conformance.report.options import ReportedOptions
from uop.conformance.report.tally import Tally
from uop.conformance.run.known import KnownError, read_known
from uop.conformance.run.known_update import EMPTY, by_updated, require_editable, write_known

CASE = "op/ADD/int8/edges/0@2"
REST = 'reason = "r", repro = "r.uop"'
OWN = 'reason = "r", repro = "uop-known/a.uop"'
LINE = """  {{ case = "op/ADD/int8/edges/0@2", signature = "{}", reason = "not explained yet: m", \
repro = "uop-known/{}.uop", backend = "b" }},
"""


Write = Callable[[str], Path]


def report(*failures: Failure, known: tuple[KnownFailure, ...] = ()) -> Report:
    info = BackendInfo("b", "1", "")
    made = Tally().report(info, "strict", ReportedOptions("b", 0), 1.0, failures, known)
    return replace(made, summary=replace(made.summary, programs=8))


def failure(signature: str, message: str = "m", level: str = "op") -> Failure:
    name = f"out/{signature.replace(' ', '-')}.uop"
    return Failure(CASE, signature, "", level, ("ADD",), ("int8",), message, name, REPRO)


def line(key: str, state: str, cases: tuple[str, ...] = ()) -> KnownFailure:
    stale = "" if state == "known" else "a word on it"
    return KnownFailure(key, "r", "", "", "r.uop", cases, state, stale)


def fixed(*keys: str) -> Report:
    return report(known=tuple(line(key, "fixed") for key in keys))


# What is written.


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "uop-known.toml"
    strange = 'a "quote" \\ \n\ttwo lines, a bell \x07, delete \x7f, \U0001f600 and \udc80'
    done = write_known(path, report(failure("one", strange), failure("two")), "b")
    assert (done.joined, done.removed, done.problems) == (("one", "two"), (), ())
    one, two = read_known(path).entries
    assert (one.case, one.signature, one.backend, one.line) == (CASE, "one", "b", 6)
    assert one.reason.startswith('not explained yet: a "quote" \\; two lines')
    assert (tmp_path / two.repro).read_text() == REPRO


def test_what_was_said_stays_and_what_is_fixed_goes(file: Write) -> None:
    path = file(
        "known = [\n"
        f'  {{ signature = "stays", {REST}, expires = 2020-01-01, link = "l" }},\n'
        f'  {{ signature = "goes", {REST} }},\n'
        f'  {{ signature = "goes", {REST}, backend = "another" }},\n]\n'
    )
    found = report(failure("stays"), failure("new"), known=(line("goes", "fixed"),))
    done = write_known(path, found, "b")
    assert (done.joined, done.removed) == (("new",), ("goes",))
    entries = read_known(path).entries
    assert [(e.signature, e.backend) for e in entries] == [
        ("new", "b"),
        ("stays", ""),
        ("goes", "another"),
    ]
    assert (entries[1].expires, entries[1].link) == (date(2020, 1, 1), "l")


LISTED = f"""\
# Ours.
known = [ # each with its bug
  # Of kernels:
  {{ signature = "a", {OWN} }}, # about a

  # about b
  {{ signature = "b", {REST} }},   # about b too
  # Of casts:
  {{ signature = "c", {REST} }} # no comma
  # the end
]
# Bye.
"""
TABLES = f"""\
# Ours.

# about a
[[known]]
signature = "a"
# inside
{OWN.replace(", ", chr(10))}

# about b
[[known]] # b
signature = "b"
{REST.replace(", ", chr(10))}
# the end
"""


@pytest.mark.parametrize("key", ["a", "b", "c"])
def test_all_other_lines_stay_as_they_are(key: str, file: Write) -> None:
    path = file(LISTED)
    done = write_known(path, fixed(key), "b")
    assert (done.removed, done.problems) == ((key,), ())
    kept = [text for text in LISTED.splitlines() if f'signature = "{key}"' not in text]
    assert path.read_text().splitlines() == kept
    assert [e.signature for e in read_known(path).entries] == [k for k in "abc" if k != key]


def test_what_is_new_comes_first_whatever_follows(file: Write) -> None:
    path = file(LISTED)
    assert write_known(path, report(failure("new")), "b").problems == ()
    head, opening, *rest = LISTED.splitlines(keepends=True)
    assert path.read_text() == "".join([head, opening, LINE.format("new", "new"), *rest])


def test_all_can_go_and_come_again(file: Write) -> None:
    path = file(LISTED)
    assert write_known(path, fixed("a", "b", "c"), "b").removed == ("a", "b", "c")
    assert read_known(path).entries == ()
    assert write_known(path, report(failure("new")), "b").joined == ("new",)
    assert [e.signature for e in read_known(path).entries] == ["new"]


def test_tables_of_many_lines_keep_their_comments(file: Write) -> None:
    path = file(TABLES)
    assert write_known(path, fixed("a"), "b").removed == ("a",)
    start, end = TABLES.index("[[known]]"), TABLES.index("\n# about b")
    assert path.read_text() == TABLES[:start] + TABLES[end:]
    assert write_known(path, report(failure("new"), known=fixed("b").known), "b").problems == ()
    (new,) = read_known(path).entries
    assert (new.signature, new.backend) == ("new", "b")
    assert write_known(path, fixed("new"), "b").problems == ()
    assert read_known(path).entries == ()
    assert all(f"# {said}\n" in path.read_text() for said in ("Ours.", "about b", "the end"))


def test_ends_of_lines_stay_as_they_are(file: Write) -> None:
    path = file("")
    path.write_bytes(b"\xef\xbb\xbf" + LISTED.replace("\n", "\r\n").encode())
    assert write_known(path, fixed("b"), "b").removed == ("b",)
    assert path.read_bytes().count(b"\r\n") == LISTED.count("\n") - 1
    assert b"\r\r" not in path.read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        f'known = [{{ signature = "a", {OWN} }}]\n',
        f'known = [{{ signature = "a", {OWN} }},\n  {{ signature = "b", {REST} }}]\n',
        f'known = [\n  {{ signature = "a", {OWN} }}, {{ signature = "b", {REST} }},\n]\n',
        f'known = [\n  {{ signature = "b", {REST} }},\n  {{ signature = "a", {OWN} }}]\n',
    ],
)
def test_a_file_of_another_form_stays_as_it_is(text: str, file: Write) -> None:
    path = file(text)
    with pytest.raises(KnownError, match="each entry on a line below it"):
        require_editable(path)
    (said,) = write_known(path, fixed("a"), "b").problems
    assert "each entry on a line below it" in said
    assert path.read_text() == text
    assert (path.parent / "uop-known" / "a.uop").exists()


@pytest.mark.parametrize("text", [EMPTY, LISTED, TABLES, "known = []", "known=[ ] # none\r\n"])
def test_what_can_be_edited_is_seen_before_a_run(text: str, file: Write) -> None:
    path = file(text)
    require_editable(path)
    before = [e.key for e in read_known(path).entries]
    assert path.read_text() == text.replace("\r", "")
    assert write_known(path, report(failure("new")), "b").problems == ()
    assert {e.key for e in read_known(path).entries} == {*before, "new"}
    assert ("# none" in path.read_text()) is ("# none" in text)
    require_editable(path.with_name("none.toml"))


# Programs.


def test_the_program_of_a_line_goes_with_it(file: Write) -> None:
    path = file(LISTED)
    write_known(path, fixed("a", "b"), "b")
    assert not (path.parent / "uop-known" / "a.uop").exists()
    # Of the adopter's own, and needed by another line.
    assert (path.parent / "r.uop").exists()
    write_known(path, fixed("c"), "b")
    assert (path.parent / "r.uop").exists()


def test_a_program_that_another_line_needs_stays(file: Write) -> None:
    path = file(LISTED.replace(REST, OWN))
    write_known(path, fixed("a"), "b")
    assert (path.parent / "uop-known" / "a.uop").exists()


def test_no_two_lines_have_one_program(file: Write) -> None:
    """Another backend may fail alike, and the names of long signatures are cut."""
    path = file(f'known = [\n  {{ signature = "a", {OWN}, backend = "another" }},\n]\n')
    other = (path.parent / "uop-known" / "a.uop").read_text()
    found = [failure("a"), Failure(CASE, "long", "", "op", (), (), "m", "out/a.uop", REPRO + "\n")]
    assert write_known(path, report(*found), "b").joined == ("a", "long")
    repros = [e.repro for e in read_known(path).entries]
    assert repros == ["uop-known/a-2.uop", "uop-known/a-3.uop", "uop-known/a.uop"]
    assert (path.parent / repros[2]).read_text() == other
    assert (path.parent / repros[1]).read_text() == REPRO + "\n"


# Nothing is lost.


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


CHANGED = report(failure("one"), failure("two"), known=(line("a", "fixed"),))


@pytest.mark.parametrize("written", [0, 1, 2])
def test_on_a_full_disk_nothing_is_lost(
    written: int, file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file(LISTED)
    before, write, left = contents(path.parent), Path.write_text, [None] * written

    def short(self: Path, text: str, *args: str, **options: str) -> int:
        if left:
            left.pop()
            return write(self, text, *args, **options)
        write(self, text[: len(text) // 2], *args, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", short)
    done = write_known(path, CHANGED, "b")
    assert done.problems
    assert all("No space left on device" in said for said in done.problems)
    after = contents(path.parent)
    assert {name: text for name, text in after.items() if name in before} == before
    # Programs without a line are written anew next time.
    monkeypatch.undo()
    assert write_known(path, CHANGED, "b").joined == ("one", "two")
    assert len(read_known(path).entries) == 4


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {here!r}
from test_known_update import CHANGED, write_known
replace = Path.replace
def killed(self, target):
    if Path(target).name == {at!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = killed
write_known(Path({path!r}), CHANGED, "b")
"""


@pytest.mark.parametrize("at", ["one.uop", "two.uop", "uop-known.toml"])
def test_a_killed_process_loses_nothing(at: str, file: Write) -> None:
    path = file(LISTED)
    before = contents(path.parent)
    here = [str(folder) for folder in Path(__file__).parents[:2]]
    code = textwrap.dedent(KILLED.format(here=here, at=at, path=str(path)))
    ended = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert ended.returncode == -signal.SIGKILL
    after = contents(path.parent)
    assert {name: text for name, text in after.items() if name in before} == before
    assert write_known(path, CHANGED, "b").joined == ("one", "two")


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("no folder")
    done = write_known(tmp_path / "a" / "known.toml", report(), "b")
    assert len(done.problems) == 1
    assert "cannot write" in done.problems[0]


# What a run by the file as it is then would give.


@pytest.mark.parametrize(
    ("found", "conclusion"),
    [
        (report(), Conclusion.CONFORMS),
        (report(failure("new")), Conclusion.CONFORMS),
        (report(known=(line("a", "fixed"), line("b", "known"))), Conclusion.CONFORMS),
        (report(known=(line("a", "expired"),)), Conclusion.DOES_NOT),
        (report(known=(line("a", "undecided"),)), Conclusion.DOES_NOT),
        # No line can hold it.
        (report(failure("card max_nan", level="card")), Conclusion.DOES_NOT),
        # Its program passes, and another case that it covered does not.
        (report(known=(line("a", "fixed", (CASE,)),)), Conclusion.DOES_NOT),
    ],
)
def test_the_end_is_that_of_a_run_by_the_new_file(found: Report, conclusion: Conclusion) -> None:
    assert by_updated(found) is conclusion


def test_a_file_begins_with_what_it_is_for(tmp_path: Path) -> None:
    path = tmp_path / "uop-known.toml"
    write_known(path, report(), "b")
    assert path.read_text() == EMPTY
    assert read_known(path).entries == ()

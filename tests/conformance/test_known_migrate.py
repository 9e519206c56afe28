"""`uop known migrate`: which signatures it rewrites, what stays, and what versions say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.run.known import read_known

WRONG = "backends_for_tests:Inaccurate"
Write = Callable[[str], Path]
REST = 'reason = "r", repro = "r.uop"'
"""Of a program whose failure is `result ADD int8` today."""
OWN = 'reason = "r", repro = "uop-known/a.uop"'
LISTED = f"""\
# Ours.
known = [ # each with its bug
  # A signature = "old one" of before:
  {{ signature = "old one", {REST}, expires = 2030-01-01, link = "l" }}, # first
  {{ case = "op/ADD/int8/edges/0@2", {REST} }},

  {{ {OWN}, signature='old \\d #3', backend = "Inaccurate" }} # last
]
# Bye.
"""
TABLES = f"""\
# Ours.
[[known]]
# signature = "old one"
{REST.replace(", ", chr(10))}
signature = "old one" # first
[[known]]
{OWN.replace(", ", chr(10))}
signature  =  'old \\d #3'
backend = "Inaccurate"
"""


def migrated(uop: Any, path: Path, backend: str = WRONG) -> Any:
    outcome = uop("known", "migrate", backend, "--known", path)
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines()


@pytest.mark.parametrize("text", [LISTED, TABLES])
def test_what_has_another_signature_today_gets_it_in_its_line(
    text: str, file: Write, uop: Any
) -> None:
    path = file(text)
    *changes, last = migrated(uop, path)
    assert changes == ["old one -> result ADD int8", "old \\d #3 -> result ADD int8 #3"]
    assert last == (
        f"{path}, signatures of version 1: 2 changed, 0 as before, 0 left alone, "
        "0 about other backends"
    )
    quoted = (('"old one" ', '"result ADD int8" '), ('"old one",', '"result ADD int8",'))
    expected = text.replace("'old \\d #3'", '"result ADD int8 #3"')
    for old, new in quoted:
        expected = expected.replace(old, new)
    expected = expected.replace('A signature = "result ADD int8"', 'A signature = "old one"')
    assert path.read_text() == expected
    before = path.stat().st_ino
    assert migrated(uop, path)[0].endswith(": 0 changed, 2 as before, 0 left alone, "
                                           "0 about other backends")  # fmt: skip
    assert path.stat().st_ino == before


def test_what_cannot_change_is_named_and_left_alone(file: Write, uop: Any, tmp_path: Path) -> None:
    programs = {
        "passes": "%1 = NEG %0\ninput 0 = [1]\n",
        "unsure": "%1 = NEG %0\ninput 0 = [1]\nundefined\n",
    }
    for name, text in programs.items():
        head = "%0 = PARAM [1] {slot=0, dtype=int32}\n"
        (tmp_path / f"{name}.uop").write_text(head + text)
    lines = [
        f'{{ signature = "{key}", reason = "r", repro = "{repro}.uop"{rest} }},'
        for key, repro, rest in (
            ("a", "passes", ""),
            ("b", "unsure", ""),
            ("c", "r", ""),
            ("d", "r", ""),
            ("e", "r", ', backend = "opencl"'),
        )
    ]
    path = file("known = [\n" + "\n".join(lines) + "\n]\n")
    before = path.read_text()
    first, second, third, fourth, last = migrated(uop, path)
    assert first == f"left alone: {path}:2: a: its program passes"
    assert second.startswith(f"left alone: {path}:3: b: its program is not judged: ")
    assert {third, fourth} == {
        f"left alone: {path}:{n}: {key}: result ADD int8 stands in two lines then"
        for n, key in ((4, "c"), (5, "d"))
    }
    assert last.endswith("0 changed, 0 as before, 4 left alone, 1 about other backends")
    assert path.read_text() == before


def test_a_signature_may_go_where_that_of_another_line_was(file: Write, uop: Any) -> None:
    other = "%0 = PARAM [1] {slot=0, dtype=int32}\n%1 = ADD %0, %0\ninput 0 = [1]\n"
    path = file(
        f'known = [\n{{ signature = "old", {REST} }},\n'
        f'{{ signature = "result ADD int8", {OWN} }},\n]\n'
    )
    (path.parent / "uop-known" / "a.uop").write_text(other)
    assert set(migrated(uop, path)[:2]) == {
        "old -> result ADD int8",
        "result ADD int8 -> result ADD int32",
    }
    assert [e.signature for e in read_known(path).entries] == [
        "result ADD int8",
        "result ADD int32",
    ]


def test_a_program_to_reject_has_the_signature_of_its_case(file: Write, uop: Any) -> None:
    path = file(f'known = [\n{{ signature = "old", {REST} }},\n]\n')
    broken = (
        "%0 = PARAM [2,3] {slot=0, dtype=int32}\ninvalid REDUCE.c2\n"
        "%1 = REDUCE %0 {op=ADD, axes=(1,0)}\n"
    )
    (path.parent / "r.uop").write_text(broken)
    found = migrated(uop, path, "backends_for_tests:Gullible")
    assert found[0].endswith("old: its program does not say of which case it is")
    (path.parent / "r.uop").write_text(f"case invalid/REDUCE/int32/c2/0@2\n{broken}")
    found = migrated(uop, path, "backends_for_tests:Gullible")
    assert found[0] == "old -> not-rejected REDUCE.c2 REDUCE int32"


def test_what_a_run_has_written_stays(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "uop-known.toml"
    words = (
        "--op",
        "ADD",
        "--dtype",
        "int8,float32",
        "--effort",
        "smoke",
        "-n",
        1,
        "--output",
        tmp_path / "found",
    )
    uop("conform", WRONG, *words, "--known", path, "--update-known")
    count = len(read_known(path).entries)
    assert count > 0
    (only,) = migrated(uop, path)
    assert f": 0 changed, {count} as before, 0 left alone" in only


def test_an_entry_that_has_no_line_of_its_own_is_not_edited(file: Write, uop: Any) -> None:
    path = file(f'known = [{{ signature = "old", {REST} }}]\n')
    outcome = uop("known", "migrate", WRONG, "--known", path)
    assert (outcome.code, "expected a line `known = [`" in outcome.err) == (2, True)
    assert "->" not in outcome.out


@pytest.fixture
def of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose signatures are of version 2."""
    for module in ("known", "known_update"):
        monkeypatch.setattr(f"uop.conformance.run.{module}.SIGNATURES", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("of_today")
@pytest.mark.parametrize("head", ["", "signatures = 1\n", "# ours\nsignatures=1 # first\n"])
def test_a_file_of_an_older_version_is_told_and_migrated(
    head: str, file: Write, uop: Any, tmp_path: Path
) -> None:
    path = file(f'{head}known = [\n{{ signature = "result ADD int8", {REST} }},\n]\n')
    words = ("conform", WRONG, "--case", "op/ADD/int8/edges/0@2", "-n", 1, "--profile", "strict",
             "--known", path, "--output", tmp_path / "found")  # fmt: skip
    said = (
        f"{path}: its signatures are of version 1, this uop makes version 2: "
        f"run uop known migrate {WRONG} --known {path}"
    )
    outcome = uop(*words)
    assert (outcome.code, said in outcome.err.splitlines()) == (0, True)
    assert uop(*words, "--update-known").code == 2
    migrated(uop, path)
    expected = head.replace("1", "2", 1) or "signatures = 2\n"
    assert path.read_text().startswith(f"{expected}known = [\n")
    assert "signatures" not in uop(*words).err


@pytest.mark.usefixtures("of_today")
def test_the_version_stays_while_lines_about_others_are_left(file: Write, uop: Any) -> None:
    path = file(
        f'known = [\n{{ signature = "old", {REST} }},\n'
        f'{{ signature = "result ADD int8", {REST}, backend = "opencl" }},\n]\n'
    )
    assert "signatures of version 1: 1 changed" in migrated(uop, path)[-1]
    assert read_known(path).signatures == 1


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2", "expected signatures of version 1, .*; found version 2"),
        ("0", "signatures: expected a version such as 1, found 0"),
        ("true", "signatures: expected a version such as 1, found True"),
        ('"1"', "signatures: expected a version such as 1, found '1'"),
    ],
)
def test_another_version_is_refused(version: str, said: str, file: Write) -> None:
    path = file(f'signatures = {version}\nknown = [\n{{ signature = "s", {REST} }},\n]\n')
    with pytest.raises(Exception, match=said):
        read_known(path)


def test_a_missing_file_is_bad_usage(uop: Any, tmp_path: Path) -> None:
    outcome = uop("known", "migrate", WRONG, "--known", tmp_path / "none.toml")
    assert (outcome.code, "cannot read" in outcome.err) == (2, True)

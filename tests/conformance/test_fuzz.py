"""A fuzz run: what it draws, what it finds, what it compares, and that its memory has an end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from uop.cli import names
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.fuzz.fuzz import SHARES, drawn, groups_to_draw
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.format import read_report
from uop.conformance.report.tally import MOST_DIGESTS, Distinct, Tally
from uop.conformance.run.replay import replay
from uop.conformance.suite.case import LEVELS, Case, CaseId, NoSuchCaseError
from uop.conformance.suite.generate import FURTHEST, case_by_id, groups
from uop.conformance.suite.vocabulary import whole
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import bind_inputs
from uop.spec.text.program import print_program

UNTIL_ONE_FAILS = ("--level", "graph", "--time", "10m", "--fail-fast")
BY_LEVEL = {level: groups_to_draw(level, whole()) for level in LEVELS}


def first(n: int, seed: int) -> list[CaseId]:
    return list(islice(drawn(BY_LEVEL, seed), n))


def test_the_seed_decides_what_is_drawn() -> None:
    assert first(50, 1) == first(50, 1)
    assert first(50, 1) != first(50, 2)


def test_levels_have_their_shares_and_programs_do_not_repeat() -> None:
    ids = first(4800, 0)
    counts = Counter(id.level for id in ids)
    assert counts.keys() == SHARES.keys() == set(names.drawn())
    for level, share in SHARES.items():
        expected = len(ids) * share / sum(SHARES.values())
        assert expected / 1.5 < counts[level] < expected * 1.5, level
    assert len(set(ids)) > 0.99 * len(ids)
    assert {id.index < 1000 for id in ids} == {True, False}


def test_each_kind_of_program_comes_before_any_comes_often() -> None:
    for level, most in {
        "graph": 128,
        "twin": 100,
        "kernel": 96,
        "schedule": 60,
        "device": 60,
    }.items():
        names = {group.name for group in BY_LEVEL[level] if group.furthest}
        ids = islice(drawn({level: BY_LEVEL[level]}, 3), 2 * most)
        assert {id.group for id in ids if id.index < FURTHEST} == names, level


def test_level_op_is_drawn_once_an_op_at_a_time() -> None:
    programs = sum(group.counts[1] for group in BY_LEVEL["op"])
    stream = drawn({"op": BY_LEVEL["op"]}, 4)
    ids = [id for id in islice(stream, 2 * programs) if id.index < FURTHEST]
    every = {group.op for group in BY_LEVEL["op"]}
    assert {id.op for id in ids[: len(every)]} == every
    assert len(set(ids)) == len(ids) == programs
    assert all(id.index > FURTHEST for id in islice(stream, 10))


def test_half_of_the_programs_are_varied_and_have_a_meaning() -> None:
    ids = [id for id in first(200, 5) if id.index > FURTHEST]
    assert 70 < len(ids) < 130
    assert {id.level for id in ids} == SHARES.keys()
    changed = 0
    for id in ids:
        case, again = case_by_id(str(id)), case_by_id(str(id))
        base = case_by_id(str(replace(id, index=id.index % FURTHEST)))
        assert isinstance(case, Case)
        assert isinstance(base, Case)
        assert case.root is again.root
        assert {u.op for u in case.root.toposort()} == {u.op for u in base.root.toposort()}
        changed += case.root is not base.root
        for batch in case.batches:
            bind_inputs(case.root, batch.inputs)
            evaluate_full(case.root, batch.inputs)
    assert changed > len(ids) / 2


def test_a_fixed_group_ends_where_its_programs_do() -> None:
    group = BY_LEVEL["op"][0]
    with pytest.raises(NoSuchCaseError, match="no case"):
        case_by_id(f"{group.id(group.most)}")


def test_an_id_of_any_index_names_one_program() -> None:
    for id in first(12, 7):
        made = [case_by_id(str(id), seed=7) for _ in range(2)]
        assert all(isinstance(case, Case) for case in made)
        texts = {print_program(case.root) for case in made if isinstance(case, Case)}
        assert len(texts) == 1


def test_from_the_furthest_index_on_valid_programs_are_varied() -> None:
    group = groups("graph")[0]
    assert str(group.id(0)).endswith("/0@2")
    case_by_id(f"{group.id(FURTHEST - 1)}")
    case_by_id(f"{group.id(FURTHEST)}")
    with pytest.raises(NoSuchCaseError, match="no case"):
        case_by_id(f"{groups('invalid')[0].id(FURTHEST)}")


@pytest.fixture
def fuzz(uop: Any, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    def run(*words: object) -> tuple[int, str]:
        outcome = uop("fuzz", *words, "-n", 1, "--output", tmp_path / "found")
        return outcome.code, outcome.out + outcome.err

    return run


@pytest.mark.slow
def test_a_right_backend_shows_no_failure(fuzz: Callable[..., tuple[int, str]]) -> None:
    code, said = fuzz("interpreter", "--seed", 1, "--time", "15s")
    assert code == 0, said
    assert "fuzzing interpreter" in said
    assert "verdict: interpreter has shown no failure under the profile strict" in said
    assert "next: uop fuzz interpreter --seed 2" in said


def test_a_fault_is_found_and_its_repro_fails_alone(
    fuzz: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:

    report = tmp_path / "report.json"
    name = "backends_for_tests:Inaccurate"
    words = ("--seed", 1, *UNTIL_ONE_FAILS, "--json", report)
    code, said = fuzz(name, *words)
    assert code == 1, said
    assert "verdict: Inaccurate fails" in said
    repros = list((tmp_path / "found").glob("*.uop"))
    assert repros
    assert {one.verdict.status for one in replay(repros, name)} == {Status.FAILED}
    document = json.loads(report.read_text())
    assert document["options"]["effort"] == "fuzz"
    assert document["cases"] == {}
    assert any("ADD" in failure["ops"] for failure in document["failures"])


@pytest.mark.slow
def test_against_itself_no_failure_counts(fuzz: Callable[..., tuple[int, str]]) -> None:
    name = "backends_for_tests:Inaccurate"
    words = ("--against", name, "--seed", 1, "--time", "20s", "--level", "graph")
    code, said = fuzz(name, *words)
    assert code == 0, said
    assert f"fail on {name} too" in said
    assert "do not count: 0 failing" not in said


@pytest.mark.slow
def test_against_a_right_backend_every_failure_counts(
    fuzz: Callable[..., tuple[int, str]],
) -> None:
    name = "backends_for_tests:Inaccurate"
    words = ("--against", "interpreter", "--seed", 1, *UNTIL_ONE_FAILS)
    code, said = fuzz(name, *words)
    assert code == 1, said
    assert "do not count: 0 failing programs fail on interpreter too" in said


@pytest.mark.slow
def test_what_does_not_repeat_does_not_count(
    fuzz: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALTERNATING", str(tmp_path / "mark"))
    name = "backends_for_tests:Alternating"
    report = tmp_path / "report.json"
    words = ("--against", "interpreter", "--seed", 1, *UNTIL_ONE_FAILS, "--json", report)
    code, said = fuzz(name, *words)
    assert code == 0, said
    assert "flaky, so it does not count: result " in said
    against = read_report(report).against
    assert against is not None
    for flaky in against.flaky:
        place, then = flaky.then.split(" is ")
        assert re.fullmatch(r"output \d+\[[\d,]*\]", place)
        assert flaky.now.startswith(f"{place} is ")
        assert not flaky.now.endswith(f" is {then}")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("interpreter", "--against", "abacus"), 2, "no backend 'abacus'"),
        (("interpreter", "--against", "backends_for_tests:DeadAtStart"), 3, "did not start"),
        (("interpreter", "--level", "invalid"), 2, "no random program of level invalid"),
        (("interpreter", "--time", "soon"), 2, "--time"),
        (("abacus",), 2, "no backend 'abacus'"),
    ],
)
def test_bad_usage_has_a_clear_error(
    words: tuple[str, ...], code: int, error: str, fuzz: Callable[..., tuple[int, str]]
) -> None:
    found, said = fuzz("--time", "5s", *words) if "--time" not in words else fuzz(*words)
    assert (found, error in said) == (code, True), said


def test_distinct_digests_are_counted_exactly_and_then_estimated() -> None:
    counter = Distinct()
    for n in (*range(1000), *range(1000)):
        counter.add(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}")
    assert counter.count == 1000
    many = 5 * MOST_DIGESTS
    for n in range(many):
        counter.add(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}")
    assert len(counter.kept) <= MOST_DIGESTS
    assert 0.95 * many < counter.count < 1.05 * many


def test_a_run_without_an_end_keeps_no_ids() -> None:
    tally, ledger = Tally(keeps_cases=False), Ledger(())
    for id in first(200, 0):
        ledger.expect([id])
        tally.add(Verdict(str(id), Status.PASSED))
    ledger.forget()
    assert (tally.cases, ledger.places, ledger.forgotten) == ({}, {}, 200)
    assert tally.programs == 200


def test_fail_fast_ends_judging_at_the_first_failure(
    fuzz: Callable[..., tuple[int, str]],
) -> None:
    begun = time.monotonic()
    code, said = fuzz("backends_for_tests:Inaccurate", "--seed", 1, *UNTIL_ONE_FAILS)
    assert code == 1, said
    assert time.monotonic() - begun < 300


@pytest.mark.slow
def test_a_killed_run_has_left_what_it_has_found(
    tmp_path: Path, fuzz: Callable[..., tuple[int, str]]
) -> None:
    found = tmp_path / "found"
    words = ("backends_for_tests:Inaccurate", "--seed", "1", "--time", "10m", "--level", "graph")
    command = (sys.executable, "-P", "-m", "uop", "fuzz", *words, "-n", "1", "--output", found)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path) as process:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not list(found.glob("*.uop")):
            time.sleep(0.2)
        process.kill()
    repros = list(found.glob("*.uop"))
    assert repros
    verdicts = replay(repros, "backends_for_tests:Inaccurate")
    assert {one.verdict.status for one in verdicts} == {Status.FAILED}
    _, said = fuzz("interpreter", "--time", "5s")
    assert re.search(rf"of earlier runs: {len(repros)} repros? in {found}\n", said)


def test_a_full_disk_is_named_and_the_verdict_is_shown(
    fuzz: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / "found").write_text("a file where the folder should be")
    code, said = fuzz("backends_for_tests:Inaccurate", "--seed", 1, *UNTIL_ONE_FAILS)
    assert code == 2, said
    assert "found" in said.splitlines()[-1]

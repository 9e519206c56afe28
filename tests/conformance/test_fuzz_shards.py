"""Shards of a fuzz run: each draws its own programs, their reports merge, failures run again."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from reports import OPTIONS, report

from uop.conformance.fuzz.fuzz import drawn
from uop.conformance.report.format import failed_in, read_report, report_text
from uop.conformance.report.merge import merged
from uop.conformance.report.model import Against, Flaky, Report
from uop.conformance.suite.case import LEVELS
from uop.conformance.suite.generate import random_groups
from uop.conformance.suite.vocabulary import whole

A, B = Flaky("a", "1", "2"), Flaky("b", "3", "4")
WRONG = "backends_for_tests:Inaccurate"


def shards(uop: Any, folder: Path, backend: str, *words: object) -> list[Path]:
    """The reports of both shards of a run."""
    files = [folder / f"{k}.json" for k in (1, 2)]
    output = ("--output", folder / "found", "-n", 1, "--level", "graph")
    for k, file in enumerate(files, 1):
        uop("fuzz", backend, "--shard", f"{k}/2", "--json", file, *output, *words)
    return files


def test_each_shard_draws_programs_of_its_own() -> None:
    groups = {level: random_groups(level, whole()) for level in LEVELS}
    first, second, other = (
        set(islice(drawn(groups, 1, shard), 100)) for shard in ("1/2", "2/2", "1/3")
    )
    assert not first & second
    assert not first & other


@pytest.mark.slow
def test_shards_merge_and_what_failed_is_judged_again(uop: Any, tmp_path: Path) -> None:
    files = shards(uop, tmp_path, WRONG, "--seed", 1, "--time", "10m", "--fail-fast")
    outcome = uop("merge", *files, "--json", tmp_path / "whole.json")
    assert outcome.code == 1, outcome.err
    assert "verdict: Inaccurate fails: outside the profile strict\n" in outcome.out
    parts, whole_run = list(map(read_report, files)), read_report(tmp_path / "whole.json")
    assert whole_run.options.shard == ""
    for name in ("programs", "failed", "elements", "seconds"):
        of_parts = [getattr(part.summary, name) for part in parts]
        assert all(of_parts)
        assert getattr(whole_run.summary, name) == sum(of_parts)
    signatures = [failure.signature for failure in whole_run.failures]
    assert len(signatures) == len(set(signatures))
    assert set(signatures) == {f.signature for part in parts for f in part.failures}
    assert whole_run.ledger is not None
    assert whole_run.ledger.evidence.keys() == {p for r in parts for p in evidence(r)}
    failed = [set(failed_in(file).cases) for file in files]
    assert set(failed_in(tmp_path / "whole.json").cases) == failed[0] | failed[1]
    assert not failed[0] & failed[1]
    again = ("--last-failed", tmp_path / "whole.json", "-n", 1, "--output", tmp_path / "found")
    assert uop("conform", WRONG, *again, "--json", tmp_path / "again.json").code == 1
    judged = read_report(tmp_path / "again.json").summary
    assert judged.programs == judged.failed == len(failed[0] | failed[1])
    assert uop("conform", "interpreter", *again).code == 0


def evidence(report: Report) -> set[str]:
    assert report.ledger is not None
    return set(report.ledger.evidence)


@pytest.mark.slow
def test_only_shards_of_one_seed_and_one_baseline_merge(uop: Any, tmp_path: Path) -> None:
    first, second = shards(uop, tmp_path, "interpreter", "--seed", 1, "--time", "4s")
    outcome = uop("merge", first, second)
    assert outcome.code == 0, outcome.err
    assert "verdict: interpreter has shown no failure under the profile strict" in outcome.out
    before = read_report(second)
    elsewhere = replace(before, options=replace(before.options, seed=2))
    compared = replace(before, against=Against("old", 1, 2, (A,)))
    for another, said in ((elsewhere, "another options"), (compared, "another baseline")):
        second.write_text(report_text(another))
        outcome = uop("merge", first, second)
        assert (outcome.code, f"found {said}" in outcome.err) == (2, True)


def test_comparisons_of_shards_are_summed() -> None:
    first, second = (
        replace(report(), options=replace(OPTIONS, shard=f"{k}/2"), against=against)
        for k, against in ((1, Against("old", 1, 2, (A,))), (2, Against("old", 3, 5, (B, A))))
    )
    assert merged([second, first]).against == Against("old", 4, 7, (A, B))
    assert merged([replace(first, against=None), replace(second, against=None)]).against is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shard", "1/2"), "--shard: expected --seed"),
        (("--shard", "3/2", "--seed", 1), "--shard: expected K/N"),
        (("adversary", "--shard", "1/2", "--seed", 1), "--shard: expected one backend"),
        (
            ("--scheduler", "tcp://localhost:1", "--shard", "1/2", "--seed", 1),
            "--shard: expected no --scheduler",
        ),
    ],
)
def test_a_wrong_shard_is_bad_usage(words: tuple[object, ...], said: str, uop: Any) -> None:
    outcome = uop("fuzz", "interpreter", *words)
    assert (outcome.code, said in outcome.err) == (2, True), outcome.err

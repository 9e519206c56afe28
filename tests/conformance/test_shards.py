"""Shards of a run: together they judge what the whole run judges, and merge to its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.run.exits import Exit
from uop.conformance.run.options import Options
from uop.conformance.run.selection import in_shard, selected

WORDS = ("--op", "ADD,MUL,CMPLT", "--effort", "smoke", "--profile", "strict", "-n", 1)
SAME = ("programs", "elements", "passed", "failed", "skipped", "crashed", "known", "missing",
        "verdict", "checks", "untried")  # fmt: skip


def test_each_case_is_in_one_shard() -> None:
    ids = selected(Options("interpreter", effort="smoke"))
    shards = [in_shard(ids, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(str(id) for shard in shards for id in shard) == sorted(map(str, ids))
    assert all(len(shard) > len(ids) / 4 for shard in shards)
    assert in_shard(ids, "") == in_shard(ids, "1/1") == ids


def judged(uop: Any, folder: Path, backend: str, count: int) -> list[Path]:
    """The reports of the shards of a run; of the whole run for a count of 0."""
    files = []
    for k in range(1, count + 1) if count else (0,):
        files.append(folder / f"{k}-{count}.json")
        shard = ("--shard", f"{k}/{count}") if count else ()
        uop("conform", backend, *WORDS, *shard, "--json", files[-1], "--output", folder / "found")
    return files


@pytest.mark.parametrize(
    ("backend", "code"),
    [("interpreter", Exit.OK), ("backends_for_tests:Inaccurate", Exit.FAILED)],
)
def test_shards_merge_to_the_report_of_the_whole_run(
    backend: str, code: Exit, uop: Any, tmp_path: Path
) -> None:
    (whole,) = judged(uop, tmp_path, backend, 0)
    shards = judged(uop, tmp_path, backend, 3)
    joined = tmp_path / "joined.json"
    outcome = uop("merge", *reversed(shards), "--json", joined)
    assert outcome.code == code, outcome.out + outcome.err
    one, other = (json.loads(path.read_text()) for path in (whole, joined))
    assert {k: one["summary"][k] for k in SAME} == {k: other["summary"][k] for k in SAME}
    assert one["cases"] == other["cases"]
    assert one["ledger"]["checked"] == other["ledger"]["checked"]
    assert one["ledger"]["kinds"] == other["ledger"]["kinds"]
    assert one["strength"] == other["strength"]
    cells = ({(c["level"], c["op"], c["dtype"], c["programs"], c["max_ulp"]) for c in r["cells"]}
             for r in (one, other))  # fmt: skip
    assert next(cells) == next(cells)
    assert bool(other["failures"]) == (code is Exit.FAILED)


def test_a_shard_says_so_and_lacks_no_evidence(uop: Any, tmp_path: Path) -> None:
    outcome = uop("conform", "interpreter", *WORDS, "--shard", "2/9", "--output", tmp_path)
    assert outcome.code == Exit.OK
    assert "verdict: interpreter conforms in shard 2/9 under the profile strict" in outcome.out


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/", "-1/3", "1/0", "1/999999999999"])
def test_a_wrong_shard_is_bad_usage(shard: str, uop: Any) -> None:
    outcome = uop("conform", "interpreter", "--shard", shard)
    assert (outcome.code, "--shard: expected K/N such as 3/8" in outcome.err) == (Exit.USAGE, True)


def test_only_all_shards_of_one_run_merge(uop: Any, tmp_path: Path) -> None:
    first, second = judged(uop, tmp_path, "interpreter", 2)
    (whole,) = judged(uop, tmp_path, "interpreter", 0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (other,) = judged(uop, elsewhere, "backends_for_tests:Inaccurate", 1)
    cut = tmp_path / "cut.json"
    cut.write_text(first.read_text()[:-100])
    for files, said in (
        ((first,), "expected each shard of a run once, 1/1 to 1/1; found 1/2"),
        ((first, first), "found 1/2, 1/2"),
        ((first, second, first), "expected each shard of a run once, 1/3 to 3/3"),
        ((whole, second), "found a report of a whole run, 2/2"),
        ((first, other), "expected reports of one run, found another backend"),
        ((first, cut), "the file is cut off"),
        ((first, tmp_path / "none.json"), "cannot read"),
    ):
        outcome = uop("merge", *files)
        assert (outcome.code, said in outcome.err) == (Exit.USAGE, True), outcome.err

"""Shards of a run: together they judge what the whole run judges, and merge to its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from uop.__main__ import main
from uop.conformance.run import Exit
from uop.conformance.run.options import Options
from uop.conformance.run.selection import in_shard, selected

STRICT = ("--effort", "smoke", "--profile", "strict", "-n", "1")
WORDS = ("--op", "ADD,CMPLT", "--dtype", "int8,float32", *STRICT)
RIGHT, WRONG = "interpreter", "backends_for_tests:Inaccurate"
SAME = ("programs", "elements", "passed", "failed", "skipped", "crashed", "known", "missing",
        "verdict", "checks", "untried")  # fmt: skip


def test_each_case_is_in_one_shard() -> None:
    ids = selected(Options("interpreter", effort="smoke"))
    shards = [in_shard(ids, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(str(id) for shard in shards for id in shard) == sorted(map(str, ids))
    assert all(len(shard) > len(ids) / 4 for shard in shards)
    assert in_shard(ids, "") == in_shard(ids, "1/1") == ids


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The report of a shard of a run, or of the whole run; each is judged once."""
    folder = tmp_path_factory.mktemp("shards")

    @cache
    def report(backend: str, shard: str) -> Path:
        path = folder / f"{backend.partition(':')[0]}-{shard.replace('/', '-of-')}.json"
        words = ("--shard", shard, "--json", str(path), "--output", str(folder / "found"))
        main(["conform", backend, *WORDS, *words])
        return path

    return report


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "code"), [(RIGHT, Exit.OK), (WRONG, Exit.FAILED)])
def test_shards_merge_to_the_report_of_the_whole_run(
    backend: str, code: Exit, uop: Any, tmp_path: Path, reports: Callable[[str, str], Path]
) -> None:
    whole = reports(backend, "")
    shards = [reports(backend, f"{k}/3") for k in (3, 2, 1)]
    joined = tmp_path / "joined.json"
    outcome = uop("merge", *shards, "--json", joined)
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
    outcome = uop("conform", RIGHT, "--op", "ADD", *STRICT, "--shard", "2/9", "--output", tmp_path)
    assert outcome.code == Exit.OK
    assert "verdict: interpreter conforms in shard 2/9 under the profile strict" in outcome.out


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/", "-1/3", "1/0", "1/999999999999"])
def test_a_wrong_shard_is_bad_usage(shard: str, uop: Any) -> None:
    outcome = uop("conform", "interpreter", "--shard", shard)
    assert (outcome.code, "--shard: expected K/N such as 3/8" in outcome.err) == (Exit.USAGE, True)


@pytest.mark.slow
def test_only_all_shards_of_one_run_merge(
    uop: Any, tmp_path: Path, reports: Callable[[str, str], Path]
) -> None:
    whole, first, second = (reports(RIGHT, shard) for shard in ("", "1/3", "2/3"))
    cut = tmp_path / "cut.json"
    cut.write_text(first.read_text()[:-100])
    for files, said in (
        ((first,), "expected each shard of a run once, 1/3 to 3/3; found 1/3"),
        ((first, first), "found 1/3, 1/3"),
        ((first, second, first), "expected each shard of a run once, 1/3 to 3/3"),
        ((whole, second), "found a report of a whole run, 2/3"),
        ((first, reports(WRONG, "2/3")), "expected reports of one run, found another backend"),
        ((first, cut), "the file is cut off"),
        ((first, tmp_path / "none.json"), "cannot read"),
    ):
        outcome = uop("merge", *files)
        assert (outcome.code, said in outcome.err) == (Exit.USAGE, True), outcome.err

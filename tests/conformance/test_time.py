"""A run that ends by --time: what it judges first, and that it ends then."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from uop.conformance.judging.verdict import Status
from uop.conformance.report.model import Conclusion
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.run import AGAIN, JUDGING, SEARCHING, Clock
from uop.conformance.run.selection import in_turns, selected
from uop.conformance.run.tasks import Judge, JudgeBy, tasks_of
from uop.conformance.suite.case import LEVELS, CaseId
from uop.conformance.suite.vocabulary import Skips, whole

IDS = selected(Options("interpreter"))
SOON = 8.0
"""The seconds beyond its time in which a run ends here: this machine may be busy."""


def cells(ids: list[CaseId]) -> list[tuple[str, str, str]]:
    return [(id.level, id.op, id.dtype) for id in ids]


def test_every_level_op_and_dtype_comes_before_any_comes_twice() -> None:
    ordered = in_turns(IDS, 0)
    count = len(set(cells(IDS)))
    assert sorted(map(str, ordered)) == sorted(map(str, IDS))
    assert len(set(cells(ordered[:count]))) == count
    assert {id.level for id in ordered[: len(LEVELS)]} == set(LEVELS)
    assert {id.index for id in ordered[:count]} == {0}


def test_the_levels_are_spread_over_a_turn() -> None:
    ordered = in_turns(IDS, 0)
    count = len(set(cells(IDS)))
    first, second = ordered[: count // 2], ordered[count // 2 : count]
    for level in LEVELS:
        halves = [sum(id.level == level for id in half) for half in (first, second)]
        assert abs(halves[0] - halves[1]) <= len(LEVELS), level


def test_the_seed_chooses_the_order_of_a_turn() -> None:
    assert in_turns(IDS, 0) == in_turns(IDS, 0)
    assert in_turns(IDS, 0) != in_turns(IDS, 1)


def test_special_values_come_first_and_large_programs_last() -> None:
    own = [id for id in in_turns(IDS, 0) if (id.level, id.op, id.dtype) == ("op", "SIN", "float16")]
    firsts = [id.group for id in own if id.index == 0]
    assert firsts[0].startswith(("hand", "edges", "specials"))
    assert firsts[-1] == "exhaustive"


def test_tasks_are_as_small_as_the_time_demands() -> None:
    room = iter([2, 100, 3, 100, 100, 100])
    sizes = [len(task.ids) for task in tasks_of(IDS[:64], 32, lambda: next(room))]
    assert sizes == [2, 8, 3, 32, 19]


def test_the_parts_of_the_time_follow_one_another() -> None:
    now = time.monotonic()
    running, over = Clock(10.0, now - 4.0), Clock(10.0, now - 11.0)
    ends = [running.at(part) for part in (JUDGING, AGAIN, SEARCHING)]
    assert ends == sorted(ends)
    assert running.deadline == now + 6.0
    assert (running.is_in_time, over.is_in_time) == (True, False)
    assert Clock(None, now - 1e9).is_in_time
    assert Clock(None).deadline is None


def test_a_task_that_takes_too_long_is_dropped_and_the_pool_goes_on() -> None:
    sine, add = "op/SIN/float32/edges/0@2", "op/ADD/float32/edges/0@2"
    pool = Pool.start(Options("backends_for_tests:Hanging", workers=1).checked())
    try:
        pool.hello(1)
        pool.ask_all(JudgeBy("strict", whole(), Skips(frozenset({"ADD"}))))
        begun = time.monotonic()
        assert list(pool.answers(iter([Judge((sine,))]), begun + 1.0)) == []
        assert time.monotonic() - begun < 1.0 + SOON
        # The new process judges by the same settings.
        (verdict,) = pool.ask(Judge((add,))).verdicts
        assert verdict.status is Status.SKIPPED
        assert verdict.reason == "the run leaves out ADD"
    finally:
        pool.end()


@pytest.mark.slow
def test_a_run_ends_in_time_while_a_program_hangs(tmp_path: Path) -> None:
    options = Options("backends_for_tests:Hanging", ops=("SIN",), seconds=5.0, output=tmp_path)
    begun = time.monotonic()
    report = conform(options)
    assert time.monotonic() - begun < 5.0 + SOON
    assert report.conclusion is Conclusion.INCONCLUSIVE
    assert not report.summary.crashed
    assert any("the run ended before" in why for why in report.summary.missing)

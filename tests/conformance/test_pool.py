"""Judging processes that end: each task is sent again, and what ends them all is not judged."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from uop.conformance.judging.verdict import Status
from uop.conformance.run.pool import DEATHS, MOST_BYTES, Pool
from uop.conformance.run.tasks import Judge, JudgeBy
from uop.conformance.suite.vocabulary import whole
from uop.spec.errors import JudgeLostError

IDS = [tuple(f"op/ADD/int32/group/{k}" for k in range(start, start + 3)) for start in (0, 3, 6)]
KILLING = "op/ADD/int32/killing/0"


@pytest.fixture
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    pool = Pool.of("member_for_tests", request.param)
    yield pool
    pool.end()


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["well"], indirect=True)
def test_a_case_that_ends_every_process_is_not_judged_and_the_others_are(pool: Pool) -> None:
    assert pool.hello(2).name == "poor"
    tasks = [Judge(IDS[0]), Judge((*IDS[1], KILLING)), Judge(IDS[2])]
    answers = list(pool.answers(iter(tasks)))
    verdicts = {verdict.id: verdict for answer in answers for verdict in answer.verdicts}
    assert set(verdicts) == {*IDS[0], *IDS[1], *IDS[2], KILLING}
    lost = verdicts.pop(KILLING)
    assert {verdict.status for verdict in verdicts.values()} == {Status.PASSED}
    assert lost.unjudged == f"the judging process was ended by SIGKILL {DEATHS} times"
    assert lost.status is Status.SKIPPED
    # Three processes for the four together, three for the one alone.
    assert len(pool.members) == 2


@pytest.mark.parametrize("pool", ["well"], indirect=True)
def test_a_process_that_is_killed_while_nobody_asks_is_replaced(pool: Pool) -> None:
    pool.hello(2)
    for member in pool.members:
        member.process.popen.kill()
        member.process.popen.wait()
    pool.ask_all(JudgeBy("strict", whole()))
    assert len(list(pool.answers(Judge(ids) for ids in IDS))) == len(IDS)
    pool.members[0].process.popen.kill()
    assert pool.ask(Judge(IDS[0])).verdicts[0].status is Status.PASSED


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["at-start"], indirect=True)
def test_processes_that_never_start_end_the_run(pool: Pool) -> None:
    with pytest.raises(JudgeLostError, match=f"was ended by SIGKILL, {DEATHS} times"):
        pool.hello(1)
    with pytest.raises(JudgeLostError, match="end at their start: the last was ended by SIGKILL"):
        list(pool.answers(iter([Judge(IDS[0])])))


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["fat"], indirect=True)
def test_a_process_that_holds_too_much_is_replaced(pool: Pool) -> None:
    pool.hello(1)
    pids = {answer.peak for answer in pool.answers(Judge(ids) for ids in IDS)}
    assert len(pids) == len(IDS)


@pytest.mark.parametrize("pool", ["well"], indirect=True)
def test_a_process_above_the_limit_gives_its_place_to_another(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.hello(1)
    first = pool.members[0].process
    held = SimpleNamespace(rss=MOST_BYTES + 1)
    monkeypatch.setattr(psutil.Process, "memory_info", lambda _: held)
    assert len(list(pool.answers(Judge(ids) for ids in IDS))) == pool.replaced == len(IDS)
    assert len(pool.members) == 1
    assert pool.members[0].process is not first

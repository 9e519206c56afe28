"""The suite as tests: one for each op and level, programs drawn and shrunk by Hypothesis.

pytest --pyargs uop.conformance --backend opencl -n auto
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uop.conformance.case import LEVELS, Case, InvalidCase
from uop.conformance.drawn import HypothesisChoices
from uop.conformance.generate import AnyGroup, groups
from uop.conformance.judge import Judge, Status, Verdict
from uop.conformance.levels.group import Group
from uop.conformance.sessions import known, start
from uop.spec.errors import BackendError
from uop.spec.latitude import STRICT
from uop.spec.text import print_program

CELLS = [(level, op) for level in LEVELS for op in dict.fromkeys(g.op for g in groups(level))]


@pytest.fixture(scope="session")
def judge(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Judge]:
    """The backend in a process of its own, and the suite as its judge."""
    name = cast(str, request.config.getoption("--backend"))
    known(name)
    try:
        session = start(name, tmp_path_factory.mktemp("backend"))
    except BackendError as error:
        pytest.exit(str(error), 3)
    yield Judge(session, STRICT)
    session.close()


@pytest.mark.parametrize(("level", "op"), CELLS, ids=[f"{level}-{op}" for level, op in CELLS])
def test_conforms(level: str, op: str, judge: Judge, request: pytest.FixtureRequest) -> None:
    """No program of this op and level gives what the spec does not allow."""
    chosen = [group for group in groups(level) if group.op == op]
    reasons: set[str] = set()
    judged = 0

    @settings(
        max_examples=cast(int, request.config.getoption("--programs")),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def conforms(data: st.DataObject) -> None:
        nonlocal judged
        case = drawn(chosen, data)
        (verdict,) = judge.judge([case])
        judged += verdict.status is not Status.SKIPPED
        reasons.update({verdict.reason} - {""})
        if verdict.fault is not None:
            pytest.fail(told(case, verdict), pytrace=False)

    conforms()
    if not judged:
        pytest.skip("; ".join(sorted(reasons)))


def drawn(chosen: list[AnyGroup], data: st.DataObject) -> Case | InvalidCase:
    """A case of one of the groups; what the builder decides Hypothesis draws."""
    group = data.draw(st.sampled_from(chosen))
    index = data.draw(st.integers(0, max(group.count("default"), 1) - 1))
    if not isinstance(group, Group):
        return group.case(index, 0)
    return group.made(index, HypothesisChoices(data))


def told(case: Case | InvalidCase, verdict: Verdict) -> str:
    """What failed, and the program."""
    assert verdict.fault is not None
    text = case.text if isinstance(case, InvalidCase) else print_program(case.root)
    return f"{verdict.fault.symptom}: {verdict.fault.message}\n{text}"

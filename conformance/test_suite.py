"""Runs the suite as tests: one per op and level; Hypothesis samples and shrinks programs.

pytest --pyargs uop.conformance --backend opencl -n auto
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from uop.conformance.checks import OBSERVED
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import not_listed
from uop.conformance.judging.self_test import require_fit
from uop.conformance.judging.verdict import CaseFailure, Status
from uop.conformance.plugin import JUDGED
from uop.conformance.profile.card import observe
from uop.conformance.run.options import profile_of_run
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.probe import LOSSES
from uop.conformance.shrink.repro import NOT_SHRUNK, find_cause
from uop.conformance.shrink.writing import unshrunk
from uop.conformance.strategies import HypothesisChoices
from uop.conformance.suite.case import LEVELS, Case, InvalidCase
from uop.conformance.suite.generate import AnyGroup, groups
from uop.conformance.suite.levels.group import Group
from uop.conformance.suite.vocabulary import vocabulary_of
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.sessions import known, start
from uop.spec.errors import BackendError, UnfitError, UopError
from uop.spec.text.profile_text import parse_profile

TRIES = 60
"""After a failure Hypothesis tries this many programs; the reducer of the suite does the rest."""
COSTLY = NOT_SHRUNK | LOSSES.keys()
"""Not shrunk by Hypothesis: each try costs a timeout, or one of the restarts of the backend."""
CELLS = [(level, op) for level in LEVELS for op in dict.fromkeys(g.op for g in groups(level))]


class FailedError(AssertionError):
    """The backend fails a program; Hypothesis shrinks it."""


class EndedError(BaseException):
    """Ends shrinking; Hypothesis does not catch it."""


@pytest.fixture(scope="session")
def judge(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Judge]:
    """Judges the chosen backend, which runs in a process of its own."""
    name = cast(str, request.config.getoption("--backend"))
    try:
        known(name)
        session = start(name, Workplace(tmp_path_factory.mktemp("backend")))
        require_fit(session)
    except UnfitError as error:
        pytest.skip(str(error))
    except UopError as error:
        request.session.shouldstop = str(error)
        pytest.fail(str(error), pytrace=False)
    profile = profile_of_run("", session.hello)
    yield Judge(
        session, observe(session).profile if profile == OBSERVED else parse_profile(profile)
    )
    session.close()


@pytest.mark.parametrize(("level", "op"), CELLS, ids=[f"{level}-{op}" for level, op in CELLS])
def test_conforms(level: str, op: str, judge: Judge, request: pytest.FixtureRequest) -> None:
    """No program of this op and level gives what the spec does not allow."""
    vocabulary = vocabulary_of([judge.session.hello])
    chosen, reasons = supported([g for g in groups(level, vocabulary) if g.op == op], judge)
    programs = cast(int, request.config.getoption("--programs"))
    trial = TestOutcome(judge, programs, reasons)

    @settings(
        max_examples=programs,
        deadline=None,
        derandomize=True,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def conforms(data: st.DataObject) -> None:
        trial.judge_one(sample(chosen, data))

    try:
        if chosen:
            conforms()
    except (Unsatisfiable, FailedError, EndedError):
        assert trial.failed or trial.lost or not trial.judged
    request.node.user_properties.append((JUDGED, trial.judged))
    if trial.lost:
        request.session.shouldstop = trial.lost
        pytest.fail(trial.lost, pytrace=False)
    if trial.failed:
        # The last one is the smallest.
        pytest.fail(described(judge, *trial.failed[-1]), pytrace=False)
    if not trial.judged:
        pytest.skip("; ".join(sorted(reasons)))


@dataclass(slots=True)
class TestOutcome:
    """The results of the programs of one test."""

    judge: Judge
    programs: int
    reasons: set[str]
    judged: int = 0
    skipped: int = 0
    tries: int = 0
    lost: str = ""
    """Why the backend can no longer be used."""
    failed: list[tuple[Case | InvalidCase, CaseFailure]] = field(default_factory=list)

    def judge_one(self, case: Case | InvalidCase) -> None:
        """Judge a case. FailedError to shrink it, EndedError to end shrinking."""
        self.tries += bool(self.failed)
        if self.tries > TRIES:
            raise EndedError
        try:
            (verdict,) = self.judge.judge([case])
        except BackendError as error:
            self.lost = str(error)
            raise EndedError from None
        self.reasons.update({verdict.reason} - {""})
        is_skipped = verdict.status is Status.SKIPPED
        self.judged += not is_skipped
        self.skipped += is_skipped
        # Hypothesis samples another instead, but only so many.
        assume(not is_skipped or self.skipped > self.programs)
        if verdict.failure is not None:
            self.failed.append((case, verdict.failure))
            raise EndedError if verdict.failure.symptom in COSTLY else FailedError


def supported(candidates: list[AnyGroup], judge: Judge) -> tuple[list[AnyGroup], set[str]]:
    """The groups of ops and dtypes that the backend lists, and why the others are not."""
    why = {group: not_listed(group.id(0), judge.session.hello) for group in candidates}
    return [group for group in candidates if not why[group]], set(why.values()) - {""}


def sample(chosen: list[AnyGroup], data: st.DataObject) -> Case | InvalidCase:
    """A case of one of the groups, whose builder takes its choices from Hypothesis."""
    group = data.draw(st.sampled_from(chosen))
    index = data.draw(st.integers(0, max(group.count("default"), 1) - 1))
    if not isinstance(group, Group):
        return group.case(index, 0)
    return group.made(index, HypothesisChoices(data))


def described(judge: Judge, case: Case | InvalidCase, failure: CaseFailure) -> str:
    """The failure, and the program with its data in the form that `uop replay` reads."""
    if failure.symptom in COSTLY:
        cause = unshrunk(case, failure, judge.profile)
    else:
        cause = find_cause(judge, Failing(case, failure))
    return f"{failure.symptom}: {cause.message}\n{cause.text}"

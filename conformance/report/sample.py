"""Judges some of the cases of a report again and says whether its verdicts hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uop.conformance.checks import OptionError
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.model import Report, listed_id
from uop.conformance.report.tally import STATUSES
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.tasks import Judge, JudgeBy
from uop.conformance.suite.case import CaseId, NoSuchCaseError
from uop.conformance.suite.generate import group_of
from uop.conformance.suite.vocabulary import Vocabulary, whole
from uop.spec.errors import BackendError, PassError

CHUNK = 16


@dataclass(frozen=True, slots=True)
class Again:
    """A case of a report: its status there, and its verdict now; None where `why` tells."""

    id: str
    before: Status
    now: Verdict | None
    why: str = ""

    @property
    def holds(self) -> bool:
        """A known failure is one that fails."""
        if self.now is None:
            return False
        has_failed = self.now.status in (Status.FAILED, Status.CRASHED)
        return has_failed if self.before is Status.KNOWN else self.now.status is self.before


def judged_again(report: Report, count: int, backend: str = "") -> list[Again]:
    """A sample of the cases of a report, on its backend or on another one, in order of their ids.

    BackendError where the backend does not start; where it is lost on the way the rest say so.
    """
    if not backend and report.options.corpus is not None:
        raise OptionError("a report of `uop judge` names no backend: expected one behind it")
    options = Options(
        backend or report.options.backend,
        seed=report.options.seed,
        profile=report.profile,
        timeout=report.options.timeout,
        vocabulary=report.generator.vocabulary,
    ).checked()
    chosen = sample(report, count)
    gone = {id: why for id in chosen if (why := _missing(id, options.vocabulary or whole()))}
    found, lost = _verdicts([id for id in chosen if id not in gone], options)
    return [
        Again(id, before, found.get(id), gone.get(id) or ("" if id in found else lost))
        for id, before in chosen.items()
    ]


def sample(report: Report, count: int) -> dict[str, Status]:
    """Cases that were judged: as many that failed as passed, if there are, evenly spread."""
    cases = list(_judged(report))
    failed = [case for case in cases if case[1] is not Status.PASSED]
    passed = [case for case in cases if case[1] is Status.PASSED]
    of_failed = max(count // 2, count - len(passed))
    some = _spread(failed, of_failed)
    return dict(sorted([*some, *_spread(passed, count - len(some))]))


def _judged(report: Report) -> Iterator[tuple[str, Status]]:
    for name, marks in report.cases.items():
        for index, mark in enumerate(marks):
            status = STATUSES.get(mark, Status.SKIPPED)
            if status is not Status.SKIPPED:
                yield listed_id(name, index, report.generator.version), status


def _spread(cases: Sequence[tuple[str, Status]], count: int) -> list[tuple[str, Status]]:
    """That many of them, evenly spread."""
    count = min(count, len(cases))
    return [cases[k * len(cases) // count] for k in range(count)]


def _missing(id: str, vocabulary: Vocabulary) -> str:
    """Why a case cannot be made, or nothing."""
    try:
        group_of(CaseId.parse(id), vocabulary)
    except NoSuchCaseError as error:
        return f"this suite has {error}"
    return ""


def _verdicts(ids: Sequence[str], options: Options) -> tuple[dict[str, Verdict], str]:
    """The verdicts, and why there are no more of them."""
    found: dict[str, Verdict] = {}
    tasks = (Judge(tuple(ids[k : k + CHUNK])) for k in range(0, len(ids), CHUNK))
    pool = Pool.start(options)
    try:
        pool.hello(options.workers)
        if options.vocabulary is not None:
            pool.ask_all(JudgeBy(options.profile, options.vocabulary))
        for judged in pool.answers(tasks):
            found |= {verdict.id: verdict for verdict in judged.verdicts}
    except (BackendError, PassError) as error:
        if not found:
            raise
        return found, str(error)
    finally:
        pool.end()
    return found, ""


def require_cases(report: Report) -> None:
    """OptionError for a report in which nothing was judged."""
    if not any(True for _ in _judged(report)):
        raise OptionError("the report holds no case that was judged")

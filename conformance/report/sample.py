"""Judges a sample of the cases of a report again, to check that its verdicts hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uop.conformance.checks import OptionError
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.model import Report
from uop.conformance.report.tally import statuses_of
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.tasks import Judge, JudgeBy, SelfTest
from uop.conformance.suite.case import FUZZ, CaseId, NoSuchCaseError
from uop.conformance.suite.generate import group_of
from uop.conformance.suite.vocabulary import Vocabulary, whole
from uop.spec.errors import BackendError, PassError

CHUNK = 16


@dataclass(frozen=True, slots=True)
class Again:
    """A case of a report: its old status and new verdict; `why` says why `now` is None."""

    id: str
    before: Status
    now: Verdict | None
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether the new verdict equals the old status; a known failure must fail."""
        if self.now is None:
            return False
        has_failed = self.now.status.is_failure
        return has_failed if self.before is Status.KNOWN else self.now.status is self.before


def judged_again(report: Report, count: int, backend: str = "") -> list[Again]:
    """Judge a sample of the cases again, on the same backend or another one, ordered by id.

    Raises BackendError if the backend does not start. If it is lost later, the remaining cases
    say so.
    """
    if not backend and report.options.exported is not None:
        raise OptionError("a report of `uop judge` names no backend: expected one behind it")
    options = Options(
        backend or report.options.backend,
        seed=report.options.seed,
        profile=report.profile,
        timeout=report.options.timeout,
        vocabulary=report.generator.vocabulary,
    ).checked()
    sampled = sample(report, count)
    missing = {id: why for id in sampled if (why := _missing(id, options.vocabulary or whole()))}
    verdicts, lost = _verdicts([id for id in sampled if id not in missing], options)
    return [
        Again(id, before, verdicts.get(id), missing.get(id) or ("" if id in verdicts else lost))
        for id, before in sampled.items()
    ]


def sample(report: Report, count: int) -> dict[str, Status]:
    """Choose judged cases, evenly spread: half failed and half passed, if there are enough."""
    cases = _judged(report)
    failed = [case for case in cases if case[1] is not Status.PASSED]
    passed = [case for case in cases if case[1] is Status.PASSED]
    of_failed = max(count // 2, count - len(passed))
    sampled = _spread(failed, of_failed)
    return dict(sorted([*sampled, *_spread(passed, count - len(sampled))]))


def _judged(report: Report) -> list[tuple[str, Status]]:
    cases = statuses_of(report, report.generator.version)
    return [(id, status) for id, status in cases if status is not Status.SKIPPED]


def _spread(cases: Sequence[tuple[str, Status]], count: int) -> list[tuple[str, Status]]:
    """Choose `count` cases, evenly spread."""
    count = min(count, len(cases))
    return [cases[k * len(cases) // count] for k in range(count)]


def _missing(id: str, vocabulary: Vocabulary) -> str:
    """Why a case cannot be generated; empty if it can."""
    try:
        group_of(CaseId.parse(id), vocabulary)
    except NoSuchCaseError as error:
        return f"this suite has {error}"
    return ""


def _verdicts(ids: Sequence[str], options: Options) -> tuple[dict[str, Verdict], str]:
    """Judge cases. Returns the verdicts, and why some are missing."""
    verdicts: dict[str, Verdict] = {}
    tasks = (Judge(tuple(ids[k : k + CHUNK])) for k in range(0, len(ids), CHUNK))
    try:
        with Pool.start(options) as pool:
            pool.hello(options.workers)
            pool.ask(SelfTest()).require_fit()
            if options.vocabulary is not None:
                pool.ask_all(JudgeBy(options.profile, options.vocabulary))
            for judged in pool.answers(tasks):
                verdicts |= {verdict.id: verdict for verdict in judged.verdicts}
    except (BackendError, PassError) as error:
        if not verdicts:
            raise
        return verdicts, str(error)
    return verdicts, ""


def require_cases(report: Report) -> None:
    """Raise OptionError for a report without judged cases, as that of a fuzz run is."""
    if report.options.effort == FUZZ:
        raise OptionError(
            "the report of a fuzz run lists no cases that passed; `uop conform BACKEND "
            "--last-failed REPORT.json` judges again what failed"
        )
    if not _judged(report):
        raise OptionError("the report holds no case that was judged")

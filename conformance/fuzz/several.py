"""Fuzzes several backends, and judges on all of them the case of each cause that one has shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from uop.conformance.fuzz.fuzz import Fuzz
from uop.conformance.judging.verdict import Verdict
from uop.conformance.report.model import Report
from uop.conformance.report.terminal import Display
from uop.conformance.report.vote import combined, results_in
from uop.conformance.run.conform import Poll, reports_on
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.tasks import JudgeBy, tasks_of
from uop.conformance.suite.case import ALL_LEVELS, FUZZ, CaseId
from uop.conformance.suite.vocabulary import whole
from uop.spec.errors import BackendError, PassError


def fuzz_all(
    options: Options, backends: Sequence[str], display: Callable[[], Display] = Display
) -> Poll:
    """Fuzz several backends, each for an equal part of the time; raises errors of `reports_on`.

    All draw the same programs in the same order. The votes take at most another part.
    """
    assert options.seconds is not None
    part = options.seconds / len(backends)
    options = replace(options, seconds=part)
    found = reports_on(options, backends, display, _run)
    # The first case of each cause; a choice that the backend may not make has none.
    causes = (f for report in found.every for f in report.failures if f.level in ALL_LEVELS)
    ids = dict.fromkeys(failure.id for failure in causes)
    results = {id: results_in(found.every, id) for id in ids}
    deadline = time.monotonic() + part
    try:
        for report in found.every if not found.interrupted else ():
            name = report.options.backend
            left = [CaseId.parse(id) for id, of in results.items() if of[name] is None]
            # One that is lost has no vote on the cases left.
            with suppress(BackendError, PassError):
                for verdict in _judged(report, replace(options, backend=name), left, deadline):
                    results[verdict.id][name] = verdict
    except KeyboardInterrupt:
        found = replace(found, interrupted=True)
    return found.poll(combined(found.every, results, found.missing), options)


def _run(options: Options, display: Display) -> Fuzz:
    return Fuzz(replace(options, effort=FUZZ), display)


def _judged(
    report: Report, options: Options, ids: Sequence[CaseId], deadline: float
) -> Iterator[Verdict]:
    """Judge a few cases on a backend as its run did, in new processes, until a deadline."""
    if not ids:
        return
    with Pool.start(options) as pool:
        hello = pool.hello(min(options.workers, len(ids)))
        vocabulary = report.generator.vocabulary or whole()
        pool.ask_all(JudgeBy(report.profile, vocabulary, options.skips))
        for judged in pool.answers(tasks_of(ids, hello.limits.programs), deadline):
            yield from judged.verdicts

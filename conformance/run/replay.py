"""Judges the cases of `.uop` files: repros, or any case with data and accepted results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from uop.conformance.backends.interpreter import CHECKS, EVERY_DTYPE, EVERY_OP
from uop.conformance.checks import COMMAND, OptionError, require_lines
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Prepared, Reference
from uop.conformance.judging.lowering import submission_of
from uop.conformance.judging.self_test import require_fit
from uop.conformance.judging.verdict import AllSets, CaseFailure, Status, Verdict, skipped
from uop.conformance.native import check_native
from uop.conformance.protocol import messages
from uop.conformance.protocol.types import Hello, Outcome, Outputs
from uop.conformance.report.model import Conclusion, Failure, Tried, conclusion_of, digest_of
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.own_cases import (
    AnyCase,
    FileJudge,
    files_of,
    read_cases,
    suite_case,
    why_undefined,
)
from uop.conformance.workers.sessions import known, started
from uop.conformance.workers.transport import Allowance, Session
from uop.spec.case import FileCase
from uop.spec.errors import LabelledError, UnsupportedError, UopError
from uop.spec.latitude import STRICT, Profile
from uop.spec.text.uop_file import parse_file


@dataclass(frozen=True, slots=True)
class Replayed:
    """A case of a file, and its verdict."""

    path: Path
    case: str
    verdict: Verdict


def replay(
    paths: Sequence[Path],
    backend: str,
    log: Path | None = None,
    edition: str = "",
    *,
    native: bool = False,
) -> list[Replayed]:
    """Judge every case of the files and folders on a backend, which runs in its own process.

    UnfitError where its adapter does not fit its library, NativeError for native code that is not
    allowed.
    """
    known(backend)
    require_lines(log, backend)
    cases = [(path, case) for path in files_of(paths) for case in read_cases(path, edition)]
    check_native((case for _, case in cases), native=native)
    with started(backend, log) as session:
        require_fit(session)
        verdicts = judge_files([case for _, case in cases], session)
    return [
        Replayed(path, case.id, verdict)
        for (path, case), verdict in zip(cases, verdicts, strict=True)
    ]


def conclusions(
    paths: Sequence[Path], backend: str, log: Path | None = None, deadline: float | None = None
) -> dict[Path, Conclusion]:
    """The verdict on each file until a deadline, by time.monotonic; one process runs all."""
    known(backend)
    require_lines(log, backend)
    found: dict[Path, Conclusion] = {}
    with started(backend, log) as session:
        for path in paths:
            if deadline is not None and time.monotonic() >= deadline:
                break
            found[path] = conclusion(judge_files(read_cases(path), session))
    return found


def passing(
    failures: Iterable[Failure], backend: str, log: Path | None, deadline: float | None
) -> Iterator[tuple[str, str]]:
    """Run the repros of failures alone, in one new process, until a deadline.

    Yields the signatures of those that pass, each with what now is the first element that was
    wrong. A repro that hangs is not run again.
    """
    with started(backend, log) as session:
        for failure in failures:
            if deadline is not None and time.monotonic() >= deadline:
                return
            if failure.kind != Symptom.HANG:
                judge, verdicts = _judged(parse_file(failure.text).cases, session)
                if all(verdict.status is Status.PASSED for verdict in verdicts):
                    yield failure.signature, judge.value_of(failure)


def tried(
    causes: Iterable[Failure],
    backend: str,
    profile: Profile,
    timeout: float | None = None,
) -> Iterator[Tried]:
    """Run the repros of causes that other backends have shown, in one new process.

    They are judged by the profile of this backend, not by that of their own. A text that this
    version cannot read is left out.
    """
    with started(backend, None, Allowance.within(timeout)) as session:
        for cause in causes:
            with suppress(UopError):
                *_, case = parse_file(cause.text).cases
                as_here = replace(case, profile=profile, accept={}, expect={})
                judge, (verdict,) = _judged([as_here], session)
                gives = verdict.reason or judge.value_of(cause)
                if verdict.failure is not None:
                    gives = shown_by(verdict.failure, cause)
                yield Tried(digest_of(cause.text), verdict.status, gives)


def shown_by(failure: CaseFailure, cause: Failure) -> str:
    """What a failure gives: the value where another one of the program is wrong, or a message."""
    for wrong, other in zip(failure.values[:1], cause.values, strict=False):
        if wrong.place == other.place:
            return wrong.got
    return failure.message.partition("\n")[0]


def requests(
    paths: Sequence[Path], backend: str, leave_out: Callable[[str], None], edition: str = ""
) -> Iterator[str]:
    """The request lines that make a worker run the cases of files, hello first.

    The programs fit the hello of `backend`; without a backend they are not lowered. `leave_out`
    gets a message for each case that the worker does not take. UnsupportedError where no case is
    left.
    """
    hello = _hello_of(backend) if backend else Hello("any", "", "", EVERY_OP, EVERY_DTYPE)
    yield messages.hello_request().line.decode()
    cases = [(path, case) for path in files_of(paths) for case in read_cases(path, edition)]
    left_out = number_of_request = 0
    for number, (path, case) in enumerate(cases):
        submission = submission_of(_suite_case(number, case), replace(hello, offers=CHECKS))
        if submission.reason:
            left_out += 1
            leave_out(f"left out: {path} {case.id or number}: {submission.reason}")
            continue
        for program in submission.programs:
            number_of_request += 1
            make = messages.run_request if program.batches else messages.check_request
            yield make(number_of_request, program, hello).line.decode()
    if left_out == len(cases):
        raise UnsupportedError("no case is left")


def _hello_of(backend: str) -> Hello:
    """The hello of a command. OptionError for any other backend."""
    if not backend.startswith(COMMAND):
        raise OptionError(f"--emit-requests: expected {COMMAND}PROGRAM or no backend")
    with started(backend) as session:
        return session.hello


def judge_files(cases: Sequence[FileCase], session: Session) -> list[Verdict]:
    """One verdict per case: by the results that the file states, else by the spec."""
    return _judged(cases, session)[1]


def _judged(cases: Sequence[FileCase], session: Session) -> tuple[_TellingJudge, list[Verdict]]:
    """The verdicts, and the judge that has seen the results."""
    suite_cases = [_suite_case(number, case) for number, case in enumerate(cases)]
    judge = _TellingJudge(session, STRICT, dict(zip(suite_cases, cases, strict=True)))
    defined = [suite for suite, case in zip(suite_cases, cases, strict=True) if not case.undefined]
    verdicts = dict(zip(defined, judge.judge(defined), strict=True))
    return judge, [
        verdicts.get(suite) or skipped(suite, why_undefined(case))
        for suite, case in zip(suite_cases, cases, strict=True)
    ]


def conclusion(verdicts: Iterable[Verdict]) -> Conclusion:
    """The verdict on all cases together."""
    every = list(verdicts)
    failed = any(verdict.status.is_failure for verdict in every)
    unjudged = any(verdict.unjudged or verdict.by_data for verdict in every)
    passed = sum(verdict.status is Status.PASSED for verdict in every)
    return conclusion_of(failed, unjudged, passed)


class _TellingJudge(FileJudge):
    """Gives more details of cases that are not judged: a file has few cases. Keeps the result."""

    result: Outcome | None = None
    """The last result of the backend."""

    def value_of(self, failure: Failure) -> str:
        """What the first wrong element of a failure is in the last result; empty without one."""
        if not failure.values or not isinstance(self.result, Outputs):
            return ""
        return failure.values[0].value_in(self.result.batches[0])

    def _verdict_on(
        self, p: Prepared, expected: AllSets | Reference | UopError, outcome: Outcome
    ) -> Verdict:
        self.result = outcome
        return super()._verdict_on(p, expected, outcome)

    def not_judged(self, error: UopError) -> str:
        """The reason, with the value found and the line of the file."""
        message = super().not_judged(error)
        if isinstance(error, LabelledError):
            message += f"\n  found: {error.found}" * bool(error.found)
            message += f"\n  at: {error.where}" * bool(error.where)
        return message


def _suite_case(number: int, case: FileCase) -> AnyCase:
    level = "invalid" if case.root is None else "op"
    return suite_case(CaseId(level, "MIXED", "MIXED", "replay", number), case)

"""Finds a failure to report: a repro that is judged again, or a cause of a JSON report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from uop.conformance.checks import OptionError
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.native import check_native
from uop.conformance.report.format import read_report
from uop.conformance.report.model import BackendInfo, Failure
from uop.conformance.run.replay import judge_files
from uop.conformance.suite.case import MIXED, Case, CaseId
from uop.conformance.suite.own_cases import read_cases, suite_case
from uop.conformance.workers.sessions import known, started
from uop.spec.case import FileCase
from uop.spec.distribution import own_version
from uop.spec.nearest import did_you_mean
from uop.spec.text.uop_file import parse_file


@dataclass(frozen=True, slots=True)
class FailingCase:
    """A case that a backend fails, and how.

    `is_run_here` is false for a failure that a report states and nobody ran again.
    """

    case: FileCase
    path: str
    backend: str
    info: BackendInfo
    suite: str
    failure: CaseFailure | Failure
    is_run_here: bool

    @property
    def as_judged(self) -> Case:
        """The case as the suite judges it; it has a root."""
        made = suite_case(CaseId("op", MIXED, MIXED, "report", 0), self.case)
        assert isinstance(made, Case)
        return made

    @property
    def output(self) -> int:
        """The number of the first wrong output."""
        return self._at[0] if self._at else 0

    @property
    def place(self) -> tuple[int, ...] | None:
        """The indices of the first wrong element; None if no element is known."""
        return self._at[1] if self._at else None

    @property
    def _at(self) -> tuple[int, tuple[int, ...]] | None:
        return self.failure.values[0].at if self.failure.values else None


def of_file(path: Path, backend: str, *, native: bool = False) -> FailingCase:
    """Judge a repro on a backend. OptionError if it does not fail, or the file has other cases;
    NativeError for native code that is not allowed.
    """
    if not path.exists() or path.is_dir():
        raise OptionError(f"no file {path}; a cause of a report needs --from REPORT.json")
    cases = read_cases(path)
    if len(cases) != 1:
        raise OptionError(f"{path}: expected the one case of a repro, found {len(cases)}")
    check_native(cases, native=native)
    return _judged(cases[0], str(path), backend)


def of_report(report_path: Path, cause: str, backend: str, *, native: bool = False) -> FailingCase:
    """A cause of a report, by its signature, its repro or the id of a case.

    It is judged again if a backend is named: NativeError then for native code that is not allowed.
    """
    report = read_report(report_path)
    by_name: dict[str, Failure] = {}
    for failure in report.failures:
        for name in (failure.signature, failure.repro, failure.id, *failure.cases):
            by_name.setdefault(name, failure)
    if cause not in by_name:
        expected = "expected a signature, a repro or the id of a failed case"
        raise OptionError(
            f"{report_path}: {expected}; found {cause!r}{did_you_mean(cause, by_name)}"
        )
    failure = by_name[cause]
    *_, case = parse_file(failure.text, failure.repro).cases
    if backend:
        check_native([case], native=native)
        return _judged(case, failure.repro, backend)
    named, info = report.options.backend, report.backend
    return FailingCase(case, failure.repro, named, info, report.suite, failure, is_run_here=False)


def _judged(case: FileCase, path: str, backend: str) -> FailingCase:
    known(backend)
    with started(backend) as session:
        (verdict,) = judge_files([case], session)
        info = BackendInfo.of(session.hello)
    if verdict.failure is None:
        why = f" ({verdict.reason})" if verdict.reason else ""
        raise OptionError(f"nothing to report: {path} is {verdict.status}{why} on {backend}")
    return FailingCase(case, path, backend, info, own_version(), verdict.failure, is_run_here=True)

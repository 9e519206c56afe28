"""Judges the cases of `.uop` files again: repros, or any case with data and what it may give."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uop.conformance import messages
from uop.conformance.accepted_text import accepted_of, output_keys
from uop.conformance.backends.interpreter import CHECKS, EVERY_DTYPE, EVERY_OP
from uop.conformance.case import Batch, CaseId, InvalidCase
from uop.conformance.case import Case as SuiteCase
from uop.conformance.command import Command
from uop.conformance.delivery import deliver
from uop.conformance.judge import Judge
from uop.conformance.options import OptionError, require_lines
from uop.conformance.protocol import Hello
from uop.conformance.report import Conclusion
from uop.conformance.sessions import COMMAND, known, start
from uop.conformance.storage import from_literal
from uop.conformance.verdict import Status, Verdict, skipped
from uop.conformance.workers import Session
from uop.interpreter.accept import accept
from uop.interpreter.accepted.order import is_nan
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.inputs import bind_inputs
from uop.interpreter.values import Array, Value
from uop.spec.case import Case, outputs
from uop.spec.errors import InvalidError, LabelledError, UnsupportedError, UopError
from uop.spec.latitude import STRICT, Profile
from uop.spec.uop import UOp
from uop.spec.uop_file import read_file

SUFFIX = ".uop"
AnyCase = SuiteCase | InvalidCase


@dataclass(frozen=True, slots=True)
class Replayed:
    """One case of a file and what became of it."""

    path: Path
    case: str
    verdict: Verdict


def replay(paths: Sequence[Path], backend: str, log: Path | None = None) -> list[Replayed]:
    """Judge every case of the files and folders on a backend, in a process of its own."""
    known(backend)
    require_lines(log, backend)
    cases = [(path, case) for path in files_of(paths) for case in _read(path)]
    with tempfile.TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        worker = start(backend, Path(folder), log=log)
        try:
            verdicts = judge_files([case for _, case in cases], worker)
        finally:
            worker.close()
    return [
        Replayed(path, case.id, verdict)
        for (path, case), verdict in zip(cases, verdicts, strict=True)
    ]


def conclusions(
    paths: Sequence[Path], backend: str, log: Path | None = None
) -> dict[Path, Conclusion]:
    """The verdict on each file by itself, all in one process."""
    found: dict[Path, list[Replayed]] = {path: [] for path in paths}
    for one in replay(paths, backend, log):
        found[one.path].append(one)
    return {path: conclusion(replayed) for path, replayed in found.items()}


def requests(
    paths: Sequence[Path], backend: str, leave_out: Callable[[str], None]
) -> Iterator[str]:
    """The lines on stdin of a worker that is to run the cases of files, hello first.

    A command is asked what it takes; without one the programs are sent as they are. Of a case that
    it does not take it is told which and why; UnsupportedError where that is so of all.
    """
    hello = _hello_of(backend) if backend else Hello("any", "", "", EVERY_OP, EVERY_DTYPE)
    yield messages.line(messages.hello_request()).decode()
    cases = [(path, case) for path in files_of(paths) for case in _read(path)]
    left_out = 0
    for number, (path, case) in enumerate(cases):
        delivery = deliver(_suite_case(number, case), replace(hello, offers=CHECKS))
        if delivery.reason:
            left_out += 1
            leave_out(f"left out: {path} {case.id or number}: {delivery.reason}")
            continue
        program = delivery.program
        make = messages.run_request if program.batches else messages.check_request
        yield messages.line(make(number + 1, program, hello)).decode()
    if left_out == len(cases):
        raise UnsupportedError("no case is left")


def _hello_of(backend: str) -> Hello:
    """What a command says it takes; its arrays are to stand in the lines."""
    if not backend.startswith(COMMAND):
        raise OptionError(f"--emit-requests: expected {COMMAND}PROGRAM or no backend")
    with tempfile.TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder:
        worker = Command(backend, Path(folder))
        worker.close()
    return worker.hello


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files that are named, and those below the folders that are named."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(path.rglob(f"*{SUFFIX}"))
        elif path.is_file():
            found.append(path)
        else:
            raise OptionError(f"no file or folder {path}, and no backend of that name")
    if not found:
        raise OptionError(f"no {SUFFIX} file in {', '.join(map(str, paths))}")
    return found


def judge_files(cases: Sequence[Case], session: Session) -> list[Verdict]:
    """One verdict per case: by what the file accepts or expects, else by the spec."""
    given = [_suite_case(number, case) for number, case in enumerate(cases)]
    judge = _FileJudge(session, dict(zip(given, cases, strict=True)))
    asked = [suite for suite, case in zip(given, cases, strict=True) if not case.undefined]
    verdicts = dict(zip(asked, judge.judge(asked), strict=True))
    return [
        verdicts.get(suite)
        or skipped(suite, f"a program without meaning {case.undefined_label}".rstrip())
        for suite, case in zip(given, cases, strict=True)
    ]


def conclusion(replayed: Iterable[Replayed]) -> Conclusion:
    """The verdict on all cases together."""
    statuses = [r.verdict.status for r in replayed]
    if Status.FAILED in statuses or Status.CRASHED in statuses:
        return Conclusion.DOES_NOT
    return Conclusion.CONFORMS if Status.PASSED in statuses else Conclusion.INCONCLUSIVE


class _FileJudge(Judge):
    """Takes what is accepted from the file, where it says so."""

    def __init__(self, session: Session, files: Mapping[AnyCase, Case]) -> None:
        super().__init__(session, STRICT)
        self.files = files

    def demanded(self, case: AnyCase) -> Profile:
        return self.files[case].profile

    def accepted(self, case: AnyCase) -> list[tuple[Accepted, ...]]:
        if isinstance(case, InvalidCase):
            return []
        file = self.files[case]
        try:
            return [promised(case, file)]
        except LabelledError as error:
            error.where = file.place_of(error.subjects)
            raise

    def not_judged(self, error: UopError) -> str:
        """Why, with what was found and the line of the file."""
        said = super().not_judged(error)
        if isinstance(error, LabelledError):
            said += f"\n  found: {error.found}" * bool(error.found)
            said += f"\n  at: {error.where}" * bool(error.where)
        return said


def promised(case: SuiteCase, file: Case) -> tuple[Accepted, ...]:
    """What each output may be: by the file, else by the spec under the profile of the file."""
    inputs = case.batches[0].inputs
    nodes, keys = outputs(case.root), output_keys(case.root, inputs)
    found: dict[int, Accepted] = {}
    for key in keys:
        if key in file.accept:
            found[key] = accepted_of(nodes[key], file.accept[key])
        elif key in file.expect:
            found[key] = _expected(from_literal(file.expect[key]), nodes[key])
    if len(found) < len(keys):
        found = dict(zip(keys, accept(case.root, inputs, file.profile), strict=True)) | found
    return tuple(found[key] for key in keys)


def _expected(array: Array, u: UOp) -> Accepted:
    """These bits, but any NaN for a NaN."""
    return Accepted(u.dtype, Value(array, free_nan=is_nan(array) if u.dtype.is_float else None))


def _suite_case(number: int, case: Case) -> AnyCase:
    if case.root is None:
        id = CaseId("invalid", "MIXED", "MIXED", "replay", number)
        return InvalidCase(id, case.invalid or "", case.text)
    inputs = {slot: from_literal(a) for slot, a in case.inputs.items()}
    return SuiteCase(CaseId("op", "MIXED", "MIXED", "replay", number), case.root, (Batch(inputs),))


def _read(path: Path) -> list[Case]:
    """The cases of a file; an input that does not fit is told with the name of the file."""
    cases = list(read_file(path).cases)
    for case in cases:
        try:
            if case.root is not None:
                bind_inputs(case.root, {s: from_literal(a) for s, a in case.inputs.items()})
        except InvalidError as error:
            place = case.place_of(error.subjects)
            error.where = f"{place}, case {case.id}" if case.id else place
            raise
    return cases

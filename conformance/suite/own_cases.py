"""Read cases that a user writes in `.uop` files; they are judged like those of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from uop.conformance.backends import names
from uop.conformance.checks import OptionError
from uop.conformance.judging import storage
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import AllSets, CaseFailure
from uop.conformance.report.model import Failure
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.shrink.writing import unshrunk
from uop.conformance.suite.case import MIXED, OWN, Batch, Case, CaseId, InvalidCase, NoSuchCaseError
from uop.conformance.suite.levels.written import inputs_of, with_sizes
from uop.conformance.workers.transport import Session
from uop.interpreter.accept import accept
from uop.interpreter.accepted.order import is_nan
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.inputs import bind_inputs, with_numbers
from uop.interpreter.values import Value
from uop.spec.case import FileCase, UopFile, outputs
from uop.spec.errors import InvalidError, LabelledError
from uop.spec.latitude import STRICT, Profile
from uop.spec.nearest import did_you_mean
from uop.spec.text import uop_file

SUFFIX = ".uop"
ONLY = "case"
"""The name of a case that is alone in its file and has none."""
AnyCase = Case | InvalidCase
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class OwnCases:
    """The cases of the files of a folder by their ids, `cases/FILE/CASE`."""

    files: Mapping[str, FileCase] = field(default_factory=dict)
    made: Mapping[str, AnyCase] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path | None, edition: str = "") -> OwnCases:
        """Read the cases of a folder in the words of an edition, none for None.

        Raises OptionError where it has none, and the errors of `read_cases` for a wrong file.
        """
        if folder is None:
            return cls()
        if not folder.exists():
            raise OptionError(f"--cases: no folder {folder}")
        if not (folder.is_dir() or folder.is_file()):
            raise OptionError(f"--cases: expected a folder, found {folder}, which can be read once")
        return cls.of(
            (path.relative_to(folder).as_posix() if path != folder else path.name, cases)
            for path in files_of([folder])
            for cases in [read_cases(path, edition)]
        )

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> OwnCases:
        """Take the texts of files of one case, by their names; each is parsed when it is needed."""
        names = {str(_id(name, "")): name for name in texts}

        def file(id: str) -> FileCase:
            return uop_file.parse_file(texts[names[id]], names[id]).cases[0]

        files = Later(names, file)
        return cls(files, Later(names, lambda id: suite_case(CaseId.parse(id), files[id])))

    @classmethod
    def of(cls, cases_of_files: Iterable[tuple[str, Iterable[FileCase]]]) -> OwnCases:
        """Take the cases of files, with the names of these."""
        files: dict[str, FileCase] = {}
        for name, cases in cases_of_files:
            for case in cases:
                files[str(_id(name, case.id))] = case
        made = {id: suite_case(CaseId.parse(id), case) for id, case in files.items()}
        return cls(files, made)

    @property
    def ids(self) -> list[CaseId]:
        return [CaseId.parse(id) for id in self.files]

    @property
    def by_case(self) -> dict[AnyCase, FileCase]:
        return {self.made[id]: file for id, file in self.files.items()}

    def find(self, id: str) -> AnyCase | None:
        """Return the case of an id, None for one of the suite.

        Raises NoSuchCaseError if the files have no such case.
        """
        if CaseId.parse(id).level == OWN and id not in self.made:
            near = did_you_mean(id, self.made)
            raise NoSuchCaseError(f"no case {id!r} in the files of --cases{near}")
        return self.made.get(id)

    def profile(self, id: str, profile: Profile) -> Profile:
        """Return the profile that a case states, else the one passed."""
        return profile_of(self.files.get(id), profile)

    def stated(self, id: str, profile: Profile) -> tuple[Accepted, ...] | None:
        """Return the accepted results that the file states; None where the spec alone decides."""
        file, case = self.files.get(id), self.made.get(id)
        if file is None or not isinstance(case, Case) or not (file.accept or file.expect):
            return None
        return promised(case, replace(file, profile=self.profile(id, profile)))

    def meaningless(self, id: str) -> str:
        """Return why a case without meaning is not judged; empty for other cases."""
        return why_undefined(self.files[id]) if id in self.files else ""

    def find_cause(self, judge: Judge, failing: Failing, causes: Sequence[Failure]) -> Failure:
        """Shrink a failure, unless the file itself states what is accepted."""
        file = self.files.get(str(failing.case.id))
        if file is None or _is_judged_by_the_spec(file):
            return find_cause(judge, failing, causes)
        return self.unshrunk(failing.case, failing.failure, judge.profile)

    def unshrunk(self, case: AnyCase, failure: CaseFailure, profile: Profile) -> Failure:
        """Record a failure without shrinking it."""
        file = self.files.get(str(case.id))
        if file is None or isinstance(case, InvalidCase) or _is_judged_by_the_spec(file):
            return unshrunk(case, failure, profile)
        text = uop_file.print_file(UopFile((replace(file, comment=failure.message),)))
        spec = unshrunk(case, failure, file.profile)
        return replace(spec, text=text)


class Later(Mapping[str, T]):
    """A mapping whose values are made when they are first asked for."""

    def __init__(self, keys: Iterable[str], make: Callable[[str], T]) -> None:
        self._keys, self._made = dict.fromkeys(keys), cache(make)

    def __getitem__(self, key: str) -> T:
        if key not in self._keys:
            raise KeyError(key)
        return self._made(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class FileJudge(Judge):
    """Judges a case by the accepted results that its file states."""

    def __init__(
        self, session: Session, profile: Profile, files: Mapping[AnyCase, FileCase]
    ) -> None:
        super().__init__(session, profile)
        self.files = files

    def demanded(self, case: AnyCase) -> Profile:
        """Return the profile of a case: its own, where it states one."""
        return profile_of(self.files.get(case), self.profile)

    def accepted(self, case: AnyCase) -> AllSets:
        file = self.files.get(case)
        if file is None or isinstance(case, InvalidCase):
            return super().accepted(case)
        try:
            return [promised(case, replace(file, profile=self.demanded(case)))]
        except LabelledError as error:
            error.where = file.place_of(error.subjects)
            raise


def _id(file: str, case: str | None) -> CaseId:
    return CaseId(OWN, file, MIXED, f"{file}/{case or ONLY}", 0)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files that are named, and the regular ones below the folders that are named.

    One that is named may be a pipe; in a folder a pipe would be read by mistake.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(found for found in path.rglob(f"*{SUFFIX}") if found.is_file())
        elif path.exists():
            files.append(path)
        else:
            near = did_you_mean(str(path), names())
            raise OptionError(f"no file or folder {path}, and no backend of that name{near}")
    if not files:
        raise OptionError(f"no {SUFFIX} file in {', '.join(map(str, paths))}")
    return files


def read_cases(path: Path, edition: str = "") -> list[FileCase]:
    """Return the cases of a file in the words of an edition; errors of inputs name the file.

    Raises MalformedError for what is no file of cases, OptionError where it cannot be read.
    """
    try:
        return _fitting(uop_file.read_file(path, edition))
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from None


def cases_of(text: str, path: str) -> list[FileCase]:
    """Return the cases of the text of a file; raises the errors of `read_cases`."""
    return _fitting(uop_file.parse_file(text, path))


def _fitting(file: UopFile) -> list[FileCase]:
    """Return the cases of a file. Raises InvalidError where inputs do not fit their program."""
    for case in file.cases:
        try:
            if case.root is not None:
                bind_inputs(*with_numbers(case.root, inputs_of(case)))
        except InvalidError as error:
            place = case.place_of(error.subjects)
            error.where = f"{place}, case {case.id}" if case.id else place
            raise
    return list(file.cases)


def suite_case(id: CaseId, case: FileCase) -> AnyCase:
    """Return a case of a file as a case to judge; its variables are bound."""
    if case.root is None:
        return InvalidCase(id, case.invalid or "", case.text)
    sized = with_sizes(case)
    assert sized.root is not None
    return Case(id, sized.root, (Batch(inputs_of(sized)),))


def profile_of(file: FileCase | None, otherwise: Profile) -> Profile:
    """Return the profile that a file states, or else `otherwise`."""
    return otherwise if file is None or file.profile == STRICT else file.profile


def why_undefined(case: FileCase) -> str:
    """Return why a case that its file calls meaningless is not judged."""
    return f"a program without meaning {case.undefined_label}".rstrip() if case.undefined else ""


def promised(case: Case, file: FileCase) -> tuple[Accepted, ...]:
    """Return the accepted results of each output, by the file or else by the spec.

    The spec is applied under the profile of the file.
    """
    inputs = case.batches[0].inputs
    nodes, keys = outputs(case.root), storage.output_keys(case.root, inputs)
    accepted: dict[int, Accepted] = {}
    for key in keys:
        if key in file.accept:
            accepted[key] = storage.accepted_of(nodes[key], file.accept[key])
        elif key in file.expect:
            # Exactly these bits are accepted, but any NaN for a NaN.
            array, dtype = storage.from_literal(file.expect[key]), nodes[key].dtype
            value = Value(array, free_nan=is_nan(array) if dtype.is_float else None)
            accepted[key] = Accepted(dtype, value)
    if len(accepted) < len(keys):
        by_spec = accept(case.root, inputs, file.profile)
        accepted = dict(zip(keys, by_spec, strict=True)) | accepted
    return tuple(accepted[key] for key in keys)


def _is_judged_by_the_spec(file: FileCase) -> bool:
    return not (file.accept or file.expect) and file.profile == STRICT

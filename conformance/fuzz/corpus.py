"""A corpus: a folder of programs that reached something new, each named by the sha256 of its text.

A file holds a program with its inputs, so that it stays the same program when the generator
changes. Runs that write at the same time write the same bytes under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import heapify, heappop, heappush
from pathlib import Path

from uop.conformance.checks import OptionError
from uop.conformance.fuzz.reached import is_native, points_of
from uop.conformance.protocol.untrusted import in_one_line, sanitized
from uop.conformance.report.files import write_file
from uop.conformance.run.tasks import Reaching
from uop.conformance.suite.case import MIXED, OWN, Case, CaseId
from uop.conformance.suite.own_cases import SUFFIX, read_cases, suite_case
from uop.spec.case import FileCase
from uop.spec.errors import UopError

NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}")
MOST_BYTES = 1 << 20
"""The largest file of a corpus."""


class NotOfCorpusError(UopError):
    """Says why a file in the folder of a corpus is none of its programs."""


@dataclass(slots=True, eq=False)
class Corpus:
    """The programs of a folder, and what they reach."""

    folder: Path
    programs: dict[str, Reaching] = field(default_factory=dict)
    """The programs by the names of their files."""
    cases: dict[str, FileCase] = field(default_factory=dict)
    """Those that were read, as cases of files."""
    left_alone: list[str] = field(default_factory=list)
    """A line for each other file: its path and the reason."""
    points: set[str] = field(default_factory=set)
    """What the programs reach."""
    added: int = 0
    problem: str = ""
    """Why a program could not be written; none is written after it."""

    @classmethod
    def read(cls, folder: Path) -> Corpus:
        """Read a folder; a missing one is empty. OptionError where it cannot be read."""
        corpus = cls(folder)
        try:
            paths = sorted(folder.iterdir()) if folder.exists() else []
        except OSError as error:
            raise OptionError(f"cannot read the corpus {folder}: {error.strerror}") from None
        # A file that is being written has a name with a dot.
        for path in (path for path in paths if not path.name.startswith(".")):
            try:
                text, case = _text(path), file_case_of(path)
                corpus.keep(path.name, Reaching(text, points_of(_case(path.name, case))))
                corpus.cases[path.name] = case
            except (OSError, UopError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                corpus.left_alone.append(in_one_line(sanitized(f"{path}: {reason}")))
        return corpus

    def keep(self, name: str, program: Reaching) -> None:
        self.programs[name] = program
        self.points |= program.points

    def add(self, program: Reaching) -> None:
        """Write a program that reaches something new; where that fails, set the problem."""
        name = name_of(program.text)
        if program.points <= self.points or len(program.text.encode()) > MOST_BYTES:
            return
        if name not in self.programs:
            self.problem = self.problem or write_file(self.folder / name, program.text)
            self.added += not self.problem
        self.keep(name, program)


def name_of(text: str) -> str:
    """The name of the file of a program."""
    return sha256(text.encode()).hexdigest() + SUFFIX


def merge(folders: Iterable[Path], out: Path) -> Corpus:
    """Write the programs of all folders to one; returns that corpus.

    OptionError where a folder cannot be read, or the new one not written.
    """
    merged = Corpus.read(out)
    for corpus in map(Corpus.read, folders):
        merged.left_alone += corpus.left_alone
        for name, program in corpus.programs.items():
            if name in merged.programs:
                continue
            if problem := write_file(out / name, program.text):
                raise OptionError(problem)
            merged.keep(name, program)
            merged.added += 1
    return merged


def minimize(corpus: Corpus, fired: Callable[[Case], frozenset[str]]) -> int:
    """Remove the programs of a corpus that the others make redundant; returns how many.

    `fired` says which rules of a backend a program fires. OptionError where a file cannot be
    removed.
    """
    reach = {
        name: program.points | fired(_case(name, file_case_of(corpus.folder / name)))
        for name, program in corpus.programs.items()
    }
    redundant = reach.keys() - cover(reach)
    for name in redundant:
        try:
            (corpus.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise OptionError(f"cannot remove {corpus.folder / name}: {error.strerror}") from None
    return len(redundant)


def cover(reach: Mapping[str, frozenset[str]]) -> set[str]:
    """Names that together reach all points: in turn the one that reaches most of the rest."""
    left, chosen = set[str]().union(*reach.values()), set[str]()
    # What a name gains becomes less only: the first of the heap is the best once it is up to date.
    heap = [(-len(points), name) for name, points in reach.items()]
    heapify(heap)
    while left:
        expected, name = heappop(heap)
        gain = -len(reach[name] & left)
        if gain == expected:
            chosen.add(name)
            left -= reach[name]
        else:
            heappush(heap, (gain, name))
    return chosen


def file_case_of(path: Path) -> FileCase:
    """The case of a file. UopError where it is none that a corpus may have, OSError too."""
    case, *more = read_cases(path)
    if more or case.root is None:
        raise NotOfCorpusError("expected one program")
    if is_native(case.root):
        raise NotOfCorpusError(
            "it has source text or machine code, which a device runs as it stands; "
            f"to run it: uop replay {path}"
        )
    return case


def _case(name: str, file: FileCase) -> Case:
    made = suite_case(CaseId(OWN, name, MIXED, name, 0), file)
    assert isinstance(made, Case)
    return made


def _text(path: Path) -> str:
    if NAME.fullmatch(path.name) is None or not path.is_file():
        raise NotOfCorpusError(f"no program of a corpus: expected a file SHA256{SUFFIX}")
    if path.stat().st_size > MOST_BYTES:
        raise NotOfCorpusError(f"expected at most {MOST_BYTES} bytes")
    data = path.read_bytes()
    if sha256(data).hexdigest() != path.stem:
        raise NotOfCorpusError("damaged: its name is not the sha256 of its text")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotOfCorpusError("expected UTF-8 text") from None

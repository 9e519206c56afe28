"""A corpus: programs that reached something new, in a folder, each named by the sha256 of its text.

The folder may be a URL. A file holds a program with its inputs, so that it stays the same program
when the generator changes. Runs that write at the same time write the same bytes under the same
name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import heapify, heappop, heappush
from pathlib import Path

from uop.conformance.checks import OptionError
from uop.conformance.fuzz.folders import Folder, folder_at
from uop.conformance.fuzz.reached import points_of
from uop.conformance.native import check_native
from uop.conformance.protocol.untrusted import in_one_line, sanitized
from uop.conformance.run.tasks import Reaching
from uop.conformance.suite.case import MIXED, OWN, Case, CaseId
from uop.conformance.suite.own_cases import SUFFIX, cases_of, suite_case
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

    folder: Folder | None
    """None in a process of a cluster, where nothing is written."""
    programs: dict[str, Reaching] = field(default_factory=dict)
    """The programs by the names of their files."""
    cases: dict[str, FileCase] = field(default_factory=dict)
    """Those that were read, as cases of files."""
    left_alone: list[str] = field(default_factory=list)
    """A line for each other file: its path and the reason."""
    points: set[str] = field(default_factory=set)
    """What the programs reach."""
    added: int = 0
    unwritten: int = 0

    @classmethod
    def read(cls, place: str | Path, *, native: bool = False) -> Corpus:
        """Read a folder or URL; a missing one is empty. OptionError where it cannot be read.

        A program with native code is left alone, unless `native` allows it.
        """
        folder = folder_at(place, "--corpus")
        corpus = cls(folder)
        # A file that is being written has a name with a dot.
        every = [name for name in folder.names() if not name.startswith(".")]
        names = [name for name in every if NAME.fullmatch(name)]
        for name in every:
            if NAME.fullmatch(name) is None:
                corpus._leave(name, f"no program of a corpus: expected a file SHA256{SUFFIX}")
        for name, found in zip(names, folder.contents(names, MOST_BYTES + 1), strict=True):
            try:
                text = _text(name, found)
                case = file_case_of(text, f"{folder}/{name}")
                check_native([case], native=native)
                corpus.keep(name, Reaching(text, points_of(_case(name, case))))
                corpus.cases[name] = case
            except UopError as error:
                corpus._leave(name, str(error))
        return corpus

    @classmethod
    def sent(cls, texts: Mapping[str, str], points: Iterable[str]) -> Corpus:
        """Programs that another process has read, and what is reached there."""
        cases = {name: file_case_of(text, name) for name, text in texts.items()}
        programs = {name: Reaching(text, frozenset()) for name, text in texts.items()}
        return cls(None, programs, cases, points=set(points))

    @property
    def ids(self) -> list[CaseId]:
        """The ids of the programs as cases of files."""
        return [_id(name) for name in self.programs]

    def keep(self, name: str, program: Reaching) -> None:
        self.programs[name] = program
        self.points |= program.points

    def add(self, program: Reaching) -> frozenset[str]:
        """Keep a program that reaches something new, and write it; returns what is new."""
        name, new = name_of(program.text), program.points - self.points
        if not new or len(program.text.encode()) > MOST_BYTES:
            return frozenset()
        if name not in self.programs and self.folder is not None:
            is_written = self.folder.write(name, program.text)
            self.added += is_written
            self.unwritten += not is_written
        self.keep(name, program)
        return new

    def problems(self) -> list[str]:
        """Wait until all programs are written; returns error messages."""
        return [] if self.folder is None else self.folder.problems()

    def _leave(self, name: str, reason: str) -> None:
        self.left_alone.append(in_one_line(sanitized(f"{self.folder}/{name}: {reason}")))


def name_of(text: str) -> str:
    """The name of the file of a program."""
    return sha256(text.encode()).hexdigest() + SUFFIX


def merge(places: Iterable[str | Path], out: str | Path, *, native: bool = False) -> Corpus:
    """Write the programs of all folders to one; returns that corpus.

    OptionError where a folder cannot be read, or the new one not written.
    """
    merged = Corpus.read(out, native=native)
    assert merged.folder is not None
    for corpus in (Corpus.read(place, native=native) for place in places):
        merged.left_alone += corpus.left_alone
        for name, program in corpus.programs.items():
            if name not in merged.programs:
                merged.folder.write(name, program.text)
                merged.keep(name, program)
                merged.added += 1
    if problems := merged.problems():
        raise OptionError("\n".join(problems))
    return merged


def minimize(corpus: Corpus, fired: Callable[[Case], frozenset[str]]) -> int:
    """Remove the programs of a corpus that the others make redundant; returns how many.

    `fired` says which rules of a backend a program fires. OptionError where a file cannot be
    removed.
    """
    assert corpus.folder is not None
    reach = {
        name: program.points | fired(_case(name, file_case_of(program.text, name)))
        for name, program in corpus.programs.items()
    }
    redundant = reach.keys() - cover(reach)
    for name in redundant:
        corpus.folder.remove(name)
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


def file_case_of(text: str, path: str) -> FileCase:
    """The case of a file. UopError where it is none that a corpus may have."""
    case, *more = cases_of(text, path)
    if more or case.root is None:
        raise NotOfCorpusError("expected one program")
    return case


def _id(name: str) -> CaseId:
    return CaseId(OWN, name, MIXED, name, 0)


def _case(name: str, file: FileCase) -> Case:
    made = suite_case(_id(name), file)
    assert isinstance(made, Case)
    return made


def _text(name: str, found: bytes | str) -> str:
    if isinstance(found, str):
        raise NotOfCorpusError(found)
    if len(found) > MOST_BYTES:
        raise NotOfCorpusError(f"expected at most {MOST_BYTES} bytes")
    if sha256(found).hexdigest() + SUFFIX != name:
        raise NotOfCorpusError("damaged: its name is not the sha256 of its text")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise NotOfCorpusError("expected UTF-8 text") from None

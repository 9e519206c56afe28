"""The data model of a report, which all output formats read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256

from uop.conformance.backends.versions import is_tested
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.elements import Element
from uop.conformance.judging.verdict import CaseFailure, Status
from uop.conformance.profile.card import Observation
from uop.conformance.protocol.types import Hello
from uop.conformance.report.options import Origin, ReportedOptions
from uop.conformance.suite.case import MIXED, OWN, OWN_ID
from uop.conformance.suite.vocabulary import Vocabulary

NAMES = re.compile(r"\b[A-Z][A-Z0-9]+\b|\b(first|second|third) ")
SPECIAL = "its values are special, here "
CALLED = "a FUNCTION is called"
PROMOTED = "integers of 8 and 16 bits were computed in 32 bits, as C promotes them"
SKIPPED = "skipped"
"""The state of a cause of `--skip-cause`."""
CellPlace = tuple[str, ...]
"""The level, op and dtype of a cell."""


class Conclusion(StrEnum):
    """The verdict of a run."""

    CONFORMS = "conforms"
    DOES_NOT = "does not conform"
    INCONCLUSIVE = "inconclusive"


ACCEPTED = "an accepted result"
PASSES_ANEW = "the repro passes alone in a new process: what ran before has a part in the failure"


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """The judged backend."""

    name: str
    version: str
    device: str
    variant: str = ""
    tested: tuple[str, ...] = ()
    """The versions that its adapter was tested with, as in its hello."""
    quick: str = ""
    """How it builds quick programs, as in its hello."""

    @classmethod
    def of(cls, hello: Hello) -> BackendInfo:
        tested = tuple(hello.tested)
        return cls(hello.name, hello.version, hello.device, hello.variant, tested, hello.quick)

    @property
    def untested(self) -> str:
        """That the adapter was tested with other versions only; empty where it was with this."""
        if not self.tested or is_tested(self.version, self.tested):
            return ""
        known = ", ".join(self.tested)
        return f"the adapter was not tested with {self.name} {self.version}, but with {known}"

    @property
    def identity(self) -> str:
        """The name of the backend in a file of known failures: `tinygrad:X86`."""
        return f"{self.name}:{self.variant}" if self.variant else self.name


@dataclass(frozen=True, slots=True)
class Generator:
    """The version and vocabulary of the case generator. Reports of version 1 do not have it."""

    version: int = 1
    vocabulary: Vocabulary | None = None
    """The vocabulary of the random programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The verdict and the totals of a run; `lost` says why the backend could not go on."""

    verdict: Conclusion
    interrupted: bool = False
    lost: str
    open_because: str
    """Why the run is inconclusive, else empty."""
    programs: int
    """The number of judged programs."""
    checks: int
    elements: int
    measured: int = 0
    """The elements whose accepted sets were computed; the two shares are of these."""
    constrained_share: float
    single_share: float
    passed: int
    failed: int
    skipped: int
    crashed: int
    known: int
    seconds: float = 0.0
    peak_bytes: int = 0
    """The peak memory of a backend process."""
    judge_bytes: int = 0
    """The most memory that a judging process held after a task."""
    judges_replaced: int = 0
    """How many judging processes were replaced as they held too much."""
    searching: float = 0.0
    """The part of `seconds` in which the run looked for causes."""
    again: int = 0
    """The number of programs that were judged again, alone and on more data."""
    untried: tuple[str, ...] = ()
    """Listed ops without a judged program, with the reasons."""
    missing: tuple[str, ...]
    """What lacks evidence for a verdict, with the reasons."""
    unfit: bool = False
    """Whether the adapter does not fit its library: `lost` says why, and nothing was judged."""
    unjudged: Mapping[str, int] = field(default_factory=dict)
    """By reason the number of programs that are not judged, through no fault of the backend."""
    by_data: Mapping[str, int] = field(default_factory=dict)
    """By the classes of values for which the backend refuses programs the number of these."""
    retried: int = 0
    """How often the backend was lost on programs of which none is lost alone."""
    liberties: Mapping[str, str] = field(default_factory=dict)
    """By knob, as `contract=true`, an example of each liberty that the backend was seen to take."""

    @property
    def wrong(self) -> int:
        """The number of programs that failed or crashed, without known failures."""
        return self.failed + self.crashed


@dataclass(frozen=True, slots=True)
class Largest:
    """The result with the largest error: its case, and the fields of `Element`."""

    ulp: float
    id: str
    place: str
    inputs: tuple[str, ...]
    got: str
    accepted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The totals of one level, op and dtype; `histogram` as in `elements.Errors`, or empty."""

    level: str
    op: str
    dtype: str
    programs: int
    elements: int
    measured: int = 0
    """As in `Summary`."""
    constrained_share: float
    failed: int
    known: int
    skipped_reason: str | None
    skipped: Mapping[str, int]
    """The number of skipped programs by reason."""
    max_ulp: float
    largest: Largest | None
    histogram: tuple[int, ...]

    @property
    def place(self) -> CellPlace:
        return self.level, self.op, self.dtype

    @property
    def state(self) -> str:
        """The most severe status of its programs."""
        if self.failed:
            return "failed"
        if self.known:
            return "known"
        return "passed" if self.programs else "skipped"


@dataclass(frozen=True, slots=True)
class When:
    """When a program fails. Its neighbours, which differ from it in one thing each, show it."""

    needs: tuple[str, ...] = ()
    """What it has and a neighbour that passes lacks, in words."""
    fails_on: tuple[str, ...] = ()
    """The dtypes in place of that of its first input on which it fails too."""
    otherwise_on: tuple[str, ...] = ()
    """Those on which it fails with another symptom."""
    passes_on: tuple[str, ...] = ()
    """Those on which it passes."""
    also: tuple[str, ...] = ()
    """The ops in place of its own with which it fails too."""
    neighbours: int = 0
    """How many neighbours were judged."""
    as_if: str = ""
    """What would give the wrong values, in words; empty where nothing known does."""

    @property
    def text(self) -> str:
        """The conditions and what they rest on; empty where no neighbour shows one."""
        as_if = [f"as if {self.as_if}"] * bool(self.as_if)
        said = [f"only if {' and '.join(self.needs)}"] * bool(self.needs)
        for words, names in (
            ("also on", self.fails_on), ("fails otherwise on", self.otherwise_on),
            ("passes on", self.passes_on), ("also with", self.also),
        ):  # fmt: skip
            said += [f"{words} {', '.join(names)}"] * bool(names)
        judged = f" ({counted(self.neighbours, 'neighbour')} judged)"
        return "; ".join([*as_if, *said]) + (judged if said else "")

    def is_like(self, other: When) -> bool:
        """Whether both need the same, whatever the op and operand.

        Of special values they share a class, or one needs none; the ends of a dtype are one class.
        """
        special = self._special, other._special
        shared = not all(special) or not special[0].isdisjoint(special[1])
        return self._general == other._general and shared

    @property
    def _general(self) -> list[str]:
        return [NAMES.sub("", need) for need in self.needs if not need.startswith(SPECIAL)]

    @property
    def _special(self) -> set[str]:
        special = (n.removeprefix(SPECIAL) for n in self.needs if n.startswith(SPECIAL))
        return {word for names in special for word in names.replace(",", "").split()}


@dataclass(frozen=True, slots=True)
class Failure:
    """One cause of failures: its first case, shrunk; `text` is the content of the file `repro`.

    `label` is the broken constraint or the symptom; failures of one cause share a `signature`.
    """

    id: str
    signature: str
    label: str
    level: str
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    message: str
    repro: str
    text: str = ""
    values: tuple[Element, ...] = ()
    cases: tuple[str, ...] = ()
    """The ids of the failing cases that it explains, its own first."""
    ordinary: bool = False
    """Whether it fails on ordinary values: no NaN, infinity, -0, subnormal, or end of a range."""
    composed: str = ""
    """That the adapter composes the op of a repro of one op, and of which ops; else empty."""
    repeats: bool = True
    """Whether the repro fails alone in a new process too, as far as that was tried."""
    anew: str = ""
    """Where it does not, its first wrong element there; empty where none was wrong."""
    after: tuple[str, ...] = ()
    """Then the cases that must run before it so that it fails, as the repro has them."""
    when: When = field(default_factory=When)
    same_as: str = ""
    """The signature of a worse cause that shows the same fault; empty where there is none."""

    def tried(self, anew: Mapping[str, str]) -> Failure:
        """The same after a trial in a new process: by signatures of repros that pass what came."""
        if self.signature not in anew:
            return self
        # What its neighbours gave depends on what ran before them.
        return replace(self, repeats=False, anew=anew[self.signature], when=When())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else is known of it, a sentence each."""
        passes = [] if self.repeats else [PASSES_ANEW, self.flaky.text]
        if self.after:
            passes = [f"it fails after {', '.join(self.after)}; the repro runs all of them"]
        return tuple(filter(None, (self.composed, *passes)))

    @property
    def flaky(self) -> Flaky:
        """What came in the run and in a new process, where the repro passes."""
        if not self.anew:
            return Flaky(self.signature, self.message.partition("\n")[0], ACCEPTED)
        first = self.values[0]
        then, now = (f"{first.place} is {value}" for value in (first.got, self.anew))
        return Flaky(self.signature, then, now)

    @property
    def details(self) -> str:
        """Its message and the remarks."""
        return "\n".join((self.message, *self.remarks))

    @property
    def kind(self) -> str:
        """The kind of its symptom, the first word of the signature: `result`, `crash`."""
        return self.signature.partition(" ")[0]

    @property
    def rank(self) -> tuple[int, int, int]:
        """What orders causes, the worst first: wrong results on ordinary values, then crashes and
        refusals, then wrong results on special values, then inaccurate ones.

        Among equals the smaller program is first, then that which explains more cells.
        """
        is_result = self.kind == Symptom.VALUE.kind
        is_wide = is_result and self.label != Symptom.ULP
        severity = 0 if is_wide and self.ordinary else 2 if is_wide else 3 if is_result else 1
        return severity, self.text.count("\n%"), -len(self.cells)

    @property
    def cells(self) -> tuple[CellPlace, ...]:
        """The cells of the cases that it explains."""
        return tuple(dict.fromkeys(map(cell_of, self.cases or (self.id,))))

    @property
    def place(self) -> CellPlace:
        """The cell of its case."""
        return cell_of(self.id)


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A line of the file of known failures: the cases that it covers, and its state.

    The state is `known`, `fixed`, `expired`, or `undecided` if its program is not judged. `stale`
    says what to do if the state is not `known`; `note` is an optional remark. A cause that the run
    skips has the state SKIPPED, and no program.
    """

    key: str
    reason: str
    link: str
    expires: str
    repro: str
    cases: tuple[str, ...]
    state: str
    stale: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class KindSums:
    """A kind of points: what counts as a check, the number of points, the number checked."""

    says: str
    total: int
    checked: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Points that were not checked, for one reason."""

    reason: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The number of cases that checked a point, and the first ids."""

    checks: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerSums:
    """The coverage of the spec by a run: by kind and by point."""

    total: int
    checked: int
    kinds: Mapping[str, KindSums]
    unchecked: tuple[LeftOut, ...]
    not_of_runs: tuple[LeftOut, ...]
    evidence: Mapping[str, Evidence]


@dataclass(frozen=True, slots=True)
class Strength:
    """The judged share of the listed cells (op and dtype) and of the programs of the suite.

    `suite` is the number of programs for the whole language under the same options. `opens` maps
    an op to the number of programs that would apply too if the backend listed it. Invalid
    programs do not count.
    """

    judged: int
    listed: int
    programs: int
    suite: int
    opens: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a finished or interrupted run. Optional parts are None if absent."""

    suite: str
    backend: BackendInfo
    profile: str
    profile_from: str
    """`declared` or `observed`; under an observed profile contradicting choices fail."""
    generator: Generator = Generator()
    signatures: int = 1
    """The version of the signatures of failures; 1 where a file does not name it."""
    options: ReportedOptions
    summary: Summary
    cells: tuple[Cell, ...]
    """In order of level, op and dtype."""
    failures: tuple[Failure, ...]
    known: tuple[KnownFailure, ...]
    """The known failures that apply to the run."""
    unexplained: tuple[str, ...] = ()
    """The failing cases whose cause was not found in time."""
    cases: Mapping[str, str]
    """By group a string with the mark of each index, as in `tally.MARKS`. The name of a string that
    does not begin at index 0 has the first index after the group.
    """
    card: tuple[Observation, ...] | None = None
    ledger: LedgerSums | None = None
    origin: Origin | None = None
    strength: Strength | None = None
    others: tuple[Report, ...] | None = None
    """The reports on the other backends, judged on the same cases."""
    vote: Vote | None = None
    against: Against | None = None
    composed: Mapping[str, tuple[str, ...]] | None = None
    """By op the ops of which the adapter composes it, because the backend has no op for it."""
    tried: tuple[Tried, ...] | None = None
    """What came of the repros of other backends, where a comparison has run them."""
    rules: Mapping[str, int] | None = None
    """For each rule of the compiler, as `stage/rule`, the number of programs it fired in."""
    case_failures: Mapping[str, CaseFailure] = field(default_factory=dict)
    """The failure of each failed case. Not written to files, nor is `graphs`."""
    graphs: int | None = None

    @property
    def conclusion(self) -> Conclusion:
        return self.summary.verdict

    @property
    def rows(self) -> dict[str, list[Cell]]:
        """The cells by op, and those of levels of many ops by level."""
        rows: dict[str, list[Cell]] = {}
        for cell in self.cells:
            rows.setdefault(cell.op if cell.level == "op" else cell.level, []).append(cell)
        return rows

    @property
    def lines(self) -> list[KnownFailure]:
        """The lines of the file of known failures."""
        return [known for known in self.known if known.state != SKIPPED]

    @property
    def skipped_causes(self) -> list[KnownFailure]:
        """The causes that the run was to skip."""
        return [known for known in self.known if known.state == SKIPPED]

    @property
    def excused(self) -> str:
        """What failed without failing the run: known failures and skipped causes; empty if none."""
        skipped = sum(len(known.cases) for known in self.skipped_causes)
        known = self.summary.known - skipped
        of_two = f"{counted(known, 'failure')}, known or shared"
        of_one = counted(known, "known failure")
        parts = [of_one if self.against is None else of_two] if known else []
        parts += [f"{counted(skipped, 'failure')} of skipped causes"] if skipped else []
        return " and ".join(parts)

    @property
    def stale(self) -> list[str]:
        """The messages of the known failures that fail the run: those not in state `known`."""
        return [known.stale for known in self.known if known.stale]

    @property
    def faults(self) -> list[tuple[Failure, ...]]:
        """The causes, each together with those that show the same fault."""
        of: dict[str, list[Failure]] = {}
        for failure in self.failures:
            of.setdefault(failure.same_as or failure.signature, []).append(failure)
        return list(map(tuple, of.values()))

    @property
    def every(self) -> tuple[Report, ...]:
        """The reports on all backends, this one first."""
        return (self, *(self.others or ()))


def cell_of(id: str) -> CellPlace:
    """The cell of a case or of an observation by its id."""
    own = OWN_ID.fullmatch(id)
    return (OWN, own["file"], MIXED) if own else tuple(id.split("/")[:3])


def conclusion_of(failed: object, is_open: object, judged: int) -> Conclusion:
    """The verdict of a run, from failures, reasons that keep it open, and judged cases."""
    if failed:
        return Conclusion.DOES_NOT
    return Conclusion.INCONCLUSIVE if is_open or not judged else Conclusion.CONFORMS


def share(part: int, whole: int) -> float:
    """A share from 0 to 1; 1 if `whole` is 0."""
    return part / whole if whole else 1.0


def counted(n: int, name: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{n:,} {name}{'s' * (n != 1)}"


class VoteOutcome(StrEnum):
    """The result of the votes on a case."""

    SUSPECT = "interpreter suspect"
    ODD = "odd one out"
    NONE = "no majority"


@dataclass(frozen=True, slots=True)
class VotedCase:
    """A case that some backend failed: the answer of each backend, and those in the minority."""

    id: str
    says: Mapping[str, str]
    verdict: VoteOutcome
    odd: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vote:
    """The cases that failed on one of several backends; `missing` are those that did not start."""

    backends: tuple[str, ...]
    missing: tuple[str, ...]
    cases: tuple[VotedCase, ...]


@dataclass(frozen=True, slots=True)
class Flaky:
    """A failure that does not repeat: what came in the run, and in a new process."""

    signature: str
    then: str
    now: str

    @property
    def text(self) -> str:
        """Both results, in a line."""
        return f"in the run: {self.then}; in the new process: {self.now}"


@dataclass(frozen=True, slots=True)
class Against:
    """The backend that a fuzz run compares with: failing programs that do not count.

    `shared` fail on it too, `skipped` it does not take; `flaky` did not repeat.
    """

    backend: str
    shared: int
    skipped: int
    flaky: tuple[Flaky, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of the repro of a cause that another backend has shown.

    `gives` is what stands at its first wrong element, or else a message.
    """

    program: str
    """The digest of its text."""
    status: Status
    gives: str


def digest_of(text: str) -> str:
    """The digest of the text of a repro."""
    return sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]

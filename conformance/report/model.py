"""A report as one value: a run makes it, and every form of a report is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from uop.conformance.judging.elements import Element
from uop.conformance.judging.verdict import Fault
from uop.conformance.profile.card import Observation
from uop.conformance.report.asked import Asked
from uop.conformance.report.origin import Origin
from uop.conformance.suite.case import GENERATOR, MIXED, OWN, OWN_ID
from uop.conformance.suite.vocabulary import Vocabulary

Place = tuple[str, ...]
"""The level, op and dtype of a cell."""


class Conclusion(StrEnum):
    """The verdict of a run."""

    CONFORMS = "conforms"
    DOES_NOT = "does not conform"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """Who was judged."""

    name: str
    version: str
    device: str
    variant: str = ""

    @property
    def identity(self) -> str:
        """What it goes by in a file of known failures: `tinygrad:X86`."""
        return f"{self.name}:{self.variant}" if self.variant else self.name


@dataclass(frozen=True, slots=True)
class Generator:
    """What made the cases; reports said nothing of it before the second version."""

    version: int = 1
    vocabulary: Vocabulary | None = None
    """What the random programs were drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The verdict and the sums of a run; `lost` says why the backend could not go on."""

    verdict: Conclusion
    interrupted: bool
    lost: str
    open_because: str
    """Why it is inconclusive, else empty."""
    programs: int
    """That were judged."""
    checks: int
    elements: int
    constrained_share: float
    single_share: float
    passed: int
    failed: int
    skipped: int
    crashed: int
    known: int
    seconds: float
    peak_bytes: int
    """Of memory that a process of the backend was seen to hold, at most."""
    untried: tuple[str, ...]
    """Ops that the backend lists and no program judged, with the reason."""
    missing: tuple[str, ...]
    """What the run has too little evidence of for a verdict, with the reason."""

    @property
    def wrong(self) -> int:
        """How many programs failed or ended the process, but for the known ones."""
        return self.failed + self.crashed


@dataclass(frozen=True, slots=True)
class Largest:
    """The result that lies farthest from the reference, as in `Element`, and the case of it."""

    ulp: float
    id: str
    place: str
    inputs: tuple[str, ...]
    got: str
    accepted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The sums of one level, op and dtype; `histogram` as in `elements.Errors`, or empty."""

    level: str
    op: str
    dtype: str
    programs: int
    elements: int
    constrained_share: float
    failed: int
    known: int
    skipped_reason: str | None
    skipped: Mapping[str, int]
    """How many were skipped, by reason."""
    max_ulp: float
    largest: Largest | None
    histogram: tuple[int, ...]

    @property
    def place(self) -> Place:
        return self.level, self.op, self.dtype

    @property
    def state(self) -> str:
        """The gravest that became of its programs."""
        if self.failed:
            return "failed"
        if self.known:
            return "known"
        return "passed" if self.programs else "skipped"


@dataclass(frozen=True, slots=True)
class Failure:
    """One cause: the first case that showed it, shrunk, its `text` written as the file `repro`.

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

    @property
    def place(self) -> Place:
        """The cell under which its case counts."""
        return cell_of(self.id)


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A line of the file of known failures: the cases that it covered, what its program shows now.

    The state is `known`, `fixed`, `expired`, or `undecided` where its program is not judged;
    `stale` says what to do where it is not `known`, `note` what else there is to say.
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
    """What counts as a check of a kind of points, how many there are, how many were checked."""

    says: str
    total: int
    checked: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Points that were not checked for one reason."""

    reason: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many cases checked a point, and the first of them."""

    checks: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerSums:
    """How much of the spec a run exercised: by kind and by point."""

    total: int
    checked: int
    kinds: Mapping[str, KindSums]
    unchecked: tuple[LeftOut, ...]
    not_of_runs: tuple[LeftOut, ...]
    evidence: Mapping[str, Evidence]


@dataclass(frozen=True, slots=True)
class Strength:
    """What a run judged of what it might have: cells, which are ops on dtypes, and programs.

    `suite` is how many programs the whole language gets under the same options. `opens` says for
    an op how many more programs would apply if the backend listed it too. Texts that must be
    rejected do not count.
    """

    judged: int
    listed: int
    programs: int
    suite: int
    opens: Mapping[str, int]


class Outcome(StrEnum):
    """What the votes on a case say."""

    SUSPECT = "interpreter suspect"
    ODD = "odd one out"
    NONE = "no majority"


@dataclass(frozen=True, slots=True)
class VotedCase:
    """A case that some backend failed: what each one says, and who is alone with it."""

    id: str
    says: Mapping[str, str]
    verdict: Outcome
    odd: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vote:
    """The cases that failed on one of several backends; `missing` could not be started, and why."""

    backends: tuple[str, ...]
    missing: tuple[str, ...]
    cases: tuple[VotedCase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A finished or interrupted run. What others add to it is None where nobody did."""

    suite: str
    backend: BackendInfo
    profile: str
    profile_from: str
    """Whether the profile was declared or observed; of an observed one, two things at once fail."""
    generator: Generator = Generator()
    options: Asked
    summary: Summary
    cells: tuple[Cell, ...]
    """In order of level, op and dtype."""
    failures: tuple[Failure, ...]
    known: tuple[KnownFailure, ...]
    """The lines of the file of known failures that the run is about."""
    cases: Mapping[str, str]
    """By group a mark for each index, as in `tally.MARKS`."""
    card: tuple[Observation, ...] | None = None
    ledger: LedgerSums | None = None
    origin: Origin | None = None
    strength: Strength | None = None
    others: tuple[Report, ...] | None = None
    """Of several backends, judged on the same cases, all but this one."""
    vote: Vote | None = None
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """By case why it failed. Not in a file, as the number of distinct graphs."""
    graphs: int = 0

    @property
    def conclusion(self) -> Conclusion:
        return self.summary.verdict

    @property
    def stale(self) -> list[str]:
        """The known failures that fail the run: those that are not `known` any more."""
        return [known.stale for known in self.known if known.stale]

    @property
    def fails_by_stale_lines(self) -> bool:
        """Whether nothing else fails the run."""
        return bool(self.stale) and not self.summary.wrong and not self.failures

    @property
    def every(self) -> tuple[Report, ...]:
        """The reports on all backends."""
        return (self, *(self.others or ()))


def listed_id(name: str, index: int, version: int = GENERATOR) -> str:
    """The id of a case that a report lists under a name, at a place."""
    return name if name.startswith(f"{OWN}/") else f"{name}/{index}@{version}"


def cell_of(id: str) -> Place:
    """The level, op and dtype under which a case of this id counts, or a point of the card."""
    own = OWN_ID.fullmatch(id)
    return (OWN, own["file"], MIXED) if own else tuple(id.split("/")[:3])


def conclusion_of(failed: object, is_open: object, judged: int) -> Conclusion:
    """The verdict where something failed, or what keeps it open, or so many cases were judged."""
    if failed:
        return Conclusion.DOES_NOT
    return Conclusion.INCONCLUSIVE if is_open or not judged else Conclusion.CONFORMS


def share(part: int, whole: int) -> float:
    """A share from 0 to 1; of nothing it is 1."""
    return part / whole if whole else 1.0


def counted(n: int, name: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{n:,} {name}{'s' * (n != 1)}"

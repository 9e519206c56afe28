"""The card of a backend: what it does at every point, the evidence, and the profile it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uop.conformance.judging import storage
from uop.conformance.judging.lowering import Submission, submission_of
from uop.conformance.profile.free import free_points
from uop.conformance.profile.points import knob_points
from uop.conformance.profile.probe import Probe, Witness, data
from uop.conformance.protocol.types import LOST, Outcome, Outputs, Problem, ProblemKind
from uop.conformance.suite.case import MIXED, Batch, Case, CaseId
from uop.conformance.workers.transport import Session
from uop.interpreter.numeric.storage import Array, np_dtype, to_bits
from uop.spec.case import FileCase, UopFile
from uop.spec.errors import BackendError
from uop.spec.latitude import Profile
from uop.spec.text.profile_text import profile_of
from uop.spec.text.uop_file import print_file

NEITHER = "none of the known answers"
ENDED = LOST | {ProblemKind.TRAP}
SHOWN = 80


@dataclass(frozen=True, slots=True)
class Observation:
    """What a backend does at one point.

    `declares` is the text that its knob would have, empty where nothing is to be declared, and
    always for a point without a knob. A line of evidence is a program on data, what it gave, and
    what that means.
    """

    point: str
    knob: str
    observed: str
    declares: str
    consistent: bool
    evidence: tuple[str, ...]
    conflict: tuple[str, ...] = ()
    """Where a knob shows two things: a line of evidence for each of the first two."""
    repro: str = ""
    """Then also a program that does not do the first of them, as text of a `.uop` file."""

    @property
    def message(self) -> str:
        """What is wrong with a backend that does two things here."""
        allowed = f"; a profile with {self.knob}={self.declares} allows both" * bool(self.declares)
        return f"{self.point} is {self.observed} at once: {', but '.join(self.conflict)}{allowed}"


@dataclass(frozen=True, slots=True)
class Card:
    """The points on which a backend gave an answer, those of the knobs first."""

    entries: tuple[Observation, ...]

    @property
    def profile(self) -> Profile:
        """The profile that a backend shows; where it does two things, one that allows both."""
        return profile_of(self.knobs())

    @property
    def twofold(self) -> tuple[Observation, ...]:
        """The points of knobs at which it does two things."""
        return tuple(e for e in self.entries if e.knob and not e.consistent)

    def knobs(self) -> dict[str, str]:
        """The observed text of every knob, but of those that nothing was observed of."""
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.knob and entry.declares:
                found.setdefault(entry.knob, []).append(entry.declares)
        return {knob: ",".join(texts) for knob, texts in found.items()}


def observe(session: Session) -> Card:
    """Probe a started backend. It is sent what it lists, and lacks an entry for the rest.

    BackendError where it is lost for good, or hangs: nothing is learned from hanging more often.
    """
    points = (*knob_points(), *free_points())
    asked = [
        (witness, submission)
        for point in points
        for witness in point.witnesses
        if not (submission := submission_of(_case(witness), session.hello)).reason
        and len(submission.programs) == 1
    ]
    safe = [pair for pair in asked if not pair[0].ended]
    size = session.hello.limits.programs
    # The first one alone: where each of them hangs, one is enough to know.
    answers = _answers(session, safe[:1], size) | _answers(session, safe[1:], size)
    # Last, and apart: a division by zero may end the process.
    answers |= _answers(session, [pair for pair in asked if pair[0].ended], size)
    entries = (_entry(point, answers) for point in points)
    return Card(tuple(e for e in entries if e is not None))


def _case(witness: Witness) -> Case:
    return Case(CaseId("card", MIXED, MIXED, "probe", 0), witness.root, (Batch(witness.inputs),))


def _answers(
    session: Session, asked: Sequence[tuple[Witness, Submission]], size: int
) -> dict[Witness, Outcome]:
    found: dict[Witness, Outcome] = {}
    for first in range(0, len(asked), size):
        some = asked[first : first + size]
        session.submit([submission.program for _, submission in some])
        for (witness, submission), outcome in zip(some, session.collect(), strict=True):
            found[witness] = submission.outcome([outcome])
            if isinstance(outcome, Problem) and outcome.kind is ProblemKind.HANG:
                _require_an_end(witness, outcome)
    return found


def _require_an_end(witness: Witness, problem: Problem) -> None:
    """BackendError unless a backend may be ended by a witness on which it hung."""
    if not witness.ended:
        raise BackendError(
            f"it hangs on {witness.asked(0)}, which was to show a choice: {problem.message}; "
            "with a profile that it declares, or --profile, it is not asked"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """What one element means, and the line that shows it."""

    word: str
    line: str
    witness: Witness


def _entry(point: Probe, outcomes: dict[Witness, Outcome]) -> Observation | None:
    """The entry of a point, None where a backend gave no answer."""
    answers = [a for w in point.witnesses if w in outcomes for a in _read(w, outcomes[w])]
    if not answers:
        return None
    shown: dict[str, _Answer] = {}
    for answer in answers:
        if answer.word:
            shown.setdefault(answer.word, answer)
    lines = tuple(a.line for a in answers)
    if len(shown) < 2:
        declares = "".join(point.declares.get(word, "") for word in shown)
        return Observation(point.name, point.knob, "".join(shown) or NEITHER, declares, True, lines)
    observed, conflict, repro = " and ".join(shown), tuple(a.line for a in shown.values())[:2], ""
    if _may_differ(point, answers):
        lines = tuple(dict.fromkeys([*conflict, *lines]))
        return Observation(point.name, point.knob, observed, point.mixed, True, lines)
    if point.knob:
        # The strict answer comes first: the repro is right by the spec.
        first, second = (word for word in point.declares if word in shown)
        repro = _repro(point, first, shown[second].witness)
    return Observation(point.name, point.knob, observed, point.mixed, False, lines, conflict, repro)


def _may_differ(point: Probe, answers: Sequence[_Answer]) -> bool:
    """Whether a knob lets programs differ, and each of them does one thing.

    To contract sums alone is one choice; of numbers and NaNs one MAX cannot make both.
    """
    meant = {(a.witness, a.word) for a in answers if a.word}
    return point.mixed in point.declares.values() and len(meant) == len({w for w, _ in meant})


def _repro(point: Probe, word: str, witness: Witness) -> str:
    """A witness that answers otherwise, with the answers that a word stands for."""
    root = witness.root
    given = {slot: storage.to_literal(a) for slot, a in witness.inputs.items()}
    numbers = [answers[word] for answers in witness.answers if word in answers]
    # The answer of a trap is no array, nor has the sum of a matrix product one for each element.
    whole = len(numbers) == math.prod(root.shape)
    expected = data(root.dtype, numbers).reshape(root.shape) if whole else None
    expect = {} if expected is None else {0: storage.to_literal(expected)}
    comment = f"elsewhere {point.name} is {word}"
    case = FileCase(f"card/{point.name}".replace(" ", "-"), root, given, expect, comment=comment)
    return print_file(UopFile((case,)))


def _read(witness: Witness, outcome: Outcome) -> list[_Answer]:
    match outcome:
        case Problem(kind=ProblemKind.UNSUPPORTED):
            return []
        case Problem(kind=kind, message=message):
            said = " ".join(f"{witness.asked(0)}: {kind.value}, {message}".split())[:SHOWN]
            return [_Answer(witness.ended if kind in ENDED else "", said, witness)]
        case Outputs(batches=((output,),)) if _fits(witness, output):
            return [_element(witness, k, output) for k in range(len(witness.answers))]
    said = f"{witness.asked(0)}: something else than one array of its shape"
    return [_Answer("", said, witness)]


def _fits(witness: Witness, output: Array) -> bool:
    u = witness.root
    return (output.shape, output.dtype) == (u.shape, np_dtype(u.dtype))


def _element(witness: Witness, k: int, output: Array) -> _Answer:
    dtype = witness.root.dtype
    bits = int(to_bits(output.reshape(-1)[k : k + 1])[0])
    word = witness.meaning(k, output)
    spelled = f"{dtype.name} {storage.spelled(bits, dtype)} (0x{bits:0{dtype.itemsize * 2}x})"
    return _Answer(word, f"{witness.asked(k)} = {spelled}: {word or NEITHER}", witness)

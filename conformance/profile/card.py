"""Observes the card of a backend: its choice at each probe, the evidence, the profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uop.conformance.judging import storage
from uop.conformance.judging.lowering import Submission, left_out, submission_of
from uop.conformance.profile.points import free_points, knob_points
from uop.conformance.profile.probe import Probe, Witness, bits_of, data
from uop.conformance.protocol.types import EXCUSED, LOST, Outcome, Outputs, Problem, ProblemKind
from uop.conformance.suite.case import MIXED, Batch, Case, CaseId
from uop.conformance.suite.values import array
from uop.conformance.suite.vocabulary import NO_SKIPS, Skips
from uop.conformance.workers.transport import Session
from uop.interpreter.numeric.storage import Array, np_dtype, to_bits
from uop.spec.args import ConstArg, ParamArg, ReduceArg
from uop.spec.case import FileCase
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import BackendError
from uop.spec.latitude import LIBERTIES, Profile
from uop.spec.ops.names import Op
from uop.spec.text.expression import OPERATORS
from uop.spec.text.profile_text import profile_of
from uop.spec.uop import UOp

NEITHER = "none of the known answers"
ENDED = LOST | {ProblemKind.TRAP}
LONGEST = 80
"""The most characters of a line about a problem."""

ORDINARY = (1e-9, 1e9)
"""The magnitudes that everyday programs compute with; zero is another such value."""
NAMES = "xyz"
LEGIBLE = 3
"""How much longer a number may be without an exponent."""
SHOWN = 4
"""The most elements of an operand that an example shows."""


@dataclass(frozen=True, slots=True)
class Example:
    """One element of a witness on which a backend takes a liberty, as text."""

    witness: Witness
    text: str
    is_ordinary: bool
    """Whether its operands and constants are ordinary numbers."""
    gives_ordinary: bool
    """Whether what the backend and the strict language give are ordinary numbers too."""

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The order of examples, the one to show first: ordinary and short ones precede."""
        return not self.is_ordinary, not self.gives_ordinary, len(self.text)


def _example(witness: Witness, element: int, outcome: str, gives_ordinary: bool) -> Example:
    root = witness.root
    params = {u.arg.slot: u for u in root.toposort() if isinstance(u.arg, ParamArg)}
    names = {slot: NAMES[k] for k, slot in enumerate(sorted(params))}
    flat = {slot: witness.inputs[slot].reshape(-1) for slot in names}
    # Of an operand that is shaped like the result one element, else all of them.
    operands = {
        slot: a[element] if params[slot].shape == root.shape else a for slot, a in flat.items()
    }
    values = ", ".join(f"{names[slot]} = {_numbers(a)}" for slot, a in operands.items())
    kind = next(u.dtype for u in params.values())
    of = "" if kind in (dtypes.float32, dtypes.int32) else f"{kind.name} "
    constants = [u.arg for u in root.toposort() if isinstance(u.arg, ConstArg)]
    read = [x for a in operands.values() for x in a.reshape(-1)]
    read += [_scalar(c.bits, c.dtype) for c in constants if c.dtype is not dtypes.index]
    return Example(
        witness,
        f"{_expression(root, names)} for {of}{values} {outcome}",
        all(map(_is_ordinary, read)),
        gives_ordinary,
    )


def _expression(u: UOp, names: Mapping[int, str]) -> str:
    """A program as `uop eval` reads it, but for a PAD and a REDUCE, which name no axes."""
    if isinstance(u.arg, ConstArg):
        return _number(_scalar(u.arg.bits, u.dtype))
    if isinstance(u.arg, ParamArg):
        return names[u.arg.slot]
    operands = [s for s in u.src if s.dtype is not dtypes.index]
    parts = [_expression(s, names) for s in operands]
    if u.op in OPERATORS and len(parts) == 2:
        within = (
            f"({part})" if s.op in OPERATORS else part
            for s, part in zip(operands, parts, strict=True)
        )
        return f" {OPERATORS[u.op]} ".join(within)
    if u.op is Op.NEG:
        return f"-{parts[0]}"
    name = u.dtype.name if u.op is Op.CAST else u.op.name.lower()
    fold = [u.arg.op.name.lower()] if isinstance(u.arg, ReduceArg) else []
    return f"{name}({', '.join([*fold, *parts])})"


def _numbers(a: Array) -> str:
    if not a.shape:
        return _number(a)
    more = ["..."] * (a.size > SHOWN)
    return f"[{', '.join([*map(_number, a[:SHOWN]), *more])}]"


def _scalar(bits: int, dtype: DType) -> Array:
    scalar: Array = array(dtype, (bits,))[0]
    return scalar


def _is_ordinary(x: Array) -> bool:
    """Whether a number is no NaN, infinity, -0.0 or extreme."""
    if x == 0:
        return not to_bits(x.reshape(1))[0]
    least, most = ORDINARY
    return bool(least <= abs(float(x)) <= most)


def _number(x: Array) -> str:
    """The decimals that identify a number in its dtype: `1`, `0.5`, `1e8`."""
    if x.dtype.kind == "b":
        return str(bool(x)).lower()
    if x.dtype.kind in "iu":
        return str(int(x))
    if not np.isfinite(x):
        return str(float(x))
    if x.dtype.itemsize < np.dtype(np.float32).itemsize:
        return _shorter(np.float64(str(x)))
    return _shorter(x.dtype.type(x))


def _shorter(x: np.floating[Any]) -> str:
    plain = np.format_float_positional(x, trim="-")
    scaled = np.format_float_scientific(x, trim="-", exp_digits=1).replace("e+", "e")
    return scaled if len(scaled) + LEGIBLE < len(plain) else plain


@dataclass(frozen=True, slots=True)
class Observation:
    """The choice of a backend at one probe.

    `declares` is the text for the knob of a profile; empty for the default and without a knob.
    A line of evidence has a program on data, its result, and the meaning of the result.
    """

    point: str
    knob: str
    observed: str
    declares: str
    consistent: bool
    evidence: tuple[str, ...]
    conflict: tuple[str, ...] = ()
    """For two contradicting choices of a knob: a line of evidence for each of the first two."""
    repro: str = ""
    """For a conflict a program that violates the first choice, for a liberty one that violates the
    strict language, as text of a `.uop` file."""
    example: str = ""
    """For a liberty, a choice outside the strict language: what it gives, and what strict gives."""

    @property
    def liberty(self) -> str:
        """The knob of a profile that allows it, as `contract=true`."""
        return f"{self.knob}={self.declares}"

    @property
    def message(self) -> str:
        """The message of the failure: contradicting choices, or a liberty that is not allowed."""
        if self.example:
            return f"takes a liberty: {self.liberty}: {self.example}"
        allowed = f"; a profile with {self.liberty} allows both" * bool(self.declares)
        return f"{self.point} is {self.observed} at once: {', but '.join(self.conflict)}{allowed}"


@dataclass(frozen=True, slots=True)
class Card:
    """The observations of a backend, those of knobs first."""

    entries: tuple[Observation, ...]

    @property
    def profile(self) -> Profile:
        """The observed profile; what a backend does in two ways is strict there."""
        return profile_of(self.knobs())

    @property
    def liberties(self) -> tuple[Observation, ...]:
        """The observations of liberties, choices outside the strict language."""
        return tuple(e for e in self.entries if e.example)

    @property
    def twofold(self) -> tuple[Observation, ...]:
        """The observations of knobs with contradicting choices."""
        return tuple(e for e in self.entries if e.knob and not e.consistent)

    def knobs(self) -> dict[str, str]:
        """The texts of all observed knobs: those of which all answers agree."""
        by_knob: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.knob and entry.declares and entry.consistent:
                by_knob.setdefault(entry.knob, []).append(entry.declares)
        return {knob: ",".join(texts) for knob, texts in by_knob.items()}


def observe(session: Session, skips: Skips = NO_SKIPS) -> Card:
    """Run the probes on a started backend. Those that it does not support, or that need what is
    skipped, give no entry.

    Raises BackendError if the backend cannot be restarted or hangs.
    """
    points = (*knob_points(), *free_points())
    supported = [
        (witness, submission)
        for point in points
        for witness in point.witnesses
        if not (submission := submission_of(case := _case(witness), session.hello)).reason
        and not left_out(case, submission, skips)
        and len(submission.programs) == 1
    ]
    safe = [pair for pair in supported if not pair[0].ended]
    size = session.hello.limits.programs
    # Run the first one alone: if all of them hang, one timeout is enough.
    answers = _answers(session, safe[:1], size) | _answers(session, safe[1:], size)
    # Run these last and apart: a division by zero may end the process.
    answers |= _answers(session, [pair for pair in supported if pair[0].ended], size)
    entries = (_entry(point, answers) for point in points)
    return Card(tuple(e for e in entries if e is not None))


def _case(witness: Witness) -> Case:
    return Case(CaseId("card", MIXED, MIXED, "probe", 0), witness.root, (Batch(witness.inputs),))


def _answers(
    session: Session, supported: Sequence[tuple[Witness, Submission]], size: int
) -> dict[Witness, Outcome]:
    outcomes: dict[Witness, Outcome] = {}
    for first in range(0, len(supported), size):
        chunk = supported[first : first + size]
        session.submit([submission.program for _, submission in chunk])
        for (witness, submission), outcome in zip(chunk, session.collect(), strict=True):
            outcomes[witness] = submission.outcome([outcome])
            match outcome:
                case Problem(ProblemKind.HANG, message) if not witness.ended:
                    raise BackendError(
                        f"it hangs on {witness.expression(0)}, which was to show a choice: "
                        f"{message}; with a profile that it declares, or --profile, it is not asked"
                    )
    return outcomes


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """The meaning of one element, and its line of evidence; `bits` is None without a value."""

    word: str
    line: str
    witness: Witness
    element: int = 0
    bits: int | None = None

    def example(self, strict: str) -> Example | None:
        """Show that the element is not `strict`; None if the witness gives no such answer."""
        witness = self.witness
        if self.bits is None:
            said = f"{witness.ended}, strict {witness.otherwise}"
            return _example(witness, self.element, said, False)
        answers = witness.answers[self.element]
        if strict not in answers:
            return None
        dtype = witness.root.dtype
        results = [_scalar(bits, dtype) for bits in (self.bits, bits_of(answers[strict], dtype))]
        said = "is {}, strict {}".format(*map(_number, results))
        return _example(witness, self.element, said, all(map(_is_ordinary, results)))


def _entry(point: Probe, outcomes: dict[Witness, Outcome]) -> Observation | None:
    """The observation of a probe; None if the backend gave no answer."""
    answers = [a for w in point.witnesses if w in outcomes for a in _read(w, outcomes[w])]
    if not answers:
        return None
    shown: dict[str, _Answer] = {}
    for answer in answers:
        if answer.word:
            shown.setdefault(answer.word, answer)
    lines = tuple(a.line for a in answers)
    observed, declares = " and ".join(shown) or NEITHER, point.mixed
    if len(shown) < 2:
        declares = "".join(point.declares.get(word, "") for word in shown)
    entry = Observation(point.name, point.knob, observed, declares, True, lines)
    if len(shown) < 2:
        return _with_example(entry, point, answers)
    conflict, repro = tuple(a.line for a in shown.values())[:2], ""
    if _may_differ(point, answers):
        entry = replace(entry, evidence=tuple(dict.fromkeys([*conflict, *lines])))
        return _with_example(entry, point, answers)
    if point.knob:
        # The strict answer comes first: the repro is right by the spec.
        first, second = (word for word in point.declares if word in shown)
        repro = _repro(point, first, shown[second].witness)
    return replace(entry, consistent=False, conflict=conflict, repro=repro)


def _with_example(entry: Observation, point: Probe, answers: Sequence[_Answer]) -> Observation:
    """The observation of one choice, with an example and its repro where it is a liberty."""
    if point.knob not in LIBERTIES:
        return entry
    strict, *_ = point.declares
    examples = (a.example(strict) for a in answers if a.word and a.word != strict)
    best = min(filter(None, examples), key=lambda e: e.rank, default=None)
    if best is None:
        return entry
    return replace(entry, example=best.text, repro=_repro(point, strict, best.witness))


def _may_differ(point: Probe, answers: Sequence[_Answer]) -> bool:
    """Whether the knob allows different choices per program, and each program makes one.

    A backend may contract sums only; one MAX may not both propagate NaNs and return numbers.
    """
    meant = {(a.witness, a.word) for a in answers if a.word}
    return point.mixed in point.declares.values() and len(meant) == len({w for w, _ in meant})


def _repro(point: Probe, word: str, witness: Witness) -> str:
    """The witness as a case that expects the answers of `word`."""
    root = witness.root
    inputs = storage.to_literals(witness.inputs)
    numbers = [answers[word] for answers in witness.answers if word in answers]
    # A trap has no array, and a matrix product has one answer for all elements.
    whole = len(numbers) == math.prod(root.shape)
    expected = data(root.dtype, numbers).reshape(root.shape) if whole else None
    expect = {} if expected is None else {0: storage.to_literal(expected)}
    comment = f"elsewhere {point.name} is {word}"
    case = FileCase(f"card/{point.name}".replace(" ", "-"), root, inputs, expect, comment=comment)
    return storage.file_text(case)


def _read(witness: Witness, outcome: Outcome) -> list[_Answer]:
    fitting = witness.root.shape, np_dtype(witness.root.dtype)
    match outcome:
        case Problem(kind=kind) if kind in EXCUSED or kind is ProblemKind.UNSUPPORTED:
            return []
        case Problem(kind=kind, message=message):
            line = " ".join(f"{witness.expression(0)}: {kind.value}, {message}".split())[:LONGEST]
            return [_Answer(witness.ended if kind in ENDED else "", line, witness)]
        case Outputs(batches=((output,),)) if (output.shape, output.dtype) == fitting:
            return [_element(witness, k, output) for k in range(len(witness.answers))]
    line = f"{witness.expression(0)}: something else than one array of its shape"
    return [_Answer("", line, witness)]


def _element(witness: Witness, k: int, output: Array) -> _Answer:
    dtype = witness.root.dtype
    bits = int(to_bits(output.reshape(-1)[k : k + 1])[0])
    word = witness.meaning(k, output)
    spelled = f"{dtype.name} {storage.spelled(bits, dtype)} (0x{bits:0{dtype.itemsize * 2}x})"
    line = f"{witness.expression(k)} = {spelled}: {word or NEITHER}"
    return _Answer(word, line, witness, k, bits)

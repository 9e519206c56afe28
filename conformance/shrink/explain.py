"""Says which of the causes that are known explains a failing case.

A cause explains a failure if one fix would mend both, as far as that can be seen from outside:

1. its repro occurs in the program (`pattern.matches`);
2. that part of the program, cut out with its own values, fails alike; of a refused program it may
   be wrong too, and the other way round, as a wrong value may break a later check;
3. the repro fails alike too with the dtypes and constants of the part; where it is inaccurate, and
   exact in another dtype, the part with its own values is;
4. the program passes where the part is replaced by its right values.

Integer promotion is another way: the wrong values tell it, and nothing runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import islice
from operator import or_

import numpy as np

from uop.conformance.coverage.value_classes import classes_of, special_in
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.report.model import PROMOTED, Failure
from uop.conformance.shrink.pattern import Match, is_shape, matches, transplanted
from uop.conformance.shrink.promotion import NARROW, unpromoted
from uop.conformance.shrink.reduce import (
    Candidate,
    Probe,
    cut,
    decomposed,
    interpreted,
    is_computing,
    read_alone,
    valid,
    with_used_inputs,
)
from uop.conformance.shrink.signature import constant_part
from uop.conformance.suite.case import Case, InvalidCase
from uop.conformance.suite.levels.written import inputs_of
from uop.interpreter.numeric.storage import BITS, STORED, Array, from_bits
from uop.spec.args import ConstArg
from uop.spec.dtype import DType
from uop.spec.errors import UndefinedError, UnsupportedError, UopError
from uop.spec.graph import LEAVES, inlined, kind_of, outside
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, param

PLACES = 12
"""At most so many places of a repro in one program are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Failing:
    """A failing case with the program that fails, and its failure."""

    case: Case | InvalidCase
    failure: CaseFailure
    is_shrunk: bool = False

    @property
    def start(self) -> Candidate | None:
        """The failing program with its inputs; None for a text that must be rejected."""
        return None if isinstance(self.case, InvalidCase) else self.starts[self.failure.batch]

    @property
    def starts(self) -> list[Candidate]:
        """The failing program with the inputs of each of its batches."""
        assert isinstance(self.case, Case)
        program = self.case.programs[self.failure.program]
        return [Candidate(program.root, batch.inputs) for batch in program.batches]


@dataclass(frozen=True, slots=True, eq=False)
class Repro:
    """The program of a cause with the number of the cause, and the kind of its symptom."""

    number: int
    kind: str
    is_inaccurate: bool
    program: Candidate
    special: int
    """The special classes of its values, as a bit mask; 0 if it fails on ordinary values."""

    @property
    def computes_nothing(self) -> bool:
        """Whether a value is wrong where it is read, as `read_alone` has it, or given back."""
        root = self.program.root
        return root.op is Op.PARAM or (root.op is Op.CAST and read_alone(root.src[0]) is root)

    @property
    def is_read(self) -> bool:
        """Whether the value is wrong where it is read, of those that compute nothing."""
        return self.program.root.op is Op.CAST

    @property
    def moved(self) -> DType:
        """The dtype of the value where nothing is computed."""
        root = self.program.root
        return (root.src[0] if self.is_read else root).dtype


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of a failing program in which a repro occurs, and the programs that must fail too.

    `own` is the part with its own values, None if it fails anyway: it is the whole program. One of
    the `images` must fail, the repro with the dtypes of the part; none are needed if these are its
    own. A part that cannot be cut out, in a kernel or of memory, has only images.
    """

    repro: Repro
    root: UOp
    own: Candidate | None
    images: tuple[Candidate, ...]
    is_cut: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The number of the cause that explains a case, if one does.

    Otherwise `rest` is the program without the parts that causes explain, if there are any and it
    still fails, with its failure; of several outputs the first that no cause explains.
    """

    cause: int | None = None
    rest: tuple[Candidate, CaseFailure] | None = None
    left: tuple[int, ...] = ()
    """The wrong outputs that no cause explains, where the program has several outputs."""
    is_exact: bool = True
    """Whether the cause fails there with the dtypes of its repro."""


def alike(failure: CaseFailure, other: CaseFailure) -> bool:
    """Whether two failures have the same symptom: for wrong results and exceptions its class."""
    if failure.symptom is other.symptom is Symptom.REFUSED:
        return constant_part(failure.message) == constant_part(other.message)
    return failure.kind == other.kind


def explain(one: Failing, causes: Sequence[Failure], probe: Probe) -> Explained:
    """Find the cause that explains a failing case."""
    if isinstance(one.case, InvalidCase):
        label = one.case.label
        return Explained(next((k for k, c in enumerate(causes) if c.label == label), None))
    repros = [
        Repro(k, cause.kind, cause.label == Symptom.ULP, program, special_classes(program))
        for k, cause in enumerate(causes)
        if (program := _program_of(cause.text)) is not None
    ]
    start, failure = one.start, one.failure
    assert start is not None
    promoted = next((k for k, c in enumerate(causes) if c.when.as_if == PROMOTED), None)
    if promoted is not None and (others := unpromoted(start, failure)) is not None:
        if not others:
            narrow = {u.dtype.name for u in start.root.toposort() if u.dtype in NARROW}
            return Explained(promoted, is_exact=not narrow.isdisjoint(causes[promoted].dtypes))
        failure = replace(failure, wrong=others)
    if start.root.op is not Op.TUPLE or len(start.root.src) == 1:
        return _by_forms(start, failure, one.is_shrunk, repros, probe)
    wrong, values = failure.wrong, start.root.src
    near = [k for k in wrong if any(_near(repros, form) for form in _rewritten(values[k]))]
    outputs = _alone(start, failure, near, probe)
    explained = {k: _by_forms(*found, one.is_shrunk, repros, probe) for k, found in outputs.items()}
    left = tuple(k for k in wrong if k not in explained or explained[k].cause is None)
    if left:
        k = left[0]
        rest = explained[k].rest if k in explained else None
        outputs |= {} if k in outputs else _alone(start, failure, [k], probe)
        return Explained(rest=rest or outputs[k], left=left)
    if not explained:
        return _by_forms(start, failure, one.is_shrunk, repros, probe)
    first = explained[min(explained)]
    return replace(first, is_exact=all(e.is_exact for e in explained.values()))


def _near(repros: Sequence[Repro], root: UOp) -> list[Repro]:
    """The repros that may occur in a program; no program runs to find out."""
    nodes = root.toposort()
    return [repro for repro in repros if _may_occur(repro, nodes)]


def _may_occur(repro: Repro, nodes: Sequence[UOp]) -> bool:
    """Whether a repro occurs among the nodes of a program, or what is wrong by itself is there."""
    if not repro.computes_nothing:
        return any(matches(repro.program.root, nodes))
    return not repro.special or repro.moved in {u.dtype for u in nodes}


def _alone(
    start: Candidate, failure: CaseFailure, wrong: Sequence[int], probe: Probe
) -> dict[int, tuple[Candidate, CaseFailure]]:
    """Each of these wrong outputs as a program of its own, with its failure.

    Where an output is right alone, it is the whole program.
    """
    alone = [with_used_inputs(start.root.src[k], start.inputs) for k in wrong]
    found = zip(wrong, alone, probe(alone), strict=True)
    return {k: (c, f) if f and alike(f, failure) else (start, failure) for k, c, f in found}


def _by_forms(
    start: Candidate, failure: CaseFailure, is_shrunk: bool, repros: Sequence[Repro], probe: Probe
) -> Explained:
    """Find the cause that explains a failing program, or a form of it that fails alike too."""
    for root in _rewritten(start.root):
        form = start if root is start.root else with_used_inputs(root, start.inputs)
        near = _near(repros, root)
        if near and (form is start or ((f := probe([form])[0]) and alike(f, failure))):
            found = _explained(form, failure, is_shrunk, near, probe)
            if found.cause is not None or found.rest is not None:
                return found
    return Explained()


def _rewritten(root: UOp) -> list[UOp]:
    """A program; without FUNCTIONs; then in primitive ops, where these are others."""
    forms = [root]
    for step in () if kind_of(root).calls_kernels else (inlined, decomposed):
        with suppress(UopError):
            forms.append(step(forms[-1]))
    return list(dict.fromkeys(forms))


def _explained(
    start: Candidate, failure: CaseFailure, is_shrunk: bool, repros: Sequence[Repro], probe: Probe
) -> Explained:
    parts = [part for repro in repros for part in _parts(start, repro)]
    parts = [part for part in parts if part.is_cut or is_shrunk]
    active = _active(parts, failure, probe)
    if not active:
        return Explained()
    values = _values(start)
    uncomputed = [p for p in active if p.repro.computes_nothing and p.root is not start.root]
    active = [p for p in active if p not in uncomputed]
    # No PARAM can stand for a part with absent elements, or without a value.
    whole = (p for p in active if p.root is start.root or not p.is_cut or p.root not in values)
    if parts := list(whole):
        first = next((p for p in parts if not p.repro.special), parts[0])
        masked = _masked(start, parts, start.inputs.values()) if first.repro.special else None
        if masked is not None and (found := probe([masked])[0]) and alike(found, failure):
            return Explained(rest=(masked, found))
        return Explained(first.repro.number, is_exact=not first.images)
    if uncomputed and _pass_without(start, uncomputed, probe):
        return Explained(uncomputed[0].repro.number, is_exact=not uncomputed[0].images)
    return _mended(start, active, failure, probe, values) if active else Explained()


def _pass_without(start: Candidate, parts: Sequence[Part], probe: Probe) -> bool:
    """Whether a program passes without the values that are wrong after a round trip."""
    if not all(part.repro.special for part in parts):
        return True
    is_read = all(part.repro.is_read for part in parts)
    masked = _masked(start, parts, _moved(start, is_read).values())
    return masked is not None and probe([masked])[0] is None


def _active(parts: Sequence[Part], failure: CaseFailure, probe: Probe) -> list[Part]:
    """The parts that fail alike, with their own values and as images."""
    # The images first: these are those of many cases, and most parts are none of a fault.
    images = list(dict.fromkeys(c for part in parts for c in part.images))
    shown = {c: f.kind for c, f in zip(images, probe(images), strict=True) if f is not None}
    # A refusal and a wrong result may have one cause.
    akin = {Symptom.REFUSED.kind, Symptom.VALUE.kind}
    fail = {
        part
        for part in parts
        if not part.images
        or any(
            kind == part.repro.kind or {kind, part.repro.kind} == akin
            for c in part.images
            if (kind := shown.get(c)) is not None
        )
    }
    parts = [p for p in parts if p in fail or (p.is_cut and p.repro.is_inaccurate)]
    own = [part.own for part in parts if part.own is not None]
    found = dict(zip(own, probe(own), strict=True))
    own_failure = {p: failure if p.own is None else found[p.own] for p in parts}
    return [
        part
        for part, f in own_failure.items()
        if f and (part in fail or f.symptom is Symptom.ULP)
        if alike(f, failure) or _is_akin(part, f, failure)
    ]


def _is_akin(part: Part, found: CaseFailure, failure: CaseFailure) -> bool:
    """Whether a part with another symptom than the program shows its cause.

    A part that is the whole program must be the repro, but for dtypes and sizes.
    """
    kinds = {found.kind, failure.kind, part.repro.kind}
    if not part.is_cut or kinds != {Symptom.REFUSED.kind, Symptom.VALUE.kind}:
        return False
    roots = part.root, part.repro.program.root
    own, of_repro = (Counter(u.op for u in root.toposort()) for root in roots)
    return part.own is not None or own == of_repro


def _masked(start: Candidate, parts: Sequence[Part], arrays: Iterable[Array]) -> Candidate | None:
    """An elementwise program with ones where one of the arrays is as special as these repros.

    If it still fails, it fails for another reason. None where nothing is left to fail.
    """
    root, classes = start.root, reduce(or_, (part.repro.special for part in parts))
    computing = [u for u in outside(root) if is_computing(u)]
    is_elementwise = all(u.declaration.is_elementwise for u in computing)
    if not is_elementwise or not all(a.shape == root.shape for a in start.inputs.values()):
        return None
    special = np.zeros(root.shape, np.bool_)
    for a in arrays:
        special |= (classes_of(a, STORED[a.dtype]) & classes) != 0
    if special.all():
        return None
    inputs = {
        slot: np.where(special, np.ones((), a.dtype), a).astype(a.dtype)
        for slot, a in start.inputs.items()
    }
    return Candidate(root, inputs)


def special_classes(candidate: Candidate) -> int:
    """The special classes of the inputs and constants of a program, as a bit mask."""
    nodes = candidate.root.toposort()
    constants = [u.arg for u in nodes if isinstance(u.arg, ConstArg)]
    arrays = [from_bits(np.array(c.bits, BITS[c.dtype.itemsize]), c.dtype) for c in constants]
    every = (*arrays, *candidate.inputs.values())
    return special_in(a for a in every if a.dtype != np.bool_)


def _mended(
    start: Candidate,
    active: Sequence[Part],
    failure: CaseFailure,
    probe: Probe,
    values: Mapping[UOp, Array],
) -> Explained:
    """Find the cause whose parts mend the program where their right values replace them."""
    numbers = list(dict.fromkeys(part.repro.number for part in active))
    chosen = [[p for p in active if p.repro.number == number] for number in numbers]
    try:
        mended = [cut(start, values, [p.root for p in parts]) for parts in (*chosen, active)]
    except UopError:
        return Explained()
    *alone, together = probe(mended)
    if together is not None:
        return Explained(rest=(mended[-1], together) if alike(together, failure) else None)
    mends = [parts for parts, found in zip(chosen, alone, strict=True) if found is None]
    first = next(iter(mends), chosen[0])
    return Explained(first[0].repro.number, is_exact=not any(p.images for p in first))


@cache
def _program_of(text: str) -> Candidate | None:
    """The program of a repro; None for a text that must be rejected."""
    *_, case = parse_file(text).cases
    if case.root is None:
        return None
    return Candidate(case.root, inputs_of(case))


def _parts(start: Candidate, repro: Repro) -> Iterator[Part]:
    """The parts of a program in which a repro occurs, from the last node on."""
    in_kernel = kind_of(start.root).calls_kernels
    if repro.computes_nothing:
        yield from _values_alone(start, repro)
        return
    nodes = start.root.toposort() if in_kernel else outside(start.root)
    pattern = repro.program.root
    values: Mapping[UOp, Array] | None = None
    # A size is no constant that is computed with.
    sizes = {s for u in nodes if u.op is Op.STACK and is_shape(u) for s in (u, *u.src)}
    places = [u for u in reversed(nodes) if u not in sizes]
    for match in islice(matches(pattern, places), PLACES):
        root = match[pattern]
        images = tuple(_images(repro.program, match)) if _is_changed(match) else ()
        if _is_changed(match) and not images:
            continue
        leaves = [u for p, u in match.items() if p.op is Op.PARAM and u.op not in LEAVES]
        leaves += [a for u in match.values() if u.op is Op.FUNCTION for a in u.src[1:]]
        if in_kernel or root.addrspace is not None:
            yield Part(repro, root, None, images or (repro.program,), is_cut=False)
        elif root is start.root and not leaves:
            if _may_show(repro, start):
                yield Part(repro, root, None, images)
        else:
            values = _values(start) if values is None else values
            with suppress(UopError):
                own = valid(cut(replace(start, root=root), values, leaves))
                if _may_show(repro, own):
                    yield Part(repro, root, own, images)


def _values_alone(start: Candidate, repro: Repro) -> Iterator[Part]:
    """Each input as the repro has its own; and the result where the repro is an input alone.

    Where special values are wrong, those of the repro's dtype.
    """
    for slot, a in _moved(start, repro.is_read).items():
        u = param(slot, a.shape, STORED[a.dtype])
        root = read_alone(u) if repro.is_read else u
        if root is None or (repro.special and u.dtype is not repro.moved):
            continue
        if _may_show(repro, own := Candidate(root, {slot: a})):
            yield Part(repro, root, own, () if u.dtype is repro.moved else (own,))


def _moved(start: Candidate, is_read: bool) -> dict[int, Array]:
    """What a program reads, by slot, and gives back: the right result, in a further slot."""
    result = None if is_read else _values(start).get(start.root)
    further = {} if result is None else {max(start.inputs, default=-1) + 1: result}
    return {**start.inputs, **further}


def _values(start: Candidate) -> Mapping[UOp, Array]:
    """The interpreted values; none of a program that only its source gives a meaning."""
    try:
        return interpreted(start)
    except (UndefinedError, UnsupportedError):
        return {}


def _may_show(repro: Repro, own: Candidate) -> bool:
    """Whether a program has values that are special in the way in which a repro needs them."""
    return not repro.special or bool(special_classes(own) & repro.special)


def _is_changed(match: Match) -> bool:
    """Whether a part has other dtypes than the repro, which then must fail on these too."""
    is_same = all(p.dtype is u.dtype for p, u in match.items())
    return not is_same and all(p.op is not Op.FUNCTION for p in match)


def _images(repro: Candidate, match: Match) -> Iterator[Candidate]:
    with suppress(UopError):
        for image in transplanted(repro, match):
            yield valid(image)

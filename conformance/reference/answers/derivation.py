"""Derives the accepted set of one element of a case, node by node, with rules and knobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from uop.conformance.checks import OptionError
from uop.conformance.reference.answers.exact import arithmetic
from uop.conformance.reference.words import decisions_of, latitude_words
from uop.conformance.suite.case import Case
from uop.interpreter.accept import accept, read_by
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.tensors import accepted_of_tensors
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.rules.movement import value_sources
from uop.interpreter.show import accepted_words
from uop.interpreter.tensor.evaluation import MEANINGS
from uop.interpreter.values import Value
from uop.spec.documents.rows import rows_of
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.extension import in_core_ops
from uop.spec.graph import inlined, kind_of
from uop.spec.latitude import KNOBS, STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import knob_choices, profile_of
from uop.spec.text.program import lines_by_node
from uop.spec.uop import UOp


def needed_of(root: UOp, mask: Mask, values: Mapping[UOp, Value]) -> dict[UOp, Mask]:
    """The elements of each node that the elements `mask` of the root need."""
    needed = {root: mask}
    for u in reversed(root.toposort()):
        if u not in needed or u not in values:
            continue
        for s, part in _needed_by(u, needed[u], values).items():
            needed[s] = part | needed[s] if s in needed else part
    return needed


def _needed_by(u: UOp, mask: Mask, values: Mapping[UOp, Value]) -> dict[UOp, Mask]:
    """The elements of each operand that the elements `mask` of a node need; all where unknown."""
    sources = [s for s in value_sources(u) if s in values]
    # Evaluating what copies elements on distinct numbers shows where each comes from. A SLICE may
    # read the bytes of one dtype as another.
    copies = u.declaration.is_view or u.op in (Op.STACK, Op.SLICE, Op.INDEX)
    if copies and u.dtype is u.src[0].dtype:
        return _moved(u, mask, sources, values)
    needed: dict[UOp, Mask] = {}
    for s in sources:
        shape = values[s].data.shape
        if u.op in (Op.REDUCE, Op.REPLICATED) and mask.ndim == len(shape):
            # An element needs all elements along an axis of the operand.
            part = np.broadcast_to(mask, shape)
        elif shape == mask.shape or (u.declaration.is_elementwise and u.op is not Op.BITCAST):
            part = _unbroadcast(mask, shape)
        else:
            part = np.ones(shape, np.bool_)
        needed[s] = needed[s] | part if s in needed else part
    return needed


def _moved(u: UOp, mask: Mask, sources: list[UOp], values: Mapping[UOp, Value]) -> dict[UOp, Mask]:
    """The elements that a movement op copies from; for an INDEX also its index numbers."""
    first: dict[UOp, int] = {}
    numbered: list[Value] = []
    start = 1
    for position, s in enumerate(sources):
        data = values[s].data
        if u.op is Op.INDEX and position:
            numbered.append(values[s])
            continue
        begin = first.setdefault(s, start)
        numbered.append(Value(np.arange(begin, begin + data.size).reshape(data.shape)))
        start = max(start, begin + data.size)
    came_from = MEANINGS[u.op](u, *numbered).data
    chosen = came_from[mask]
    needed: dict[UOp, Mask] = {}
    for s in sources:
        data = values[s].data
        if s in first:
            part = np.isin(np.arange(first[s], first[s] + data.size), chosen)
            needed[s] = part.reshape(data.shape)
        else:
            needed[s] = np.ones(data.shape, np.bool_)
    return needed


def _unbroadcast(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """The elements of an operand of this shape that broadcast to those of a mask."""
    lead = mask.ndim - len(shape)
    stretched = tuple(
        k for k in range(mask.ndim) if k < lead or (shape[k - lead] == 1 and mask.shape[k] != 1)
    )
    return np.asarray(mask.any(axis=stretched, keepdims=True)).reshape(shape)


MANY = 4
"""A step shows at most this many elements of a node."""


@dataclass(frozen=True, slots=True)
class Query:
    """The element to explain: its batch, output and place; None is the first place."""

    batch: int = 0
    output: int = 0
    place: tuple[int, ...] | None = None
    profile: Profile = STRICT
    stated: Sequence[Accepted] | None = None
    """The sets that the file of the case states for each output."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node: its line, the accepted sets of the elements that matter here, and the reasons.

    `exact` has the arithmetic of these elements where the op has one.
    """

    line: str
    elements: tuple[tuple[str, str], ...]
    left_out: int
    reasons: tuple[tuple[str, str], ...]
    exact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Derivation:
    """The nodes that an element depends on, its accepted set, and the knobs that change that."""

    where: str
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    demanded: str
    knobs: tuple[tuple[str, str], ...]


def derive(case: Case, query: Query) -> Derivation:
    """Derive the accepted set of an element.

    OptionError for an element that does not exist, UndefinedError for a program without meaning.
    """
    # A lowered program is judged by its source.
    root = case.root if case.source is None else case.source.root
    batches = case.batches if case.source is None else case.source.batches
    if not 0 <= query.batch < len(batches):
        raise OptionError(f"--batch: expected a number below {len(batches)}, found {query.batch}")
    inputs = batches[query.batch].inputs
    accepted = accept(root, inputs, query.profile)
    if not 0 <= query.output < len(accepted):
        message = f"expected a number below {len(accepted)}, found {query.output}"
        raise OptionError(f"--output: {message}")
    shape = accepted[query.output].value.data.shape
    flat, place = _place(shape, query.place)
    where = (
        f"batch {query.batch} of {len(batches)}, output {query.output} of {len(accepted)}, "
        f"element [{place}] of [{','.join(map(str, shape))}]"
    )
    return Derivation(
        where,
        tuple(_notes(case, root, query)),
        () if kind_of(root).calls_kernels else tuple(_steps(root, inputs, query, flat)),
        accepted_words((accepted if query.stated is None else query.stated)[query.output], flat),
        tuple(_knobs(root, inputs, query, flat)) if query.stated is None else (),
    )


def _place(shape: tuple[int, ...], place: tuple[int, ...] | None) -> tuple[int, str]:
    """The row-major number of an element, and its index as `1,0`."""
    if 0 in shape:
        raise OptionError(f"--element: the output has none, its shape is {list(shape)}")
    chosen = (0,) * len(shape) if place is None else place
    fits = len(chosen) == len(shape) and all(0 <= i < n for i, n in zip(chosen, shape, strict=True))
    if not fits:
        found = ",".join(map(str, chosen))
        expected = f"{len(shape)} numbers below {list(shape)}" if shape else "none, for a scalar"
        raise OptionError(f"--element: expected {expected}; found {found}")
    flat = int(np.ravel_multi_index(chosen, shape)) if shape else 0
    return flat, ",".join(map(str, chosen))


def _notes(case: Case, root: UOp, query: Query) -> Iterator[str]:
    if query.stated is not None:
        yield "its file says what is accepted; the steps show what the spec accepts"
    if case.source is not None:
        yield "judged by the graph that the program was made of, which is shown"
    if kind_of(root).calls_kernels:
        yield "a program of kernels: what it may leave is shown, not how that comes about"
    if case.twins:
        yield f"demanded of its twins too: {', '.join(twin.name for twin in case.twins)}"


def as_walked(
    root: UOp, inputs: Mapping[int, Array], profile: Profile
) -> tuple[UOp, dict[UOp, Value]]:
    """The program in core ops with calls inlined, and its inputs."""
    root, values = read_by(root, inputs, profile)
    root = in_core_ops(root)
    if any(u.op in (Op.FUNCTION, Op.GETTUPLE) for u in root.toposort()):
        root = inlined(root)
    return root, values


def _steps(root: UOp, inputs: Mapping[int, Array], query: Query, flat: int) -> Iterator[Step]:
    root, values = as_walked(root, inputs, query.profile)
    accepted: dict[UOp, Accepted] = {}
    with np.errstate(all="ignore"):
        accepted_of_tensors(root, values, query.profile, accepted.__setitem__)
    needed = _needed(root, accepted, query.output, flat)
    lines = lines_by_node(root)
    explained: set[Op] = set()
    for u in root.toposort():
        if u not in needed or u not in lines or not needed[u].any():
            continue
        yield _step(lines[u], u, needed, accepted, u.op not in explained)
        explained.add(u.op)


def _needed(root: UOp, accepted: Mapping[UOp, Accepted], output: int, flat: int) -> dict[UOp, Mask]:
    """The elements of each node on which an element of an output depends."""
    values = {u: sets.value for u, sets in accepted.items()}
    target = root.src[output] if root.op is Op.TUPLE else root
    if any(u.addrspace is not None for u in root.toposort()):
        # Only execution shows which elements of a location are read and written.
        return {u: np.ones(value.data.shape, np.bool_) for u, value in values.items()}
    mask = np.zeros(values[target].data.shape, np.bool_)
    mask.reshape(-1)[flat] = True
    return needed_of(target, mask, values)


def _step(
    line: str,
    u: UOp,
    needed: Mapping[UOp, Mask],
    accepted: Mapping[UOp, Accepted],
    is_first: bool,
) -> Step:
    places = np.flatnonzero(needed[u])
    shape = accepted[u].value.data.shape
    elements = [
        (f"[{','.join(map(str, np.unravel_index(k, shape)))}]", accepted_words(accepted[u], int(k)))
        for k in places[:MANY]
    ]
    reasons = [] if u.declaration.is_source else list(_reasons(u, needed, accepted, is_first))
    exact = (arithmetic(u, int(k), accepted) for k in places[:MANY])
    left_out = max(0, len(places) - MANY)
    return Step(line, tuple(elements), left_out, tuple(reasons), tuple(filter(None, exact)))


def _reasons(
    u: UOp, needed: Mapping[UOp, Mask], accepted: Mapping[UOp, Accepted], is_first: bool
) -> Iterator[tuple[str, str]]:
    """Why a node has its accepted set; the rules of an op only where it is first."""
    if is_first:
        declaration = u.declaration
        yield "meaning", declaration.doc
        for names, sentence in latitude_words(declaration):
            if u.dtype.name in names.split():
                yield "latitude", sentence
        rows = [row for row in rows_of(u.op.name) if row.id.endswith(f"/{u.op.name}")]
        if rows:
            yield "row", ", ".join(row.id for row in rows)
        yield from (("reading", f"{n} {title}") for n, title in decisions_of(rows))
    if not _is_wide(u, needed, accepted):
        return
    wide = [s for s in u.src if s in accepted and _is_wide(s, needed, accepted)]
    own = "its operands have one value each, the op may give several"
    yield "several", "its operands may be several values" if wide else own


def _is_wide(u: UOp, needed: Mapping[UOp, Mask], accepted: Mapping[UOp, Accepted]) -> bool:
    return u in needed and bool((needed[u] & ~accepted[u].single).any())


def _knobs(
    root: UOp, inputs: Mapping[int, Array], query: Query, flat: int
) -> Iterator[tuple[str, str]]:
    """Each setting of a knob under which the accepted set differs, and that set."""

    def demanded(profile: Profile) -> str:
        try:
            return accepted_words(accept(root, inputs, profile)[query.output], flat)
        except UndefinedError:
            return "no meaning"
        except UnsupportedError as error:
            return str(error)

    now = demanded(query.profile)
    for knob in KNOBS:
        for text in knob_choices(knob):
            other = getattr(profile_of({knob: text}), knob)
            if other != getattr(query.profile, knob):
                then = demanded(replace(query.profile, **{knob: other}))
                if then != now:
                    yield f"{knob}={text}", then

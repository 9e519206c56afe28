"""The forms of a program between the stages of the compiler, as data, and their verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from uop.spec.args import AddrSpace, AxisType, RangeArg, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError
from uop.spec.graph import AROUND_CALLS, outside
from uop.spec.kernel.listing import BLOCK_ENDS, BLOCK_STARTS
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import SIZE_OPS, is_variable
from uop.spec.registry import ops_of
from uop.spec.uop import UOp

Order = Sequence[UOp]


class BodyNodes:
    """The nodes of a body, sources first, with an index by op."""

    __slots__ = ("by_op", "order")

    def __init__(self, order: Order) -> None:
        self.order = order
        self.by_op: dict[Op, list[UOp]] = {}
        for u in order:
            self.by_op.setdefault(u.op, []).append(u)

    def of(self, *ops: Op) -> Iterator[UOp]:
        """The nodes of these ops, op by op."""
        return (u for op in ops for u in self.by_op.get(op, ()))


@dataclass(frozen=True, slots=True)
class Invariant:
    """A condition on each body. `broken` returns a node that breaks it, or None."""

    label: str
    title: str
    broken: Callable[[BodyNodes], UOp | None]


@dataclass(frozen=True, slots=True)
class Form:
    """The output form of a stage: a SINK of calls of bodies, and what the bodies may have."""

    stage: str
    around: frozenset[Op]
    """The ops outside the bodies."""
    call: Op
    """The op that calls a body: FUNCTION or CALL."""
    body: Op
    """The root of a body."""
    ops: frozenset[Op]
    """The ops inside a body."""
    axis_types: frozenset[AxisType] = frozenset()
    """The axis types of the RANGEs in a body."""
    invariants: tuple[Invariant, ...] = ()

    @property
    def conditions(self) -> dict[str, Condition]:
        """Everything that `verify` checks, by the part of the label after the stage."""
        titles = {
            "root": "the root is a SINK",
            "around": "no such op outside a body",
            "body": f"a body is a {self.body.name}",
            "ops": "no such op in a body",
            "axis_types": "no such axis type",
        } | {invariant.label: invariant.title for invariant in self.invariants}
        return {name: Condition(f"{self.stage}.{name}", title) for name, title in titles.items()}

    def with_invariants(self, *invariants: Invariant) -> Form:
        return replace(self, invariants=(*self.invariants, *invariants))


def verify(root: UOp, form: Form) -> None:
    """PassError with stage and node if a program does not have the form."""
    if root.op is not Op.SINK:
        raise _broken(form, "root", root)
    bodies: dict[UOp, None] = {}
    for u in outside(root):
        if u.op not in form.around and u.op is not form.call:
            raise _broken(form, "around", u)
        if u.op is form.call and u.src[0].op is not Op.CUSTOMFUNCTION:
            bodies[u.src[0]] = None
    for body in bodies:
        if body.op is not form.body:
            raise _broken(form, "body", body)
        _verify_body(body, form)


@dataclass(frozen=True, slots=True)
class _Known:
    """Cached facts about a body; many stages leave a body unchanged."""

    ops: frozenset[Op]
    axis_types: frozenset[AxisType]
    held: set[Callable[[BodyNodes], UOp | None]]
    """The invariants that hold for the body."""


_KNOWN: WeakKeyDictionary[UOp, _Known] = WeakKeyDictionary()


def _verify_body(body: UOp, form: Form) -> None:
    known = _KNOWN.get(body)
    nodes = None
    if known is None:
        nodes = BodyNodes(body.toposort())
        axis_types = frozenset(arg_of(r, RangeArg).axis_type for r in nodes.of(Op.RANGE))
        known = _KNOWN[body] = _Known(frozenset(nodes.by_op), axis_types, set())
    if not (known.ops <= form.ops and known.axis_types <= form.axis_types):
        raise _stray(body, form)
    for invariant in form.invariants:
        if invariant.broken in known.held:
            continue
        nodes = nodes or BodyNodes(body.toposort())
        found = invariant.broken(nodes)
        if found is not None:
            raise _broken(form, invariant.label, found)
        known.held.add(invariant.broken)


def _stray(body: UOp, form: Form) -> PassError:
    """The error for the first node that a body of this form may not have."""
    u = next(
        u
        for u in body.toposort()
        if u.op not in form.ops
        or (u.op is Op.RANGE and arg_of(u, RangeArg).axis_type not in form.axis_types)
    )
    return _broken(form, "axis_types" if u.op in form.ops else "ops", u)


def _broken(form: Form, name: str, u: UOp) -> PassError:
    condition = form.conditions[name]
    arg = "" if u.arg is None else f" {u.arg}"
    return PassError(f"{form.stage}: {condition.title} ({condition.label}): found {u!r}{arg}")


def open_ranges(order: Order) -> dict[UOp, frozenset[UOp]]:
    """For each node of a kernel the RANGEs around it: those of its sources, without those that
    REDUCE and END close.
    """
    inside: dict[UOp, frozenset[UOp]] = {}
    for u in order:
        found: frozenset[UOp] = frozenset()
        for s in u.src:
            if inside[s] and inside[s] is not found:
                found = found | inside[s] if found else inside[s]
        if u.op is Op.RANGE:
            found = found | {u}
        elif found and u.op is Op.END:
            found = found - {u.src[1]}
        elif found and u.op is Op.REDUCE:
            found = found.difference(u.src[1:])
        inside[u] = found
    return inside


def effects_of_loops(order: Order) -> dict[UOp, UOp]:
    """The effects that only the body of one END uses, with the RANGE of that END."""
    users: dict[UOp, set[UOp]] = {}
    for u in order:
        for s in u.src:
            users.setdefault(s, set()).add(u)
    loop: dict[UOp, UOp] = {}
    for u in reversed(order):
        using = users.get(u, set())
        if u.dtype is not dtypes.void or len(using) != 1:
            continue
        (user,) = using
        if user.op is Op.END:
            loop[u] = user.src[1]
        elif user in loop and user.op is Op.GROUP:
            loop[u] = loop[user]
    return loop


def closed_by(u: UOp) -> tuple[UOp, ...]:
    """The RANGEs that an END or REDUCE closes."""
    return u.src[1:] if u.op in (Op.END, Op.REDUCE) else ()


def _may_have_shape(u: UOp) -> bool:
    """Whether it is a memory location or a shape operand."""
    return u.declaration.is_source or u.op in (Op.AFTER, Op.STACK)


def _not_scalar(nodes: BodyNodes) -> UOp | None:
    """Only memory locations and shape operands may have a shape other than ()."""
    return next((u for u in nodes.order if u.shape and not _may_have_shape(u)), None)


def _not_scalar_nor_fragment(nodes: BodyNodes) -> UOp | None:
    """As `_not_scalar`, but the fragments of a WMMA and their fold may have a shape too."""
    for u in nodes.order:
        if u.shape and not _may_have_shape(u):
            is_product = u.op is Op.WMMA or (u.op is Op.REDUCE and u.src[0].op is Op.WMMA)
            if not is_product:
                return u
    return None


def _not_vector(nodes: BodyNodes) -> UOp | None:
    """Values are scalars or vectors."""
    return next((u for u in nodes.order if len(u.shape) > 1 and not _may_have_shape(u)), None)


def _not_on_axes(nodes: BodyNodes) -> UOp | None:
    """Values have shape (), or sizes of 1 or of an expanded loop on its axis."""
    rank, sizes = 0, dict[int, int]()
    for u in nodes.of(*ELEMENTWISE):
        if u.shape and len(u.shape) != (rank or len(u.shape)):
            return u
        rank = len(u.shape) or rank
        for axis, size in enumerate(u.shape):
            if size != 1 and sizes.setdefault(axis, size) != size:
                return u
    return None


def _not_flat(nodes: BodyNodes) -> UOp | None:
    for u in nodes.of(Op.PARAM):
        if (len(u.shape) != 1 or u.addrspace is not AddrSpace.GLOBAL) and not is_variable(u):
            return u
    for u in nodes.of(Op.BUFFER):
        if len(u.shape) != 1 or u.addrspace is AddrSpace.GLOBAL:
            return u
    return None


def _not_through_index(nodes: BodyNodes) -> UOp | None:
    for u in nodes.of(Op.LOAD, Op.STORE, Op.ATOMICADD):
        place = u.src[0]
        if place.op is not Op.INDEX or len(place.src) != 2 or place.addrspace is None:
            return u
    return None


def _location_as_value(nodes: BodyNodes) -> UOp | None:
    for u in nodes.order:
        for k, s in enumerate(u.src):
            if s.addrspace is None or u.op in (Op.AFTER, Op.LINEAR, Op.PROGRAM):
                continue
            if k or not (u.op in (Op.INDEX, Op.GETADDR) or u.declaration.access):
                return u
    return None


def _repeated_id(nodes: BodyNodes) -> UOp | None:
    seen: set[int] = set()
    for u in nodes.of(Op.RANGE):
        if arg_of(u, RangeArg).id in seen:
            return u
        seen.add(arg_of(u, RangeArg).id)
    return None


def _left_open(nodes: BodyNodes) -> UOp | None:
    order = nodes.order
    return next(
        iter(sorted(open_ranges(order)[order[-1]], key=lambda r: arg_of(r, RangeArg).id)), None
    )


def _closed_twice(nodes: BodyNodes) -> UOp | None:
    closed: set[UOp] = set()
    for u in nodes.of(Op.REDUCE, Op.END):
        for r in closed_by(u):
            if r in closed:
                return u
            closed.add(r)
    return None


def _instructions(nodes: BodyNodes) -> Order:
    body = nodes.order[-1]
    return body.src[0].src if body.op is Op.PROGRAM else body.src


def _used_before(nodes: BodyNodes) -> UOp | None:
    done: set[UOp] = set()
    for u in _instructions(nodes):
        for s in u.src:
            if s not in done:
                return u
        done.add(u)
    return None


def _unbalanced(nodes: BodyNodes) -> UOp | None:
    opened: list[UOp] = []
    for u in _instructions(nodes):
        if u.op in BLOCK_STARTS:
            opened.append(u)
        elif u.op in BLOCK_ENDS:
            closed = u.src[1] if u.op is Op.END else u.src[0]
            if not opened or opened.pop() is not closed:
                return u
    return opened[0] if opened else None


ELEMENTWISE = ops_of("elementwise", "decomposed") | {Op.MIN}
"""MIN is an extension op that targets implement like MAX."""
OPAQUE = {Op.INS, Op.CUSTOM, Op.GETADDR}
"""Ops that only the device knows how to compute."""
BELOW_THE_GRAPH = (ops_of("codegen") - {Op.GETADDR}) | {Op.RANGE, Op.END, Op.LINEAR}
"""The ops that occur only in the body of a CALL, and in no graph of whole tensors."""

SCALAR = (
    Invariant("scalar", "every value has shape ()", _not_scalar),
    Invariant(
        "flat", "a PARAM is flat and GLOBAL, or a variable, a BUFFER flat and not GLOBAL", _not_flat
    ),
    Invariant("access", "LOAD and STORE go through INDEX(memory, i)", _not_through_index),
    Invariant("values", "ops take values, not locations", _location_as_value),
    Invariant("id", "each RANGE has an id of its own", _repeated_id),
)
LOOPS = (
    Invariant("closed", "every RANGE is closed", _left_open),
    Invariant("once", "a RANGE is closed once", _closed_twice),
)
ORDER = (
    Invariant("order", "sources come before their uses", _used_before),
    Invariant("balance", "RANGE and END, IF and ENDIF are balanced", _unbalanced),
)

CALLIFIED = Form(
    "callify",
    around=AROUND_CALLS | SIZE_OPS | {Op.STORE, Op.GETTUPLE, Op.CALL},
    call=Op.FUNCTION,
    body=Op.TUPLE,
    ops=ELEMENTWISE
    | ops_of("movement", "reduce", "marker", "load")
    | {Op.PARAM, Op.CONST, Op.BINARY, Op.TUPLE, Op.GETADDR},
)
RANGED = Form(
    "rangeify",
    around=AROUND_CALLS | SIZE_OPS,
    call=Op.CALL,
    body=Op.SINK,
    ops=ELEMENTWISE
    | OPAQUE
    | {Op.PARAM, Op.CONST, Op.STACK, Op.INDEX, Op.BITCAST, Op.LOAD, Op.STORE, Op.RANGE, Op.END}
    | {Op.REDUCE, Op.GROUP, Op.SINK},
    axis_types=frozenset({AxisType.LOOP, AxisType.REDUCE}),
    invariants=SCALAR + LOOPS,
)
OPTIMIZED = replace(
    RANGED,
    stage="optimize",
    ops=RANGED.ops | {Op.WMMA, Op.BUFFER, Op.AFTER, Op.BARRIER},
    axis_types=frozenset(AxisType) - {AxisType.LOOP},
    invariants=(
        Invariant("scalar", "a value has shape () or is a fragment", _not_scalar_nor_fragment),
        *(SCALAR + LOOPS)[1:],
    ),
)
EXPANDED = replace(
    OPTIMIZED,
    stage="expand",
    ops=OPTIMIZED.ops | {Op.RESHAPE, Op.EXPAND},
    invariants=(
        Invariant("axes", "a value has shape () or an axis for each expanded loop", _not_on_axes),
        *(SCALAR + LOOPS)[1:],
    ),
    axis_types=OPTIMIZED.axis_types - {AxisType.UPCAST, AxisType.UNROLL},
)
VECTORS = (
    Invariant("vectors", "every value has shape () or is a vector", _not_vector),
    *SCALAR[1:],
)
SELECTED = replace(
    EXPANDED,
    stage="select",
    ops=(OPTIMIZED.ops - {Op.REDUCE}) | {Op.SPECIAL, Op.ATOMICADD},
    invariants=VECTORS + LOOPS,
    axis_types=frozenset({AxisType.REDUCE, AxisType.LOOP}),
)
ONE_BY_ONE = replace(SELECTED, ops=SELECTED.ops | {Op.REDUCE})
"""SELECTED with folds: loops whose iterations depend on each other stay loops."""
BY_ITEMS = replace(ONE_BY_ONE, axis_types=EXPANDED.axis_types | {AxisType.LOOP})
"""ONE_BY_ONE in loops whose iterations are work items."""
LINEARIZED = replace(
    SELECTED,
    stage="linearize",
    body=Op.LINEAR,
    ops=(SELECTED.ops - {Op.SINK}) | {Op.LINEAR, Op.IF, Op.ENDIF},
    invariants=VECTORS + ORDER,
)
LISTED = replace(LINEARIZED, ops=LINEARIZED.ops | {Op.REDUCE}, invariants=SCALAR[1:] + ORDER)
"""LINEARIZED with values of any shape and their folds, which linearize splits into scalars."""
PLANNED = replace(LINEARIZED, stage="plan")
RENDERED = replace(
    PLANNED, stage="render", body=Op.PROGRAM, ops=PLANNED.ops | {Op.PROGRAM, Op.SOURCE, Op.BINARY}
)

FORMS = {
    form.stage: form
    for form in (
        CALLIFIED, RANGED, OPTIMIZED, EXPANDED, SELECTED, LINEARIZED, PLANNED, RENDERED,
    )
}  # fmt: skip
"""The output form of each stage, in their order."""

"""Compute the accepted results of a tensor graph: the reference, with sets where they are wider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.cells import SetCells
from uop.interpreter.accepted.kernels import launch_accepted
from uop.interpreter.accepted.locations import AcceptedMemory
from uop.interpreter.accepted.result import Accepted, as_output, narrowed, widens
from uop.interpreter.accepted.rules.choices import where
from uop.interpreter.accepted.rules.folds import Trees, reduce
from uop.interpreter.accepted.sets import Sets, together, without
from uop.interpreter.kernel.buffers import Addresses, Buffer
from uop.interpreter.rules.movement import checked_index, outside_pad
from uop.interpreter.rules.table import RULES
from uop.interpreter.tensor.evaluation import ARRAYS, Evaluation
from uop.interpreter.tensor.masks import over_result
from uop.interpreter.values import Value, either
from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.conditions.clauses import undefined
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def moved(u: UOp, t: Sets) -> Sets:
    """Apply PERMUTE, FLIP, RESHAPE, EXPAND, SHRINK or PAD to sets."""
    result = t.map(lambda a: RULES[u.op](u, a))
    if u.op is Op.PAD and arg_of(u, args.PadArg).fill is args.PadFill.INVALID:
        return replace(result, invalid=either(result.invalid, outside_pad(u)))
    return result


def replicated(u: UOp, t: Sets) -> Sets:
    """Return the union of the sets of all copies."""
    axes = arg_of(u, args.ReplicatedArg).axes
    unsure = Sets(np.zeros(u.shape, np.bool_), np.ones(u.shape, np.bool_))
    result: Sets | None = None
    for position in np.ndindex(*(t.lo.shape[a] for a in axes)):
        where_it_is = [slice(None)] * t.lo.ndim
        for axis, at in zip(axes, position, strict=True):
            where_it_is[axis] = slice(at, at + 1)
        index = tuple(where_it_is)
        copy = t.map(lambda a, index=index: a[index])  # type: ignore[misc]
        result = copy if result is None else where(u, STRICT, unsure, result, copy)
    assert result is not None
    return result


def index(u: UOp, t: Sets, *indices: Sets) -> Sets:
    """Apply an INDEX; an uncertain index accepts anything, if all of its values are in bounds."""
    positions, absent, unsure = [], None, None
    for axis, i in enumerate(indices):
        if without(i.any, i.invalid) is not None and np.any(without(i.any, i.invalid)):
            raise undefined("INDEX.u2", f"an UNSPECIFIED element on axis {axis}", u)
        checked_index(u, axis, i.hi, i.invalid)
        positions.append(checked_index(u, axis, i.lo, i.invalid))
        if i.invalid is not None:
            absent = either(absent, over_result(u, axis, i.invalid))
        unsure = either(unsure, over_result(u, axis, np.asarray(~i.is_point())))
    picked = t.map(lambda a: np.asarray(RULES[Op.INDEX](u, a, *positions)))
    return replace(picked, any=either(picked.any, unsure), invalid=either(picked.invalid, absent))


def load(u: UOp, buf: Sets, *alt_gate: Sets) -> Sets:
    """Apply a LOAD.

    It is a copy. Where the gate is false, or an element of a location is absent, it is the
    alternative, or 0 without one.
    """
    zero = np.zeros_like(buf.lo)
    alt = alt_gate[0] if alt_gate else Sets(zero, zero)
    true = np.ones(u.shape, np.bool_)
    taken = alt_gate[1] if len(alt_gate) > 1 else Sets(true, true)
    if taken.any is not None and taken.any.any():
        raise undefined("LOAD.u1", "an UNSPECIFIED element of the gate", u)
    absent = taken.invalid
    if u.src[0].addrspace is not None:
        absent = either(absent, buf.invalid)
    lo, hi = taken.lo, taken.hi
    if absent is not None:
        lo, hi = lo & ~absent, hi & ~absent
    gate, buf, alt = (
        s.map(lambda a: np.broadcast_to(a, u.shape)) for s in (Sets(lo, hi), buf, alt)
    )
    return where(u, STRICT, gate, buf, alt)


MOVES: dict[Op, Callable[..., Sets]] = {
    **dict.fromkeys((op for op, d in DECLARATIONS.items() if d.is_view), moved),
    Op.STACK: lambda u, *operands: together(operands, np.stack),
    Op.REPLICATED: replicated,
    Op.INDEX: index,
    Op.LOAD: load,
}


def accepted_of_tensors(
    root: UOp,
    inputs: Mapping[UOp, Value],
    profile: Profile,
    observe: Callable[[UOp, Accepted], None] | None = None,
) -> tuple[Accepted, ...]:
    """Return the accepted results of each output of a tensor graph.

    `observe` is called with each node and its accepted results.
    """
    sets = AcceptedValues(root, profile)
    lifted = {u: sets.lift(u, value) for u, value in inputs.items()}
    result = Evaluation(root, lifted, sets, observe).result()
    if isinstance(result, dict):
        result = tuple(result[slot] for slot in sorted(result))
    outputs = result if isinstance(result, tuple) else (result,)
    nodes = root.src if root.op is Op.TUPLE else (root,) * len(outputs)
    return tuple(
        as_output(u, profile, narrowed(a.dtype, a.value, a.sets))
        for u, a in zip(nodes, outputs, strict=True)
    )


class AcceptedValues:
    """The domain of accepted values of a tensor graph under a profile."""

    def __init__(self, root: UOp, profile: Profile) -> None:
        self._profile, self._trees = profile, Trees(root, profile)

    def lift(self, u: UOp, value: Value) -> Accepted:
        return Accepted(u.dtype, value)

    def result(self, u: UOp, operands: list[Accepted]) -> Accepted:
        values = [a.value for a in operands]
        value = ARRAYS.result(u, values)
        if all(a.sets is None for a in operands) and not widens(u, self._profile, values, value):
            return Accepted(u.dtype, value)
        return narrowed(u.dtype, value, self.sets(u, [a.spread for a in operands]))

    def memory(self, contents: Mapping[UOp, Accepted | None]) -> AcceptedMemory:
        return AcceptedMemory(contents)

    def reference(self, value: Accepted) -> Value:
        return value.value

    def launch(
        self,
        body: UOp,
        arguments: list[Buffer],
        held: Mapping[Buffer, Accepted],
        addresses: Addresses,
    ) -> dict[Buffer, Accepted]:
        sets = {
            buffer: SetCells.holding(buffer, contents.sets)
            for buffer, contents in held.items()
            if contents.sets is not None
        }
        launch_accepted(body, arguments, addresses, sets, self._profile)
        return {
            buffer: narrowed(
                contents.dtype, buffer.contents, sets[buffer].held() if buffer in sets else None
            )
            for buffer, contents in held.items()
        }

    def sets(self, u: UOp, operands: list[Sets]) -> Sets:
        """Return the accepted results of an op for operands that are sets."""
        result = _results(u, self._profile, operands)
        return self._trees.regrouped(u, operands, result, lambda _, s: s)


def _results(u: UOp, profile: Profile, operands: list[Sets]) -> Sets:
    if u.op in MOVES:
        return MOVES[u.op](u, *operands)
    if u.op is Op.SLICE:
        return _sliced(u, profile, *operands)
    if u.op is Op.REDUCE:
        return reduce(u, profile, *operands)
    if u.op is Op.BITCAST or u.declaration.is_elementwise:
        return elementwise(u, profile, *operands)
    return operands[0]


def _sliced(u: UOp, profile: Profile, t: Sets) -> Sets:
    """Apply a SLICE to each part of the sets."""
    views: list[UOp] = []
    view = cast("UOp", u.decompose())
    while view is not u.src[0]:
        views.append(view)
        view = view.src[0]
    for view in reversed(views):
        t = _results(view, profile, [t])
    return t

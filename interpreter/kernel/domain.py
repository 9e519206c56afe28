"""Define the domains of kernel values: the protocol, the reference on arrays, and serial folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import SimpleNamespace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from uop.interpreter.kernel.buffers import Buffer, Place, Registers
from uop.interpreter.kernel.lanes import (
    Lanes,
    in_warps,
    indexed,
    moved,
    repeated,
    reshaped,
    stacked,
)
from uop.interpreter.numeric.storage import Array, Mask, constant
from uop.interpreter.rules.codegen import meaning_of
from uop.interpreter.rules.reduce import fold, identity, neutral
from uop.interpreter.tensor import masks
from uop.interpreter.values import Value, either, full
from uop.spec.args import ConstArg, ReduceArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Access(Generic[V]):
    """A LOAD, STORE or ATOMICADD with its memory and place; the place is masked by the gate."""

    node: UOp
    memory: Buffer | Registers
    place: Place
    gate: V | None


class Domain(Protocol[V]):
    """Computes the values of one launch. The leading axes of an array are the lanes."""

    def lift(self, u: UOp, value: Value) -> V:
        """Make the value of a node that has exactly one."""

    def reference(self, value: V) -> Value:
        """Return the reference of a value."""

    def certain(self, value: V, what: str) -> Value:
        """Return the only value; raise UnsupportedError, which names `what`, for several."""

    def possible(self, gate: V) -> Value:
        """Return a gate that is true wherever this one may be true."""

    def result(self, u: UOp, operands: list[V]) -> V:
        """Compute an op on its operands."""

    def load(self, access: Access[V], alt: V | None) -> V: ...

    def store(self, access: Access[V], value: V) -> None: ...

    def add(self, access: Access[V], value: V) -> None: ...

    def finish(self) -> None:
        """Store what the launch wrote; called once, at its end."""


class Arrays:
    """The reference domain."""

    def __init__(self, body: UOp, lanes: Lanes) -> None:
        self._lanes = lanes

    def lift(self, u: UOp, value: Value) -> Value:
        return value

    def reference(self, value: Value) -> Value:
        return value

    def certain(self, value: Value, what: str) -> Value:
        return value

    def possible(self, gate: Value) -> Value:
        return gate

    def result(self, u: UOp, operands: list[Value]) -> Value:
        if not u.declaration.is_elementwise:
            return MEANINGS[u.op](self._lanes, u, operands)
        rank = len(u.shape)
        if rank:
            operands = [
                self._raised(v, len(s.shape), rank) for s, v in zip(u.src, operands, strict=True)
            ]
        return masks.elementwise(u, *operands)

    def _raised(self, value: Value, rank: int, to: int) -> Value:
        if rank == to:
            return value
        return moved(value, lambda a: self._lanes.raised(a, rank, to))

    def load(self, access: Access[Value], alt: Value | None) -> Value:
        value = access.memory.read(access.place)
        if access.gate is None or alt is None:
            return value
        return masks.where(access.node, Value(access.gate.data), value, alt)

    def store(self, access: Access[Value], value: Value) -> None:
        access.memory.write(access.place, value)

    def add(self, access: Access[Value], value: Value) -> None:
        access.memory.add(access.place, value, access.node.src[0].dtype)

    def finish(self) -> None:
        pass


def folded(domain: Domain[V], u: UOp, terms: Sequence[tuple[V, Mask | None]]) -> V:
    """Fold the terms in their order: the elements of a STACK, each followed by its own axes.

    In a lane that did not run an iteration its term changes nothing; a lane that ran none has the
    identity.
    """
    arg = arg_of(u, ReduceArg)
    kept = [_where(domain, u.src[0], active, v, neutral(arg.op, u.dtype)) for v, active in terms]
    stack = UOp(Op.STACK, *[u.src[0]] * len(kept))
    axes = (0, *(1 + axis for axis in arg.axes))
    total = UOp(Op.REDUCE, stack, arg=ReduceArg(arg.op, axes))
    first = index_const(0)
    sums = domain.result(total, [domain.result(stack, kept)])
    result = UOp(Op.INDEX, total, first)
    value = domain.result(result, [sums, domain.result(first, [])])
    ran = _anywhere([active for _, active in terms])
    return _where(domain, result, ran, value, identity(arg.op, u.dtype))


def _where(domain: Domain[V], u: UOp, active: Mask | None, value: V, other: Array) -> V:
    """Return the value of a node in active lanes, and another one elsewhere."""
    if active is None:
        return value
    gate, rest = const(True, dtypes.bool), const(other.item(), u.dtype)
    operands = [domain.lift(gate, Value(active)), value, domain.lift(rest, Value(other))]
    return domain.result(UOp(Op.WHERE, gate, u, rest), operands)


def _anywhere(actives: Sequence[Mask | None]) -> Mask | None:
    """Return the lanes that ran any iteration; None for all."""
    if any(active is None for active in actives):
        return None
    masks = [active for active in actives if active is not None]
    ran = reduce(np.logical_or, masks)
    return None if ran.all() else ran


def _bitcast(lanes: Lanes, u: UOp, operands: list[Value]) -> Value:
    (t,) = operands
    shape = (*t.data.shape[:-1], u.shape[-1]) if u.shape else t.data.shape
    node: Any = SimpleNamespace(op=u.op, dtype=u.dtype, shape=shape, src=u.src)
    return masks.bitcast(node, t)


def _opaque(lanes: Lanes, u: UOp, operands: list[Value]) -> Value:
    """Run an INS or CUSTOM; its result is unspecified where any operand element is."""
    data = np.asarray(meaning_of(u)(u, *(v.data for v in operands)))
    opened: Mask | None = None
    for s, v in zip(u.src, operands, strict=True):
        if v.unspecified is not None:
            mask, own = full(v.unspecified, v.data), len(s.shape)
            if own != len(u.shape):
                mask = np.asarray(mask.any(axis=tuple(range(mask.ndim - own, mask.ndim))))
                mask = lanes.raised(mask, 0, len(u.shape))
            opened = either(opened, mask)
    if opened is not None:
        opened = np.broadcast_to(opened, data.shape)
    return Value(data, None, opened, masks.made_nan(u, data))


def _wmma(lanes: Lanes, u: UOp, operands: list[Value]) -> Value:
    value = in_warps(u, operands, lanes.axes)
    return Value(value.data, None, value.unspecified, masks.made_nan(u, value.data))


def _reduce(lanes: Lanes, u: UOp, operands: list[Value]) -> Value:
    """Fold the axes of the ranges, the first one outermost, then the axes of the value."""
    (value,) = operands
    data = lanes.keepdims(u, fold(arg_of(u, ReduceArg).op, u.dtype, lanes.terms(u, value.data)))
    unspecified = None
    if value.unspecified is not None:
        opened = lanes.terms(u, value.unspecified).any(axis=0)
        unspecified = lanes.keepdims(u, np.asarray(opened))
    return Value(data, None, unspecified, masks.made_nan(u, data))


MEANINGS: Mapping[Op, Callable[[Lanes, UOp, list[Value]], Value]] = {
    Op.CONST: lambda lanes, u, _: Value(constant(arg_of(u, ConstArg).bits, u.dtype)),
    Op.STACK: lambda lanes, u, operands: stacked(operands, len(u.shape) - 1),
    Op.INDEX: lambda lanes, u, operands: indexed(u, operands[0], operands[1:]),
    Op.BITCAST: _bitcast,
    Op.REDUCE: _reduce,
    Op.RESHAPE: lambda lanes, u, operands: reshaped(u, operands[0]),
    Op.EXPAND: lambda lanes, u, operands: repeated(u, operands[0]),
    Op.AFTER: lambda lanes, u, operands: operands[0],
    Op.INS: _opaque,
    Op.CUSTOM: _opaque,
    Op.WMMA: _wmma,
}

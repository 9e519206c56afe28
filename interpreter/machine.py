"""Kernel programs: what the compiler's stages produce, run as a device would run it.

Work items and ranges without a carried dependence are numpy axes: a node's value has their sizes on
the axes it depends on and 1 on the others. Serial loops are Python loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter import masks
from uop.interpreter.buffers import Buffer, Buffers
from uop.interpreter.memory import base_of
from uop.interpreter.rules.reduce import fold, identity
from uop.interpreter.schedule import Items, Loop, bound, executed_sources, of_graph, of_linear
from uop.interpreter.tensor import Observer, constant
from uop.interpreter.values import Array, Mask, Value
from uop.spec.args import AddrSpace, ConstArg, ParamArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.walk import toposort

if TYPE_CHECKING:
    from uop.spec.uop import UOp

MOST_AXES = 64
"""What a numpy array can have."""


def is_kernel_program(root: UOp) -> bool:
    """A SINK of CALLs, or of AFTERs that hold them."""
    below = (s for u in root.src for s in ((u, *u.src) if u.op is Op.AFTER else (u,)))
    return root.op is Op.SINK and any(u.op is Op.CALL for u in below)


def run_program(
    root: UOp, given: Mapping[UOp, Value], observe: Observer | None
) -> dict[int, Value]:
    """Run the CALLs of a SINK in order; slot to contents of every BUFFER that was written."""
    buffers = Buffers(given)
    for u in toposort([root], lambda v: v.src[1:] if v.op is Op.CALL else v.src):
        if u.op is Op.CALL:
            arguments = [buffers.of_argument(a) for a in u.src[1:]]
            _Kernel(u.src[0], arguments, observe).run()
        elif u.op in (Op.STORE, Op.FUNCTION, Op.RANGE, Op.SPECIAL):
            raise UnsupportedError(f"{u.op.name} beside CALLs")
    return buffers.written()


class _Kernel:
    """One launch of one body."""

    def __init__(self, body: UOp, arguments: list[Buffer], observe: Observer | None) -> None:
        self._observe = observe
        self._arguments = arguments
        self._values: dict[UOp, Value] = {}
        self._memory: dict[UOp, Buffer] = {}
        linear = body.src[0] if body.op is Op.PROGRAM else body
        if linear.op is Op.LINEAR:
            self._items = of_linear(linear.src)
            nodes = linear.src
        else:
            self._items = of_graph(linear)
            nodes = tuple(toposort([linear], executed_sources))
        for u in linear.toposort():
            if u.op is Op.STORE and base_of(u.src[0]).op is Op.PARAM:
                arguments[cast(ParamArg, base_of(u.src[0]).arg).slot].is_stored_to = True
        loops = set(_loop_ranges(self._items))
        axes = [u for u in nodes if u.op in (Op.SPECIAL, Op.RANGE) and u not in loops]
        if len(axes) > MOST_AXES:
            raise UnsupportedError(f"{len(axes)} parallel ranges; the interpreter runs {MOST_AXES}")
        self._axis_of = {u: k for k, u in enumerate(axes)}

    def run(self) -> None:
        """Nothing runs without work items."""
        if all(bound(u) for u in self._axis_of if u.op is Op.SPECIAL):
            self._run(self._items)

    def _run(self, items: Items) -> None:
        for item in items:
            if isinstance(item, Loop):
                for position in range(bound(item.range)):
                    self._values[item.range] = Value(np.asarray(position))
                    self._run(item.items)
            else:
                self._step(item)

    def _step(self, u: UOp) -> None:
        if u.op is Op.STORE:
            self._store(u)
        elif u.addrspace is not None:
            self._locate(u)
        elif u.dtype is not dtypes.void and u.op is not Op.STACK:
            self._values[u] = value = self._value(u)
            if self._observe is not None:
                self._observe(u, value)

    def _of(self, u: UOp) -> Value:
        """The value of an operand; constants need not have been instructions."""
        if u.op is Op.CONST and u not in self._values:
            self._values[u] = Value(constant(cast(ConstArg, u.arg).bits, u.dtype))
        if u not in self._values:
            raise UndefinedError(f"{u.op.name} is used before it ran, or outside its loop")
        return self._values[u]

    def _value(self, u: UOp) -> Value:
        if u.op is Op.CONST:
            return Value(constant(cast(ConstArg, u.arg).bits, u.dtype))
        if u in self._axis_of:
            return Value(np.arange(bound(u)).reshape(self._shape_along(u)))
        if u.op is Op.LOAD:
            return self._load(u)
        if u.op is Op.REDUCE:
            return self._reduce(u)
        if u.declaration.is_elementwise:
            return masks.elementwise(u, *(self._of(s) for s in u.src))
        if u.op is Op.BITCAST:
            return masks.bitcast(u, self._of(u.src[0]))
        raise UnsupportedError(f"{u.op.name} in a kernel")

    def _shape_along(self, u: UOp) -> tuple[int, ...]:
        axis = self._axis_of[u]
        return tuple(bound(u) if k == axis else 1 for k in range(len(self._axis_of)))

    def _locate(self, u: UOp) -> None:
        """Which memory a location stands in; an INDEX into it also has a position."""
        if u.op is Op.PARAM:
            self._memory[u] = self._arguments[cast(ParamArg, u.arg).slot]
        elif u.op is Op.BUFFER:
            if u.addrspace is not AddrSpace.REG:
                raise UnsupportedError(f"a {u.addrspace} BUFFER inside a kernel")
            self._memory[u] = Buffer.unwritten(u, max(len(self._axis_of), 1))
        elif u.op in (Op.AFTER, Op.INDEX):
            self._memory[u] = self._memory[u.src[0]]
        else:
            raise UnsupportedError(f"{u.op.name} of a location in a kernel")

    def _access(self, location: UOp, gate: Mask | None) -> tuple[Buffer, Array]:
        """The memory and positions of an INDEX; 0 where the gate is false."""
        if location.op is not Op.INDEX or len(location.src) != 2:
            raise UnsupportedError(f"access through {location.op.name}: expected INDEX(buf, i)")
        i = self._of(location.src[1])
        positions = i.data.astype(np.int64)
        if gate is not None:
            positions = np.where(gate, positions, 0)
        if i.unspecified is not None:
            open_index = i.unspecified if gate is None else i.unspecified & gate
            if open_index.any():
                raise UndefinedError("INDEX by an UNSPECIFIED element")
        buffer = self._memory[location]
        outside = (positions < 0) | (positions >= buffer.size)
        if gate is not None:
            outside = outside & gate
        if outside.any():
            found = int(np.broadcast_to(positions, outside.shape)[outside].flat[0])
            raise UndefinedError(f"INDEX out of bounds: {found} of {buffer.size} elements")
        return buffer, positions

    def _gate(self, u: UOp) -> Mask | None:
        return masks.gate_is_true(self._of(u.src[2]), u.op) if len(u.src) > 2 else None

    def _load(self, u: UOp) -> Value:
        gate = self._gate(u)
        buffer, positions = self._access(u.src[0], gate)
        if gate is None:
            return buffer.read(positions)
        alt = self._of(u.src[1])
        if buffer.size == 0:
            return alt
        return masks.where(u, Value(gate), buffer.read(positions, gate), alt)

    def _store(self, u: UOp) -> None:
        gate = self._gate(u)
        buffer, positions = self._access(u.src[0], gate)
        buffer.write(positions, self._of(u.src[1]), gate)

    def _reduce(self, u: UOp) -> Value:
        """Fold over the axes of the ranges, the first one outermost."""
        op = cast(ReduceArg, u.arg).op
        if any(bound(r) == 0 for r in u.src[1:]):
            return Value(identity(op, u.dtype))
        axes = [self._axis_of[r] for r in u.src[1:]]
        value = self._of(u.src[0])

        def steps(array: Array) -> Array:
            full = array.reshape((1,) * (len(self._axis_of) - array.ndim) + array.shape)
            wanted = list(full.shape)
            for r, axis in zip(u.src[1:], axes, strict=True):
                wanted[axis] = bound(r)
            moved = np.moveaxis(np.broadcast_to(full, wanted), axes, range(len(axes)))
            return moved.reshape(size(moved.shape[: len(axes)]), *moved.shape[len(axes) :])

        def kept(array: Array) -> Array:
            return np.expand_dims(array, tuple(axes))

        data = kept(fold(op, u.dtype, steps(value.data)))
        unspecified = None
        if value.unspecified is not None:
            unspecified = kept(np.asarray(steps(value.unspecified).any(axis=0)))
        return Value(data, None, unspecified, masks.made_nan(u, data))


def _loop_ranges(items: Items) -> list[UOp]:
    found = []
    for item in items:
        if isinstance(item, Loop):
            found += [item.range, *_loop_ranges(item.items)]
    return found

"""One launch of a kernel body: its instructions in order, each over all work items at once.

Work items and ranges without a carried dependence are numpy axes. An instruction runs
in every active work item before the next one starts; no program can tell, for what could depend on
that order is a race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uop.interpreter.addresses import Addresses
from uop.interpreter.footprint import check_kernel
from uop.interpreter.kernel.buffers import Buffer
from uop.interpreter.kernel.lanes import (
    Kind,
    axes_of,
    indexed,
    lanes_of,
    opened,
    raised,
    raised_value,
    stacked,
)
from uop.interpreter.kernel.memory import LaunchMemory, refuse_open
from uop.interpreter.kernel.races import CarriedError
from uop.interpreter.kernel.schedule import (
    Branch,
    Items,
    Loop,
    bound,
    executed_sources,
    has_fixed_bound,
    of_graph,
    of_linear,
)
from uop.interpreter.kernel.warps import in_warps
from uop.interpreter.numeric.storage import MOST_AXES, Array, Mask, constant
from uop.interpreter.rules.codegen import meaning_of
from uop.interpreter.rules.reduce import fold, identity
from uop.interpreter.tensor import masks
from uop.interpreter.tensor.evaluation import Observer
from uop.interpreter.values import Value
from uop.spec.args import ConstArg, GetAddrArg, ReduceArg
from uop.spec.conditions.clauses import lacking, located, undefined
from uop.spec.dtype import dtypes
from uop.spec.errors import LackingError, UndefinedError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.walk import toposort

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def launch(
    body: UOp,
    arguments: list[Buffer],
    addresses: Addresses,
    observe: Observer | None,
    make: Callable[..., Kernel] | None = None,
) -> None:
    """Run a body over the buffers of a CALL, by another kind of Kernel where one is given."""
    make = make or Kernel
    kernel = make(body, arguments, addresses, observe)
    if not kernel.has_iterations:
        kernel.run()
        return
    saved = [(buffer, buffer.saved()) for buffer in kernel.memory.stored]
    try:
        kernel.run()
    except CarriedError:
        for buffer, contents in saved:
            buffer.restore(contents)
        make(body, arguments, addresses, observe, one_after_the_other=True).run()


class Kernel:
    """The state of one launch."""

    def __init__(
        self,
        body: UOp,
        arguments: list[Buffer],
        addresses: Addresses,
        observe: Observer | None,
        *,
        one_after_the_other: bool = False,
    ) -> None:
        self._addresses, self._observe = addresses, observe
        linear = body.src[0] if body.op is Op.PROGRAM else body
        if linear.op is Op.LINEAR:
            self._items = of_linear(linear.src)
        else:
            self._items = of_graph(linear, one_after_the_other=one_after_the_other)
        order = toposort([linear], executed_sources)
        loops = set(_loop_ranges(self._items))
        counters = [u for u in order if u.op in (Op.SPECIAL, Op.RANGE) and u not in loops]
        self._axes = axes_of(counters)
        if len(self._axes) > MOST_AXES:
            found = f"{len(self._axes)} parallel ranges of at most {MOST_AXES}"
            raise lacking("CALL.n3", found, body)
        check_kernel(order, self._axes)
        self._axis_of = {a.node: a for a in self._axes}
        self._active: Mask | None = None
        self._values: dict[UOp, Value] = {}
        self.memory = LaunchMemory(linear, self._axes, arguments)

    @property
    def has_iterations(self) -> bool:
        """Whether iterations run at once that a device would run one after the other."""
        return any(a.kind is Kind.ITERATION for a in self._axes)

    def run(self) -> None:
        """Nothing runs without work items."""
        if all(a.size for a in self._axes if a.is_always_open):
            self._run(self._items)

    def _run(self, items: Items) -> None:
        for item in items:
            try:
                if isinstance(item, Loop):
                    self._loop(item)
                elif isinstance(item, Branch):
                    self._branch(item)
                else:
                    self._step(item)
            except (UndefinedError, LackingError, MemoryError) as error:
                raise located(error, _node_of(item)) from None

    def _branch(self, branch: Branch) -> None:
        gate = self._of(branch.gate)
        self._only_where(_certain(gate, self._active, "IF.u2"), branch.items)

    def _loop(self, loop: Loop) -> None:
        counter = loop.range
        if has_fixed_bound(counter):
            for position in range(bound(counter)):
                self._values[counter] = Value(np.asarray(position))
                self._run(loop.items)
        else:
            count = self._of(counter.src[0])
            _certain(count, self._active, "RANGE.u2")
            counts = count.data if self._active is None else np.where(self._active, count.data, 0)
            for position in range(int(np.max(counts, initial=0))):
                self._values[counter] = Value(np.asarray(position))
                self._only_where(position < count.data, loop.items)
        self._forget((counter, *loop.items))

    def _only_where(self, gate: Mask, items: Items) -> None:
        """Run a block in those of the active work items where the gate is true."""
        outer = self._active
        active = np.asarray(gate if outer is None else gate & outer)
        if active.any():
            self._active = active
            self._run(items)
            self._active = outer
        self._forget(items)

    def _forget(self, items: Items) -> None:
        """What a block has computed has no value outside it."""
        for item in items:
            if isinstance(item, Loop | Branch):
                self._forget(item.items)
            else:
                self._values.pop(item, None)

    def _step(self, u: UOp) -> None:
        if u.op is Op.STORE:
            self._store(u)
        elif u.op is Op.ATOMICADD:
            self._atomic_add(u)
        elif u.op is Op.BARRIER:
            self.memory.barrier(self._active)
        elif u.op is Op.END and u.src[1] in self._axis_of:
            self.memory.end(u.src[1])
        elif u.dtype is dtypes.void:
            if u.op in (Op.INS, Op.CUSTOM):
                meaning_of(u)
        elif u.addrspace is None:
            self._values[u] = value = self._value(u)
            if self._observe is not None:
                self._observe(u, value)

    def _of(self, u: UOp) -> Value:
        """The value of an operand; constants need not have been instructions."""
        if u not in self._values:
            if u.op is not Op.CONST and (u.op is not Op.STACK or u.addrspace is not None):
                where = "outside its loop or branch"
                raise undefined("LINEAR.u2", f"{u.op.name} is used before it ran, or {where}", u)
            self._values[u] = self._value(u)
        return self._values[u]

    def _value(self, u: UOp) -> Value:
        rank = len(u.shape)
        if u.declaration.is_elementwise:
            if not rank:
                return masks.elementwise(u, *(self._of(s) for s in u.src))
            return masks.elementwise(u, *(self._raised(s, rank) for s in u.src))
        axis = self._axis_of.get(u)
        if axis is not None:
            return Value(axis.along(len(self._axes)))
        compute = COMPUTE.get(u.op)
        if compute is None:
            raise lacking("CALL.n4", f"{u.op.name} in a kernel", u)
        return compute(self, u)

    def _raised(self, u: UOp, rank: int) -> Value:
        return raised_value(self._of(u), len(u.shape), rank, len(self._axes))

    def _const(self, u: UOp) -> Value:
        return Value(constant(cast(ConstArg, u.arg).bits, u.dtype))

    def _stack(self, u: UOp) -> Value:
        if not u.src:
            return Value(np.zeros(0, np.int64))
        rank = len(u.shape) - 1
        return stacked([self._of(s) for s in u.src], rank)

    def _index(self, u: UOp) -> Value:
        return indexed(u, self._of(u.src[0]), [self._of(i) for i in u.src[1:]])

    def _same(self, u: UOp) -> Value:
        return self._of(u.src[0])

    def _bitcast(self, u: UOp) -> Value:
        t = self._of(u.src[0])
        shape = (*t.data.shape[:-1], u.shape[-1]) if u.shape else t.data.shape
        node: Any = SimpleNamespace(op=u.op, dtype=u.dtype, shape=shape, src=u.src)
        return masks.bitcast(node, t)

    def _opaque(self, u: UOp) -> Value:
        """INS and CUSTOM: open where any element of an operand is."""
        meaning, rank = meaning_of(u), len(u.shape)
        operands = [self._of(s) for s in u.src]
        data = np.asarray(meaning(u, *(v.data for v in operands)))
        unspecified = opened(operands, rank, [len(s.shape) for s in u.src], len(self._axes))
        if unspecified is not None:
            unspecified = np.broadcast_to(unspecified, data.shape)
        return Value(data, None, unspecified, masks.made_nan(u, data))

    def _wmma(self, u: UOp) -> Value:
        value = in_warps(u, [self._of(s) for s in u.src], self._axes, self._active)
        return Value(value.data, None, value.unspecified, masks.made_nan(u, value.data))

    def _address(self, u: UOp) -> Value:
        """Of the first element of a location."""
        location = u.src[0]
        memory, place = self.memory.place(location, None, self._of)
        if not isinstance(memory, Buffer):
            raise lacking("GETADDR.n1", "a register", u)
        rank = len(location.shape)
        first = place.positions.reshape((*lanes_of(place.positions, rank), -1))[..., 0]
        start = self._addresses.of(memory, memory.data.nbytes, cast(GetAddrArg, u.arg).device)
        return Value((start + first * location.dtype.itemsize).astype(np.uint64))

    def _load(self, u: UOp) -> Value:
        rank = len(u.shape)
        gate = self._gate(u, rank)
        memory, place = self.memory.place(u.src[0], gate, self._of)
        if memory.size == 0:
            return (
                self._of(u.src[1])
                if len(u.src) > 1
                else Value(np.zeros(u.shape, memory.data.dtype))
            )
        self.memory.note(u, memory, place)
        value = memory.read(place)
        if len(u.src) < 3:
            return value
        return masks.where(u, Value(self._of(u.src[2]).data), value, self._of(u.src[1]))

    def _store(self, u: UOp) -> None:
        gate = self._gate(u, len(u.src[0].shape))
        if gate is None or gate.any():
            memory, place = self.memory.place(u.src[0], gate, self._of)
            place.need_distinct()
            value = self._of(u.src[1])
            self.memory.note(u, memory, place.over(value.data.shape))
            memory.write(place, value)

    def _atomic_add(self, u: UOp) -> None:
        """Every work item adds, also one and the same number to one and the same element."""
        gate = self._gate(u, len(u.src[0].shape))
        if gate is None or gate.any():
            memory, place = self.memory.place(u.src[0], gate, self._of)
            place.need_distinct()
            value = self._of(u.src[1])
            if isinstance(memory, Buffer):
                everywhere = tuple(a.size if a.is_always_open else 1 for a in self._axes)
                place = place.over(value.data.shape, (*everywhere, *(1,) * place.rank))
            self.memory.note(u, memory, place)
            memory.add(place, value, u.src[0].dtype)

    def _gate(self, u: UOp, rank: int) -> Mask | None:
        """Where an access happens: in active work items, where its gate is true."""
        active = self._active
        if active is not None:
            active = raised(active, 0, rank, len(self._axes))
        if len(u.src) < 3:
            return active
        mask = _certain(self._of(u.src[2]), active, f"{u.op.name}.u1")
        return mask if active is None else mask & active

    def _reduce(self, u: UOp) -> Value:
        """Fold over the axes of the ranges, the first one outermost, then those of the value."""
        arg, ranges = cast(ReduceArg, u.arg), u.src[1:]
        if any(bound(r) == 0 for r in ranges):
            return Value(np.broadcast_to(identity(arg.op, u.dtype), u.shape))
        if any(r not in self._axis_of for r in ranges):
            raise lacking("REDUCE.n1", "a RANGE that is a loop of its LINEAR", u)
        value = self._of(u.src[0])
        data = self._kept(u, fold(arg.op, u.dtype, self._terms(u, value.data)))
        unspecified = None
        if value.unspecified is not None:
            opened_terms = self._terms(u, value.unspecified)
            unspecified = self._kept(u, np.asarray(opened_terms.any(axis=0)))
        return Value(data, None, unspecified, masks.made_nan(u, data))

    def _folded_axes(self, u: UOp) -> tuple[int, ...]:
        """The axes, lanes among them, that a REDUCE folds."""
        count = len(self._axes)
        numbers = [self._axis_of[r].number for r in u.src[1:]]
        return (*numbers, *(count + axis for axis in cast(ReduceArg, u.arg).axes))

    def _terms(self, u: UOp, array: Array) -> Array:
        """What a REDUCE folds: the terms on one leading axis, then the axes that stay."""
        axes, count = self._folded_axes(u), len(self._axes)
        lanes = lanes_of(array, len(u.shape))
        full = array.reshape((*(lanes or (1,) * count), *array.shape[len(lanes) :]))
        wanted = list(full.shape)
        for r in u.src[1:]:
            wanted[self._axis_of[r].number] = bound(r)
        moved = np.moveaxis(np.broadcast_to(full, wanted), axes, range(len(axes)))
        return moved.reshape(size(moved.shape[: len(axes)]), *moved.shape[len(axes) :])

    def _kept(self, u: UOp, array: Array) -> Array:
        """A result of a REDUCE, the folded axes with size 1."""
        return np.expand_dims(array, self._folded_axes(u))


COMPUTE: Mapping[Op, Callable[[Kernel, UOp], Value]] = {
    Op.CONST: Kernel._const,
    Op.STACK: Kernel._stack,
    Op.INDEX: Kernel._index,
    Op.BITCAST: Kernel._bitcast,
    Op.LOAD: Kernel._load,
    Op.REDUCE: Kernel._reduce,
    Op.AFTER: Kernel._same,
    Op.INS: Kernel._opaque,
    Op.CUSTOM: Kernel._opaque,
    Op.WMMA: Kernel._wmma,
    Op.GETADDR: Kernel._address,
}


def _certain(value: Value, active: Mask | None, label: str) -> Mask:
    """A gate; UndefinedError where it is UNSPECIFIED in an active work item."""
    if value.unspecified is not None:
        refuse_open(value.unspecified, active, label)
    return cast(Mask, value.data)


def _node_of(item: UOp | Loop | Branch) -> UOp:
    if isinstance(item, Loop):
        return item.range
    return item.gate if isinstance(item, Branch) else item


def _loop_ranges(items: Items) -> list[UOp]:
    found = []
    for item in items:
        if isinstance(item, Loop | Branch):
            found += [*([item.range] if isinstance(item, Loop) else []), *_loop_ranges(item.items)]
    return found

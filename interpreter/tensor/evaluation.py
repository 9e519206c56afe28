"""Walk a tensor graph, sources first, and compute its values in a domain.

The walk handles the order of the nodes, memory, calls, addresses and observers. A domain defines
what a value is: `Arrays` is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

import numpy as np

import uop.interpreter.rules  # noqa: F401 - enters the meanings
from uop.interpreter import footprint
from uop.interpreter.kernel import domain as kernel
from uop.interpreter.kernel.buffers import Addresses, Buffer
from uop.interpreter.kernel.lanes import Lanes
from uop.interpreter.kernel.launch import launch
from uop.interpreter.numeric.storage import constant
from uop.interpreter.rules.movement import value_sources
from uop.interpreter.tensor import masks
from uop.interpreter.tensor.memory import TensorMemory, Touched, reads_of
from uop.interpreter.values import Value
from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.conditions.clauses import lacking, located, undefined
from uop.spec.dtype import dtypes
from uop.spec.errors import LackingError, UndefinedError
from uop.spec.graph import (
    CALLS,
    LEAVES,
    base_of,
    kept_with_root,
    passed_buffer,
    slot_of,
    toposort,
    without_order,
)
from uop.spec.kernel.forms import BELOW_THE_GRAPH
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.registry import DECLARATIONS

if TYPE_CHECKING:
    from uop.spec.uop import UOp

FullOutput = Value | tuple[Value, ...] | dict[int, Value]
Combine = Callable[..., Value]
V = TypeVar("V")

MEANINGS: dict[Op, Combine] = {
    **dict.fromkeys((op for op, d in DECLARATIONS.items() if d.is_view), masks.moved),
    Op.STACK: masks.stack,
    Op.REPLICATED: masks.replicated,
    Op.SLICE: masks.slice_,
    Op.INDEX: masks.index,
    Op.BITCAST: masks.bitcast,
    Op.REDUCE: masks.reduce,
    Op.LOAD: masks.load,
}


def meaning_of(u: UOp) -> Combine | None:
    """Return the function that combines the operands of a node; None if it has none."""
    return masks.elementwise if u.declaration.dtypes else MEANINGS.get(u.op)


class Locations(Protocol[V]):
    """The memory of a graph; `tensor.memory.Memory` holds arrays."""

    def enter(self, u: UOp) -> None: ...

    def view(self, location: UOp, indices: Sequence[V]) -> None: ...

    def first(self, location: UOp) -> int: ...

    def read(self, location: UOp, reader: UOp, gate: V | None = None) -> V: ...

    def write(self, store: UOp, value: V, gate: V | None) -> None: ...

    def contents_at(self, u: UOp, base: UOp) -> V: ...

    def called(self, call: UOp, base: UOp, touched: Touched, contents: V | None) -> None: ...

    def written(self) -> dict[int, V]: ...


class Domain(Protocol[V]):
    """Computes the values of a graph."""

    def lift(self, u: UOp, value: Value) -> V:
        """Make the value of a node that has exactly one."""

    def result(self, u: UOp, operands: list[V]) -> V:
        """Compute an op on its operands."""

    def memory(self, contents: Mapping[UOp, V | None]) -> Locations[V]:
        """Make memory for these PARAMs and BUFFERs with their initial contents, None if unknown."""

    def reference(self, value: V) -> Value: ...

    def launch(
        self, body: UOp, arguments: list[Buffer], held: Mapping[Buffer, V], addresses: Addresses
    ) -> dict[Buffer, V]:
        """Run the body of a CALL over its arguments with these contents; return the new
        contents.
        """


class Arrays:
    """The reference domain: an array for each node."""

    def lift(self, u: UOp, value: Value) -> Value:
        return value

    def result(self, u: UOp, operands: list[Value]) -> Value:
        meaning = meaning_of(u)
        if meaning is not None:
            return meaning(u, *operands)
        if u.op is Op.CONST:
            return Value(constant(arg_of(u, args.ConstArg).bits, u.dtype))
        if u.op is Op.BINARY:
            return Value(np.frombuffer(arg_of(u, args.BinaryArg).data, np.uint8))
        if u.declaration.section == "marker" or u.op in (Op.AFTER, Op.NOOP, Op.PRECAST):
            return operands[0]
        raise undefined("CALL.u1", f"{u.op.name} outside a kernel", u)

    def memory(self, contents: Mapping[UOp, Value | None]) -> TensorMemory:
        return TensorMemory(contents)

    def reference(self, value: Value) -> Value:
        return value

    def launch(
        self, body: UOp, arguments: list[Buffer], held: Mapping[Buffer, Value], addresses: Addresses
    ) -> dict[Buffer, Value]:
        launch(body, arguments, addresses, self.in_kernel)
        return {buffer: buffer.contents for buffer in held}

    def in_kernel(self, body: UOp, lanes: Lanes) -> kernel.Arrays:
        """Make the domain of a launch."""
        return kernel.Arrays(body, lanes)


ARRAYS = Arrays()


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The order of a graph, which all its evaluations share; the root is not in it.

    `unused` lists for each node, the root included, the values whose space can be freed after it.
    """

    below: tuple[UOp, ...]
    unused: tuple[tuple[UOp, ...], ...]
    stores: bool
    bound: int


@kept_with_root
def _walk(root: UOp) -> Walk:
    order = toposort([root], _evaluated_sources)
    stores = any(u.addrspace is not None for u in order)
    unused = footprint.unused_after(order, _evaluated_sources)
    return Walk(tuple(order[:-1]), unused, stores, footprint.bound(order))


class Evaluation(Generic[V]):
    """One walk over a graph; a FUNCTION starts another one over its body."""

    def __init__(
        self,
        root: UOp,
        inputs: Mapping[UOp, V],
        domain: Domain[V],
        observe: Callable[[UOp, V], None] | None = None,
    ) -> None:
        self._root, self._inputs, self._domain, self._observe = root, inputs, domain, observe
        self._values: dict[UOp, V] = {}
        self._tuples: dict[UOp, tuple[V, ...]] = {}
        self._addresses = Addresses()
        self._meter = footprint.current_meter()
        self._buffers: dict[UOp, object] = {}
        """The buffer that each PARAM of a body names: the caller's, or one of this call alone."""

    @cached_property
    def _memory(self) -> Locations[V]:
        order = (*_walk(self._root).below, self._root)
        leaves = (u for u in order if u.op in LEAVES and u.addrspace is not None)
        return self._domain.memory({u: self._inputs.get(u) for u in leaves})

    def result(self) -> V | tuple[V, ...] | dict[int, V]:
        """Return the value of the root, the values of a TUPLE, or the stored contents by slot."""
        root = self._root
        walk = _walk(root)
        order = (*walk.below, root)
        if not footprint.is_small(walk.bound):
            footprint.check_values(order, _evaluated_sources)
        compute = self._step if walk.stores else self._compute
        for u, unused in zip(order, walk.unused, strict=True):
            try:
                compute(u)
            except (UndefinedError, LackingError, MemoryError) as error:
                raise located(error, u) from None
            for s in unused:
                self._values.pop(s, None)
        if root.op in (Op.SINK, Op.STORE, Op.GROUP, Op.CALL):
            return self._memory.written()
        if root.op in (Op.TUPLE, Op.FUNCTION):
            return self._tuples[root]
        if root.addrspace is not None:
            return self._memory.read(root, root)
        return self._values[root]

    def _step(self, u: UOp) -> None:
        """Compute a node of a graph that has memory."""
        memory, values = self._memory, self._values
        memory.enter(u)
        # Last the first operand: it is not read where the gate, the last one, is false.
        for s in reversed(reads_of(u)):
            is_gated = u.op is Op.LOAD and len(u.src) > 2 and s not in u.src[1:]
            values[s] = memory.read(s, u, values[u.src[2]] if is_gated else None)
        if u.addrspace is not None:
            memory.view(u, [values[i] for i in u.src[1:]] if u.op is Op.INDEX else [])
        elif u.op is Op.STORE:
            memory.write(u, values[u.src[1]], values[u.src[2]] if len(u.src) > 2 else None)
        else:
            self._compute(u)

    def _compute(self, u: UOp) -> None:
        if u.op is Op.TUPLE:
            self._tuples[u] = tuple(self._values[s] for s in u.src)
        elif u.op is Op.FUNCTION:
            self._tuples[u] = self._called(u)
        elif u.op is Op.CALL:
            self._launch(u)
        elif u.dtype is not dtypes.void:
            self._values[u] = value = self._value(u)
            if self._meter is not None:
                self._meter.spend(self._domain.reference(value).data.size)
            if self._observe is not None:
                self._observe(u, value)
        elif u.op in BELOW_THE_GRAPH:
            raise undefined("CALL.u1", f"{u.op.name} outside a kernel", u)

    def _value(self, u: UOp) -> V:
        if u in self._inputs:
            return self._inputs[u]
        if u.op is Op.GETADDR:
            return self._domain.lift(u, self._address(u))
        if u.op is Op.GETTUPLE:
            return self._tuples[u.src[0]][arg_of(u, args.GetTupleArg).idx]
        return self._domain.result(u, [self._values[s] for s in value_sources(u)])

    def _address(self, u: UOp) -> Value:
        """Return the address of a location; buffers are those of the whole program (D-068)."""
        location = u.src[0]
        base = base_of(location)
        whole = size(base.shape) * base.dtype.itemsize
        buffer = self._buffers.get(base, base)
        start = self._addresses.of(buffer, whole, arg_of(u, args.GetAddrArg).device)
        return Value(np.asarray(start + self._memory.first(location), np.uint64))

    def _called(self, u: UOp) -> tuple[V, ...]:
        """Evaluate the body of a FUNCTION on its arguments, with the addresses of the caller."""
        body, arguments = u.src[0], u.src[1:]
        params = [p for p in toposort([body], _evaluated_sources) if p.op is Op.PARAM]
        passed = {p: arguments[slot_of(p)] for p in params}
        inputs = {p: self._values[a] for p, a in passed.items()}
        inner = Evaluation(body, inputs, self._domain, self._observe)
        inner._addresses = self._addresses
        inner._buffers = {p: self._buffer_of(a) for p, a in passed.items()}
        return cast("tuple[V, ...]", inner.result())

    def _launch(self, u: UOp) -> None:
        """Run a CALL on its arguments: memory, or values, each in a buffer of its own."""
        memory, domain = self._memory, self._domain
        passed = [passed_buffer(a) for a in u.src[1:]]
        leaves = [a if base is None else base for a, base in zip(u.src[1:], passed, strict=True)]
        held: dict[UOp, V] = {
            a: memory.contents_at(u, a) if a in passed else self._values[a] for a in leaves
        }
        buffers = {
            a: Buffer.watched(domain.reference(contents), self._buffers.get(a, a))
            for a, contents in held.items()
        }
        contents = domain.launch(
            u.src[0],
            [buffers[a] for a in leaves],
            {buffer: held[a] for a, buffer in buffers.items()},
            self._addresses,
        )
        for a, buffer in buffers.items():
            if a in passed:
                touched = cast("Touched", buffer.touched)
                memory.called(u, a, touched, contents[buffer] if buffer.is_stored_to else None)
            elif buffer.is_stored_to:
                raise lacking("CALL.n2", f"a kernel that stores to the copy of {a.op.name}", u)

    def _buffer_of(self, argument: UOp) -> object:
        """Return the buffer if an argument is a whole one, otherwise a new object."""
        argument = without_order(argument)
        is_whole = argument.addrspace is not None and argument is base_of(argument)
        return self._buffers.get(argument, argument) if is_whole else object()


def _evaluated_sources(u: UOp) -> tuple[UOp, ...]:
    sources = u.data_src
    return sources[1:] if u.op in CALLS else sources

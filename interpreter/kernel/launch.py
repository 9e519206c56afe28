"""Run kernel programs as a host launches them: each instruction over all work items, in order.

Work items, and RANGEs without a carried dependence, are numpy axes. An instruction runs in every
active work item before the next one starts. No program can observe this: anything that depends on
that order is a race. The walk handles order, control flow, places in memory and races; a domain
defines what a value is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import numpy as np

from uop.interpreter import footprint
from uop.interpreter.kernel import domain
from uop.interpreter.kernel import schedule as plan
from uop.interpreter.kernel.buffers import Addresses, Buffer, Buffers, Place, Registers
from uop.interpreter.kernel.lanes import Kind, Lanes, lanes_of, need_whole_warps
from uop.interpreter.kernel.memory import CarriedError, LaunchMemory, refuse_open
from uop.interpreter.numeric.storage import MOST_AXES, Array, Mask, constant
from uop.interpreter.rules.codegen import custom_function_of, meaning_of
from uop.interpreter.rules.reduce import identity
from uop.interpreter.values import Observer, Value
from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.conditions.clauses import lacking, located, undefined
from uop.spec.dtype import dtypes
from uop.spec.errors import LackingError, UndefinedError
from uop.spec.graph import outside, outside_bodies
from uop.spec.kernel.loops import with_joined_loops
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def run_program(
    root: UOp,
    inputs: Mapping[UOp, Value],
    observe: Observer | None = None,
    make: Make[Value] = domain.Arrays,
) -> dict[int, Value]:
    """Run the CALLs of a SINK in order; return the contents of every written BUFFER by slot."""
    buffers = Buffers(inputs)
    for body, arguments in calls_of(root, buffers):
        launch(body, arguments, buffers.addresses, make, observe)
    return buffers.written()


def calls_of(root: UOp, buffers: Buffers) -> Iterator[tuple[UOp, list[Buffer]]]:
    """Yield the body and the arguments of each CALL of a SINK, in order."""
    order = outside(root)
    footprint.check_values(order, outside_bodies)
    for u in order:
        if u.op is Op.CALL:
            yield u.src[0], [buffers.of_argument(a) for a in u.src[1:]]


def launch(
    body: UOp,
    arguments: list[Buffer],
    addresses: Addresses,
    make: Make[V],
    observe: Callable[[UOp, V], None] | None = None,
) -> None:
    """Run the body of a CALL over its arguments."""
    if body.op is Op.CUSTOMFUNCTION:
        _call_by_name(body, arguments)
        return
    if body.op is Op.SINK:
        body = with_joined_loops(body)
    kernel = Kernel(body, arguments, addresses, make, observe)
    if not kernel.has_iterations:
        kernel.run()
        return
    saved = [(buffer, buffer.saved()) for buffer in kernel.memory.stored]
    try:
        kernel.run()
    except CarriedError:
        for buffer, contents in saved:
            buffer.restore(contents)
        try:
            Kernel(body, arguments, addresses, make, observe, one_after_the_other=True).run()
        except CarriedError as error:
            found = "iterations that no END closes depend on each other"
            raise undefined("RANGE.u1", found, error.access) from None


def _call_by_name(body: UOp, arguments: list[Buffer]) -> None:
    """Run a CUSTOMFUNCTION; its results are unspecified if anything that it reads is."""
    numbers = [_number(m) for m in body.src]
    function = custom_function_of(body, len(arguments))
    results = function.meaning([a.data for a in arguments], *numbers)
    is_open = any(arguments[k].contents.unspecified is not None for k in function.reads)
    for position, data in zip(function.writes, results, strict=True):
        buffer = arguments[position]
        mask = np.ones(buffer.data.shape, np.bool_) if is_open else None
        buffer.restore(Value(np.asarray(data).reshape(-1), None, mask))
        buffer.is_stored_to = True
        if buffer.touched is not None:
            buffer.touched.written[...] = True
    for position in function.reads:
        touched = arguments[position].touched
        if touched is not None:
            touched.read[...] = True


def _number(meta: UOp) -> Array:
    if meta.op is not Op.CONST:
        raise lacking("CUSTOMFUNCTION.n2", meta.op.name, meta)
    return constant(arg_of(meta, args.ConstArg).bits, meta.dtype)


V = TypeVar("V")
Make = Callable[["UOp", Lanes], domain.Domain[V]]
"""Makes the domain of a launch from its body and lanes."""


class Kernel(Generic[V]):
    """The state of one launch."""

    def __init__(
        self,
        body: UOp,
        arguments: list[Buffer],
        addresses: Addresses,
        make: Make[V],
        observe: Callable[[UOp, V], None] | None,
        *,
        one_after_the_other: bool = False,
    ) -> None:
        self._addresses, self._observe = addresses, observe
        linear = body.src[0] if body.op is Op.PROGRAM else body
        self._is_list = linear.op is Op.LINEAR
        schedule = plan.scheduled(linear, one_after_the_other=one_after_the_other)
        self._items, self._around = schedule.items, schedule.around
        # The operand of a REDUCE in each iteration, and the lanes that ran it; None for all.
        self._terms: dict[UOp, list[tuple[V, Mask | None]]] = {}
        self._lanes = Lanes(schedule.counters)
        if self._lanes.count > MOST_AXES:
            found = f"{self._lanes.count} parallel ranges of at most {MOST_AXES}"
            raise lacking("CALL.n3", found, body)
        footprint.check_kernel(schedule.order, self._lanes.axes)
        self._meter = footprint.current_meter()
        if self._meter is not None:
            self._meter.spend(sum(a.size for a in self._lanes.axes))
        self._domain = make(body, self._lanes)
        self._active: Mask | None = None
        self._values: dict[UOp, V] = {}
        self.memory = LaunchMemory(linear, self._lanes, arguments)

    @property
    def has_iterations(self) -> bool:
        """Whether some axis is a loop that a device would run one iteration after the other."""
        return any(a.kind is Kind.ITERATION for a in self._lanes.axes)

    def run(self) -> None:
        """Run the body; without work items nothing runs."""
        if all(self._lanes.everywhere()):
            self._run(self._items)
        self._domain.finish()

    def _run(self, items: plan.Items) -> None:
        for item in items:
            try:
                if isinstance(item, plan.Loop):
                    self._loop(item)
                elif isinstance(item, plan.Branch):
                    self._branch(item)
                elif isinstance(item, plan.Term):
                    self._terms.setdefault(item.fold, []).append(
                        (self._of(item.fold.src[0]), self._active)
                    )
                else:
                    self._step(item)
            except (UndefinedError, LackingError, MemoryError) as error:
                raise located(error, _node_of(item)) from None

    def _branch(self, branch: plan.Branch) -> None:
        gate = self._domain.certain(self._of(branch.gate), "the gate of an IF")
        self._only_where(_certain(gate, self._active, "IF.u2"), branch.items)

    def _loop(self, loop: plan.Loop) -> None:
        counter = loop.range
        if plan.has_fixed_bound(counter):
            for position in range(plan.bound(counter)):
                self._values[counter] = self._counted(counter, position)
                self._run(loop.items)
        else:
            count = self._domain.certain(self._of(counter.src[0]), "a number of iterations")
            _certain(count, self._active, "RANGE.u2")
            counts = count.data if self._active is None else np.where(self._active, count.data, 0)
            for position in range(int(np.max(counts, initial=0))):
                self._values[counter] = self._counted(counter, position)
                self._only_where(position < count.data, loop.items)
        self._forget((counter, *loop.items))

    def _counted(self, counter: UOp, position: int) -> V:
        if self._meter is not None:
            self._meter.spend(1)
        return self._domain.lift(counter, Value(np.asarray(position)))

    def _only_where(self, gate: Mask, items: plan.Items) -> None:
        """Run a block in those of the active work items where the gate is true."""
        outer = self._active
        active = np.asarray(gate if outer is None else gate & outer)
        if active.any():
            self._active = active
            self._run(items)
            self._active = outer
        self._forget(items)

    def _forget(self, items: plan.Items) -> None:
        """Drop the values that a block has computed: they end with it."""
        for item in items:
            if isinstance(item, plan.Loop | plan.Branch):
                self._forget(item.items)
            elif not isinstance(item, plan.Term):
                self._values.pop(item, None)

    def _step(self, u: UOp) -> None:
        if u.declaration.is_write:
            self._write(u)
        elif u.op is Op.BARRIER:
            self.memory.barrier(self._active)
        elif u.op is Op.END and u.src[1] in self._lanes.axis_of:
            self.memory.end(u.src[1])
        elif u.dtype is dtypes.void:
            if u.op in (Op.INS, Op.CUSTOM):
                meaning_of(u)
        elif u.addrspace is None:
            self._values[u] = value = self._value(u)
            if self._meter is not None:
                self._meter.spend(self._domain.reference(value).data.size)
            if self._observe is not None:
                self._observe(u, value)

    def _of(self, u: UOp) -> V:
        """Return the value of an operand; a constant need not be an instruction."""
        if u not in self._values:
            if u.op is not Op.CONST and (u.op is not Op.STACK or u.addrspace is not None):
                where = "outside its loop or branch"
                raise undefined("LINEAR.u2", f"{u.op.name} is used before it ran, or {where}", u)
            self._values[u] = self._value(u)
        return self._values[u]

    def _value(self, u: UOp) -> V:
        if u.op is Op.LOAD:
            return self._load(u)
        axis = self._lanes.axis_of.get(u)
        if axis is not None:
            return self._domain.lift(u, Value(self._lanes.along(axis)))
        if u.op is Op.GETADDR:
            return self._domain.lift(u, self._address(u))
        if u.op not in domain.MEANINGS and not u.declaration.is_elementwise:
            raise lacking("CALL.n4", f"{u.op.name} in a kernel", u)
        if u.op is Op.REDUCE:
            if u in self._terms:
                return domain.folded(self._domain, u, self._terms.pop(u))
            if self._is_list and any(r not in self._lanes.axis_of for r in u.src[1:]):
                raise lacking("REDUCE.n1", "a RANGE that is a loop of its LINEAR", u)
            if any(r not in self._lanes.axis_of or plan.bound(r) == 0 for r in u.src[1:]):
                nothing = identity(arg_of(u, args.ReduceArg).op, u.dtype)
                return self._domain.lift(u, Value(np.broadcast_to(nothing, u.shape)))
        if u.op is Op.WMMA:
            need_whole_warps(self._lanes.axes, self._active)
        # The other operands of these are effects, ranges or shapes.
        is_of_first = u.op in (Op.AFTER, Op.REDUCE, Op.RESHAPE, Op.EXPAND)
        sources = u.src[:1] if is_of_first else u.src
        return self._domain.result(u, [self._of(s) for s in sources])

    def _address(self, u: UOp) -> Value:
        """Return the address of the first element of a location."""
        location = u.src[0]
        memory, place = self._at(location, None)
        if not isinstance(memory, Buffer):
            raise lacking("GETADDR.n1", "a register", u)
        rank = len(location.shape)
        first = place.positions.reshape((*lanes_of(place.positions, rank), -1))[..., 0]
        device = arg_of(u, args.GetAddrArg).device
        start = self._addresses.of(memory.owner, memory.data.nbytes, device)
        return Value((start + first * location.dtype.itemsize).astype(np.uint64))

    def _load(self, u: UOp) -> V:
        memory, place = self._at(u.src[0], self._gate(u))
        alt = self._of(u.src[1]) if len(u.src) > 1 else None
        if memory.size == 0:
            nothing = Value(np.zeros(u.shape, memory.data.dtype))
            return self._domain.lift(u, nothing) if alt is None else alt
        self._note(u, memory, place)
        return self._domain.load(self._access(u, memory, place), alt)

    def _write(self, u: UOp) -> None:
        """Run a STORE or ATOMICADD. All work items and iterations add, even if they add the same
        number to the same element.
        """
        gate = self._gate(u)
        if gate is not None and not gate.any():
            return
        memory, place = self._at(u.src[0], gate)
        place.need_distinct()
        value = self._of(u.src[1])
        shape = self._domain.reference(value).data.shape
        if u.op is Op.STORE:
            self._note(u, memory, place.over(shape))
            self._domain.store(self._access(u, memory, place), value)
            return
        if isinstance(memory, Buffer):
            runs = self._lanes.everywhere(self._around.get(u, ()))
            place = place.over(shape, (*runs, *(1,) * place.rank))
        self._note(u, memory, place)
        self._domain.add(self._access(u, memory, place), value)

    def _access(self, u: UOp, memory: Buffer | Registers, place: Place) -> domain.Access[V]:
        return domain.Access(u, memory, place, self._of(u.src[2]) if len(u.src) > 2 else None)

    def _note(self, u: UOp, memory: Buffer | Registers, place: Place) -> None:
        if self._meter is not None:
            self._meter.spend(prod(place.shape))
        self.memory.note(u, memory, place)

    def _at(self, location: UOp, gate: Mask | None) -> tuple[Buffer | Registers, Place]:

        def index(i: UOp) -> Value:
            return self._domain.certain(self._of(i), "an index")

        return self.memory.place(location, gate, index)

    def _gate(self, u: UOp) -> Mask | None:
        """Return where an access may happen: in active work items whose gate may be true."""
        active = self._active
        if active is not None:
            active = self._lanes.raised(active, 0, len(u.src[0].shape))
        if len(u.src) < 3:
            return active
        mask = _certain(self._domain.possible(self._of(u.src[2])), active, f"{u.op.name}.u1")
        return mask if active is None else mask & active


def _certain(value: Value, active: Mask | None, label: str) -> Mask:
    """Return a gate; raise UndefinedError where it is UNSPECIFIED in an active work item."""
    if value.unspecified is not None:
        refuse_open(value.unspecified, active, label)
    return cast(Mask, value.data)


def _node_of(item: plan.Item) -> UOp:
    if isinstance(item, plan.Loop):
        return item.range
    if isinstance(item, plan.Term):
        return item.fold
    return item.gate if isinstance(item, plan.Branch) else item

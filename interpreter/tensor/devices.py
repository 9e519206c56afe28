"""Evaluate a graph device by device: each one holds its shard, and few ops communicate.

This defines `axis`. A value with an axis is split along it into equal parts, one per device;
without an axis every device has the whole value. Devices exchange elements at a LOAD with a device,
and at a REDUCE along the shard axis, after which each device has the result. REPLICATED along the
shard axis compares the shards and moves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, cast

import numpy as np

from uop.interpreter.evaluate import check_value, evaluate_full
from uop.interpreter.inputs import Inputs, bind_inputs, with_numbers
from uop.interpreter.numeric.storage import to_bits
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value, full, together
from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.conditions.clauses import lacking, undefined
from uop.spec.errors import PassError
from uop.spec.extension import in_core_ops
from uop.spec.graph import LEAVES, base_of, inlined, kind_of, slot_of, toposort
from uop.spec.ops.names import Op
from uop.spec.properties.axis import shards
from uop.spec.shards import folds_shards, local_node, local_shape, sources_here
from uop.spec.uop import UOp, dims, param

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Sharded:
    """A value on devices: its parts in order, split along `axis`, or copies if that is None."""

    device: args.Device
    axis: int | None
    parts: tuple[Value, ...]

    def whole(self) -> Value:
        """Return the whole value; raise PassError if copies differ."""
        if self.axis is not None:
            return joined(self.parts, self.axis)
        if not all(are_equal(self.parts[0], part) for part in self.parts[1:]):
            raise PassError("a value without axis is not the same on every device")
        return self.parts[0]


ShardedOutput = Sharded | tuple[Sharded, ...] | dict[int, Sharded]


def evaluate_by_devices(root: UOp, inputs: Inputs | None = None) -> ShardedOutput:
    """Evaluate a program as `evaluate` does; each device computes from the parts that it holds.

    A value gives one Sharded, a TUPLE a tuple, a SINK a dict from slot to contents. Raises as
    `evaluate` does, and UndefinedError also if REPLICATED shards differ.
    """
    if kind_of(root).calls_kernels:
        raise lacking("CALL.n5", "kernels", root)
    root, inputs = with_numbers(root, inputs or {})
    root = in_core_ops(root)
    values = bind_inputs(root, inputs)
    devices = _Devices(inlined(root), values)
    with np.errstate(all="ignore"):
        return devices.result()


def split(value: Value, axis: int | None, count: int) -> tuple[Value, ...]:
    """Split a value into equal parts along an axis; without one copy it `count` times."""
    if axis is None:
        return (value,) * count
    size, before = value.data.shape[axis] // count, (slice(None),) * axis
    places = [(*before, slice(k * size, (k + 1) * size)) for k in range(count)]
    return tuple(value.map(itemgetter(place)) for place in places)


def joined(parts: Sequence[Value], axis: int) -> Value:
    """Concatenate parts along an axis."""
    return together(parts, lambda arrays: np.concatenate(arrays, axis))


def are_equal(a: Value, b: Value) -> bool:
    """Return whether two values are equal; ordinary elements are compared by their bits."""
    equal = to_bits(a.data) == to_bits(b.data)
    for x, y in zip(a.masks, b.masks, strict=True):
        if not np.array_equal(full(x, a.data), full(y, b.data)):
            return False
        equal = equal | full(x, a.data)
    return bool(np.all(equal))


class _Devices:
    """The state of one evaluation; a received value is a PARAM of the graphs that run after it."""

    def __init__(self, root: UOp, values: Mapping[UOp, Value]) -> None:
        self._root = root
        self._held = {
            slot_of(u): Sharded(u.device, u.axis, split(v, u.axis, _count(u.device)))
            for u, v in values.items()
        }
        """The inputs and the received values, by slot."""
        leaves = [u for u in root.toposort() if u.op in LEAVES]
        self._next_slot = 1 + max((slot_of(u) for u in leaves), default=-1)
        self._received: dict[UOp, int] = {}

    def result(self) -> ShardedOutput:
        root = self._root
        for u in root.toposort():
            if _communicates(u):
                self._held[self._next_slot] = self._communicated(u)
                self._received[u] = self._next_slot
                self._next_slot += 1
        if root.op is Op.TUPLE:
            return tuple(self._on_devices(s) for s in root.src)
        if root.op in (Op.SINK, Op.GROUP, Op.STORE):
            return self._stored()
        return self._on_devices(root)

    def _communicated(self, u: UOp) -> Sharded:
        """Return what each device has after an op that exchanges or compares values."""
        count = _count(u.device)
        if u.op is Op.LOAD:
            there = self._on_devices(UOp(Op.LOAD, *u.src, arg=args.LoadArg())).whole()
            return Sharded(u.device, u.axis, split(there, u.axis, count))
        t = self._on_devices(u.src[0])
        if u.op is Op.REDUCE:
            return Sharded(u.device, None, (_alone(u, t.whole()),) * count)
        parts = tuple(_alone(u, part) for part in t.parts)
        if not all(are_equal(parts[0], part) for part in parts[1:]):
            k = next(k for k, part in enumerate(parts) if not are_equal(parts[0], part))
            names = cast("tuple[str, ...]", u.src[0].device)
            found = f"the shards on {names[0]} and {names[k]} differ"
            raise undefined("REPLICATED.u1", found, u)
        return Sharded(u.device, None, parts)

    def _on_devices(self, u: UOp) -> Sharded:
        parts = [self._run(self._local(u, u.device, k), k) for k in range(_count(u.device))]
        return Sharded(u.device, u.axis, tuple(cast("list[Value]", parts)))

    def _stored(self) -> dict[int, Sharded]:
        """Return the final contents of every buffer that is stored to, on each device."""
        stores = [u for u in self._root.toposort() if u.op is Op.STORE]
        result: dict[int, Sharded] = {}
        for device in {u.device: None for u in stores}:
            there = [u for u in stores if u.device == device]
            outputs: list[dict[int, Value]] = []
            for k in range(_count(device)):
                effects = UOp(Op.SINK, *(self._local(u, device, k) for u in there))
                outputs.append(cast("dict[int, Value]", self._run(effects, k)))
            for base in {base_of(u.src[0]): None for u in there}:
                slot = slot_of(base)
                if slot in result:
                    found = f"slot {slot} on {device} and on {result[slot].device}"
                    raise lacking("BUFFER.n2", found, base)
                result[slot] = Sharded(device, base.axis, tuple(o[slot] for o in outputs))
        return dict(sorted(result.items()))

    def _run(self, local: UOp, k: int) -> FullOutput:
        """Run a graph of device k on the values that it holds."""
        leaves = (u for u in local.toposort() if u.op in LEAVES)
        held = {slot_of(u): None for u in leaves}
        inputs = {slot: self._held[slot].parts for slot in held if slot in self._held}
        return evaluate_full(
            local,
            {slot: parts[k if len(parts) > 1 else 0] for slot, parts in inputs.items()},
            check_value,
        )

    def _local(self, root: UOp, device: args.Device, k: int) -> UOp:
        """Return the graph that device k of `device` runs for a node: the same ops, on shards."""
        done: dict[UOp, UOp] = {}

        def sources(u: UOp) -> Sequence[UOp]:
            if u in self._received:
                return ()
            return sources_here(u, device) if u.op in (Op.AFTER, Op.GROUP) else u.src

        for u in toposort([root], sources):
            if u in self._received:
                received = self._held[self._received[u]]
                done[u] = param(self._received[u], received.parts[0].data.shape, u.dtype)
            elif u.op in LEAVES:
                leaf = arg_of(u, args.ParamArg, args.BufferArg)
                done[u] = UOp(u.op, dims(local_shape(u)), arg=replace(leaf, device=None))
            elif u.op in (Op.AFTER, Op.GROUP):
                done[u] = UOp(u.op, *(done[s] for s in sources(u)), tag=u.tag)
            else:
                done[u] = local_node(u, done, k)
        return done[root]


def _count(device: args.Device) -> int:
    return len(device) if isinstance(device, tuple) else 1


def _communicates(u: UOp) -> bool:
    if u.op is Op.LOAD:
        return arg_of(u, args.LoadArg).device is not None
    if u.op is Op.REPLICATED and shards(u.src[0]) > 1:
        return u.src[0].axis in arg_of(u, args.ReplicatedArg).axes
    return folds_shards(u)


def _alone(u: UOp, t: Value) -> Value:
    """Compute a unary op on one operand by the reference."""
    there = UOp(u.op, param(0, t.data.shape, u.src[0].dtype), arg=u.arg)
    return cast(Value, evaluate_full(there, {0: t}))

"""Rewrites a program on several devices so that each value is on one of them (in callify).

Each device computes its part of a value by the ops of the program, on its parts of the operands. A
LOAD copies what it lacks: a value on another device, or the parts of others if a LOAD splits anew
or a REDUCE folds the shards. Split inputs and results are whole on the first device; so are values
that name no device. A value of constants is computed where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import gcd
from typing import cast

from uop.compiler.build import reshaped
from uop.compiler.stages.order import free_slots, temporary
from uop.spec.args import BufferArg, LoadArg, ParamArg, PermuteArg, ReduceArg, arg_of
from uop.spec.conditions.clauses import lacking
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, base_of, devices_of, places_of, returns_memory
from uop.spec.ops.names import Op
from uop.spec.properties.axis import shards
from uop.spec.properties.shape import is_fixed
from uop.spec.properties.symbolic import is_variable
from uop.spec.shards import folds_shards, local_node, local_shape, sources_here, window
from uop.spec.uop import UOp


def is_on_several(root: UOp) -> bool:
    """Whether a program names several devices, or a tuple of one."""
    found = {u.device for u in root.toposort()} - {None}
    return len(found) > 1 or any(isinstance(device, tuple) for device in found)


def on_single_devices(root: UOp) -> UOp:
    """A program without FUNCTIONs, with every value on one device.

    LackingError for kernels; UnsupportedError for addresses, and for a split value without a fixed
    size.
    """
    order, names = root.toposort(), devices_of(root)
    for u in order:
        if u.op is Op.CALL:
            raise lacking("CALL.n5", "a kernel", u)
        if u.op is Op.GETADDR or (isinstance(u.device, tuple) and not is_fixed(u.shape)):
            what = "GETADDR" if u.op is Op.GETADDR else f"{u.op.name} of a size that is not fixed"
            raise UnsupportedError(f"callify: {what} on the devices ({', '.join(names)})")
    return _Parts(order, names).root()


class _Parts:
    """The part of each value that each device computes."""

    def __init__(self, order: Sequence[UOp], names: Sequence[str]) -> None:
        self._order, self._names, self._home = order, names, names[0]
        self._slots = free_slots(order)
        self._done: dict[tuple[UOp, str], UOp] = {}
        for u in order:
            for name in self._places(u):
                self._done[u, name] = self._part(u, name)

    def root(self) -> UOp:
        root = self._order[-1]
        if root.op is Op.TUPLE:
            return UOp(Op.TUPLE, *map(self._whole, root.src))
        if not returns_memory(root):
            return self._whole(root)
        stores: dict[UOp, list[UOp]] = {}
        for u in self._order:
            if u.op is Op.STORE:
                stores.setdefault(base_of(u.src[0]), []).append(u)
        return UOp(Op.SINK, *(s for base in stores for s in self._stored(base, stores[base])))

    def _places(self, u: UOp) -> Sequence[str]:
        """The devices that hold a node, or a part of it."""
        if u.op is Op.TUPLE:
            return ()
        if u.device is not None:
            return places_of(u.device)
        is_effect = u.op in (Op.STORE, Op.GROUP, Op.SINK)
        return (self._home,) if is_effect else self._names

    def _part(self, u: UOp, name: str) -> UOp:
        if is_variable(u):
            return u
        in_memory = u.op is Op.PARAM or u.addrspace is not None
        if u.device is None and in_memory and name != self._home:
            return _copied(self._done[u, self._home], name)
        if u.op in LEAVES:
            return self._leaf(u, name)
        if u.op in (Op.AFTER, Op.GROUP, Op.SINK):
            here = sources_here(u, u.device)
            kept = [self._done[s, name] for s in here if (s, name) in self._done]
            if u.op is Op.AFTER:
                kept += self._elsewhere(u)
            return UOp(u.op, *kept, tag=u.tag)
        if u.op is Op.LOAD and arg_of(u, LoadArg).device is not None:
            return self._loaded(u, name)
        if folds_shards(u):
            return self._folded(u, name)
        return self._computed(u, name)

    def _elsewhere(self, after: UOp) -> list[UOp]:
        """The parts of what an AFTER waits for that are on other devices: they read its memory."""
        left, found = list(after.src[1:]), list[UOp]()
        while left:
            u = left.pop(0)
            if u.op in (Op.GROUP, Op.SINK):
                left += u.src
            elif u.op is Op.STORE and u.device != after.device:
                found += [self._done[u, name] for name in self._places(u)]
        return found

    def _computed(self, u: UOp, name: str) -> UOp:
        """What a device computes from what it has."""
        of = places_of(u.device)
        parts = {s: self._done[s, name] for s in u.src}
        return local_node(u, parts, of.index(name) if of else 0)

    def _leaf(self, u: UOp, name: str) -> UOp:
        """The part of an input or buffer. A split one is whole on the first device; each other
        device has memory for its part of a buffer.
        """
        if not isinstance(u.device, tuple):
            return _leaf_on(u, name)
        whole, shape = _leaf_on(u, self._home), local_shape(u)
        number = u.device.index(name)
        there = _copied(window(whole, 0, number * shape[0], shape[0]), name)
        if u.addrspace is None:
            return there
        memory = temporary(next(self._slots), u.dtype, shape, name)
        return UOp(Op.AFTER, memory, UOp(Op.STORE, memory, there))

    def _loaded(self, u: UOp, name: str) -> UOp:
        """The part of a copy that a device gets: a shard, which may have come in pieces."""
        source = u.src[0]
        to = places_of(u.device)
        size = local_shape(u)[0] if u.shape else 1
        start = to.index(name) * size if len(to) > 1 else 0
        own = UOp(Op.LOAD, *u.src, arg=LoadArg())
        there = places_of(source.device)
        if shards(source) == 1:
            nearest = name if name in there or not there else there[0]
            return _copied(_rows(self._computed(own, nearest), start, size), name)
        axis = cast(int, source.axis)
        pieces = []
        for k, other in enumerate(there):
            part = self._computed(own, other)
            first = k * part.shape[0] if axis == 0 else 0
            low, high = max(start, first), min(start + size, first + part.shape[0])
            if low < high or not size:
                pieces.append(_copied(_rows(part, low - first, max(high - low, 0)), name))
        return _joined(pieces, axis)

    def _folded(self, u: UOp, name: str) -> UOp:
        """The fold of all shards: the first device folds what each of them is folded to."""
        first, op = places_of(u.device)[0], arg_of(u, ReduceArg).op
        if name != first:
            return _copied(self._done[u, first], name)
        parts = [_copied(self._computed(u, other), first) for other in places_of(u.device)]
        folded = UOp(Op.REDUCE, UOp(Op.STACK, *parts), arg=ReduceArg(op, (0,)))
        return reshaped(folded, u.shape)

    def _whole(self, u: UOp) -> UOp:
        """A result: joined on the first device, or where it is whole. On several devices that is
        the last one, which it has been copied to.
        """
        places = places_of(u.device) or (self._home,)
        if shards(u) == 1:
            return self._done[u, places[-1]]
        parts = [_copied(self._done[u, name], self._home) for name in places]
        return _joined(parts, cast(int, u.axis))

    def _stored(self, base: UOp, stores: Iterable[UOp]) -> Iterable[UOp]:
        """The STOREs to a buffer; its parts on several devices are stored to the whole."""
        places = places_of(base.device) or (self._home,)
        here = {name: [self._done[u, name] for u in stores] for name in places}
        if not isinstance(base.device, tuple):
            return here[places[0]]
        parts = [UOp(Op.AFTER, self._done[base, name], *here[name]) for name in places]
        whole = _joined([_copied(part, self._home) for part in parts], 0)
        return [UOp(Op.STORE, _leaf_on(base, self._home), whole)]


def _leaf_on(u: UOp, name: str) -> UOp:
    arg = arg_of(u, ParamArg, BufferArg)
    return UOp(u.op, *u.src, arg=replace(arg, device=name))


def _copied(t: UOp, name: str) -> UOp:
    """A value on a device; what is computed from constants is on every one."""
    is_there = t.device in (None, name)
    return t if is_there else UOp(Op.LOAD, t, arg=LoadArg(name))


def _rows(t: UOp, start: int, size: int) -> UOp:
    return window(t, 0, start, size) if t.shape else t


def _joined(parts: Sequence[UOp], axis: int) -> UOp:
    """Parts one after the other along an axis: a STACK of blocks, all of one size."""
    sizes = [t.shape[axis] for t in parts]
    size = gcd(*sizes)
    if len(parts) == 1 or not size:
        return parts[0]
    starts = [(t, start) for t, d in zip(parts, sizes, strict=True) for start in range(0, d, size)]
    stacked = UOp(Op.STACK, *(window(t, axis, start, size) for t, start in starts))
    shape = parts[0].shape
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
    moved = UOp(Op.PERMUTE, stacked, arg=PermuteArg(order))
    return reshaped(moved, (*shape[:axis], sum(sizes), *shape[axis + 1 :]))

"""Translates kernels to the graphs that tinygrad's scheduler passes to its code generator.

tinygrad puts a gate into the index: where it is false, the index is Invalid and accesses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uop.conformance.backends.tinygrad_graph import NAMES, RULES
from uop.conformance.backends.tinygrad_library import Language, Node
from uop.conformance.backends.tinygrad_opts import Loop, Optimizer, is_chained, loops_of, users_of
from uop.interpreter.kernel.schedule import is_parallel
from uop.spec.args import AddrSpace, BufferArg, ConstArg, ReduceArg, SpecialArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of, slot_of
from uop.spec.kernel.forms import closed_by
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

OWN_REGISTERS = 1000
"""The first slot of a kernel's registers: tinygrad numbers those of its folds from 0."""


def kernel(language: Language, root: UOp) -> Node:
    """Translate a kernel for a device; its buffers come in the order of `used_slots`.

    UnsupportedError for what tinygrad does not pass to its code generator, and for what the device
    lacks.
    """
    if root.op is not Op.SINK:
        raise UnsupportedError(f"tinygrad is handed no {root.op.name} as a kernel")
    refuse_unusual(root.toposort())
    body = Body(language, root)
    sink = language.node("SINK", *body.effects(), arg=language.kernel_info(opts_to_apply=()))
    if not any(loop.is_optimized for loop in body.loops):
        return sink
    return Optimizer(language, sink).optimized(body.plain)


class Body:
    """The translation of one kernel."""

    def __init__(self, language: Language, root: UOp) -> None:
        self.language, self.root = language, root
        self.has_groups: bool = language.renderer.has_local
        self.order = root.toposort()
        self.users = users_of(self.order)
        self.slots = used_slots(root)
        self.loops = loops_of(self.order, self.users)
        self.loop_of = {r: loop for loop in self.loops for r in loop.ranges}
        self.plain: dict[Loop, Node] = {}
        """The RANGEs before any Opt."""
        self.items: dict[UOp, Node] = {} if self.has_groups else self._items()

    def effects(self) -> list[Node]:
        done: dict[UOp, Node] = {}
        for u in self.order[:-1]:
            done[u] = self._node(u, done)
        effects = [done[s] for s in self.root.src]
        if not self.items:
            return effects
        # A work item has all of the effects, so one loop holds them.
        item = effects[0] if len(effects) == 1 else self.language.node("GROUP", *effects)
        return [self.language.node("END", item, *self.items.values())]

    def loop(self, size: Node, id: int, axis_type: str) -> Node:
        return self.language.node("RANGE", size, arg=(id, self.language.axis_types[axis_type]))

    def _items(self) -> dict[UOp, Node]:
        """On a device without work groups the work items are the iterations of loops.

        Their ids come before those of other loops, as they are the outer ones.
        """
        items = sorted((u for u in self.order if u.op is Op.SPECIAL), key=_name)
        sizes = (self.language.constant(arg_of(u.src[0], ConstArg)) for u in items)
        return {
            u: self.loop(size, id, "WEAK")
            for id, (u, size) in enumerate(zip(items, sizes, strict=True))
        }

    def _node(self, u: UOp, done: dict[UOp, Node]) -> Node:
        src = [done[s] for s in u.src]
        if rule := KERNEL_RULES.get(u.op):
            return rule(self, u, src)
        if u.op is Op.GROUP:
            return self.language.node("GROUP", *src)
        is_computed = u.declaration.dtypes or u.op is Op.BITCAST
        if is_computed and u.op in NAMES:
            return self.language.node(NAMES[u.op], *src)
        if is_computed and u.op in RULES:
            return RULES[u.op](self.language, u, src)
        raise UnsupportedError(f"tinygrad is handed no {u.op.name} in a kernel")


def refuse_unusual(order: Sequence[UOp]) -> None:
    """UnsupportedError for loops and orders that tinygrad's scheduler makes no kernel of."""
    closed = [r for u in order for r in closed_by(u)]
    if len(set(closed)) < len(closed):
        raise UnsupportedError("tinygrad is handed kernels that close each RANGE once")
    for u in order:
        bounds = [v for r in u.src[1:] for v in r.src[0].toposort()] if u.op is Op.REDUCE else []
        if any(v.op is Op.LOAD for v in bounds):
            raise UnsupportedError("tinygrad is handed no fold as long as data says")
        if u.op is Op.STORE and base_of(u.src[0]).op is Op.PARAM and _waits_for_items(u.src[0]):
            raise UnsupportedError("tinygrad is handed no STORE that waits for other work items")


def _waits_for_items(location: UOp) -> bool:
    """Whether an AFTER around a location names the END of a loop over work items."""
    while location.op in (Op.INDEX, Op.AFTER):
        waited = location.src[1:] if location.op is Op.AFTER else ()
        if any(u.op is Op.END and is_parallel(u.src[1]) for u in waited):
            return True
        location = location.src[0]
    return False


def used_slots(body: UOp) -> list[int]:
    """The slots that a body uses: tinygrad numbers the buffers of a kernel without gaps."""
    return sorted({slot_of(u) for u in body.toposort() if u.op is Op.PARAM})


def written_slots(call: UOp) -> list[int]:
    """The arguments of a CALL that its body stores to."""
    stores = (u for u in call.src[0].toposort() if u.op is Op.STORE)
    places = (base_of(u.src[0]) for u in stores)
    return sorted({slot_of(place) for place in places if place.op is Op.PARAM})


def _name(special: UOp) -> str:
    return arg_of(special, SpecialArg).name


def _shape(body: Body, u: UOp, src: list[Node]) -> Node:
    """The shape operand of a PARAM or BUFFER, which tinygrad's makes itself."""
    if u.dtype is not dtypes.index or any(s.op is not Op.CONST for s in u.src):
        raise UnsupportedError("tinygrad's code generator makes vectors itself")
    return None


def _param(body: Body, u: UOp, src: list[Node]) -> Node:
    slot = body.slots.index(slot_of(u))
    if len(u.shape) != 1 or not u.shape[0]:
        raise UnsupportedError("tinygrad's kernels see flat buffers that are not empty")
    return body.language.uop.placeholder(u.shape, body.language.dtype(u.dtype), slot)


def _buffer(body: Body, u: UOp, src: list[Node]) -> Node:
    """Registers of a work item: where items are iterations, each iteration starts with new ones."""
    if arg_of(u, BufferArg).addrspace is not AddrSpace.REG:
        raise _of_groups(body, "memory of a work group")
    dtype, slot = body.language.dtype(u.dtype), OWN_REGISTERS + slot_of(u)
    space = body.language.addrspace.REG
    registers = body.language.uop.placeholder(u.shape, dtype, slot, addrspace=space)
    return registers.after(*body.items.values())


def _after(body: Body, u: UOp, src: list[Node]) -> Node:
    done = (_plain(body, s) if s.op is Op.RANGE else x for s, x in zip(u.src, src, strict=True))
    return body.language.node("AFTER", *done)


def _barrier(body: Body, u: UOp, src: list[Node]) -> Node:
    raise _of_groups(body, "BARRIER")


def _of_groups(body: Body, what: str) -> UnsupportedError:
    if body.has_groups:
        return UnsupportedError(f"tinygrad makes each {what} of a kernel itself")
    return UnsupportedError(f"{body.language.target} has no work groups: no {what}")


def _range(body: Body, u: UOp, src: list[Node]) -> Node:
    """The index of a RANGE at a position of its loop."""
    loop = body.loop_of[u]
    if loop not in body.plain:
        size = src[0] if loop.size is None else body.language.uop.const(loop.size)
        id = len(body.items) + body.loops.index(loop)
        body.plain[loop] = body.loop(size, id, loop.plain_type)
    return loop.indices(body.language, body.plain[loop])[u]


def _plain(body: Body, r: UOp) -> Node:
    return body.plain[body.loop_of[r]]


def _end(body: Body, u: UOp, src: list[Node]) -> Node:
    """tinygrad closes a nest by one END."""
    effect, ranges = src[0], [_plain(body, u.src[1])]
    if is_chained(u.src[0], body.users):
        effect, inner = src[0].src[0], src[0].src[1:]
        ranges += [r for r in inner if r not in ranges]
    return body.language.node("END", effect, *ranges)


def _special(body: Body, u: UOp, src: list[Node]) -> Node:
    if u in body.items:
        return body.items[u]
    return body.language.node("SPECIAL", src[0], arg=_name(u))


def _index(body: Body, u: UOp, src: list[Node]) -> Node:
    if len(u.src) != 2 or u.src[0].addrspace is None or u.src[1].shape:
        raise UnsupportedError("tinygrad's code generator makes vectors itself")
    return body.language.node("INDEX", *src)


def _gated(body: Body, place: Node, gate: Node) -> Node:
    language = body.language
    index = language.node("WHERE", gate, place.src[1], language.uop.invalid())
    return language.node("INDEX", place.src[0], index)


def _load(body: Body, u: UOp, src: list[Node]) -> Node:
    language = body.language
    if len(src) < 3:
        return language.node("LOAD", src[0])
    return language.node(
        "WHERE", src[2], language.node("LOAD", _gated(body, src[0], src[2])), src[1]
    )


def _store(body: Body, u: UOp, src: list[Node]) -> Node:
    place = src[0] if len(src) < 3 else _gated(body, src[0], src[2])
    return body.language.node("STORE", place, src[1])


def _reduce(body: Body, u: UOp, src: list[Node]) -> Node:
    arg = arg_of(u, ReduceArg)
    if arg.axes or arg.op is Op.MIN:
        raise UnsupportedError("tinygrad's code generator folds by ADD, MUL and MAX over loops")
    if len(src) == 1:
        return src[0]
    ranges = dict.fromkeys(_plain(body, r) for r in u.src[1:])
    fold = (body.language.ops[arg.op.name], 0)
    return body.language.node("REDUCE", src[0], *ranges, arg=fold)


KERNEL_RULES: dict[Op, Callable[[Body, UOp, list[Node]], Node]] = {
    Op.CONST: lambda body, u, src: body.language.constant(arg_of(u, ConstArg)),
    Op.STACK: _shape,
    Op.PARAM: _param,
    Op.BUFFER: _buffer,
    Op.AFTER: _after,
    Op.BARRIER: _barrier,
    Op.RANGE: _range,
    Op.END: _end,
    Op.SPECIAL: _special,
    Op.INDEX: _index,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.REDUCE: _reduce,
}

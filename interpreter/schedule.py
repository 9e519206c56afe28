"""The order in which a kernel body runs: instructions and the serial loops around them.

Ranges that carry nothing from one iteration to the next are numpy axes, not loops; a loop is serial
where its body writes to REG memory, which is how an accumulator is spelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from uop.interpreter.memory import base_of
from uop.spec.args import AddrSpace, ConstArg
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.walk import toposort

if TYPE_CHECKING:
    from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class Loop:
    """A serial loop: its RANGE and what runs in each iteration."""

    range: UOp
    items: tuple[UOp | Loop, ...]


Items = tuple["UOp | Loop", ...]


def of_linear(instructions: Iterable[UOp]) -> Items:
    """The loops of a LINEAR: each RANGE opens one, its END closes it."""
    open_loops: list[tuple[UOp | None, list[UOp | Loop]]] = [(None, [])]
    for u in instructions:
        if u.op is Op.RANGE:
            open_loops.append((u, []))
        elif u.op is Op.END:
            opened, items = open_loops.pop()
            if opened is None or opened is not u.src[1]:
                raise UndefinedError("END closes a RANGE that is not the innermost open one")
            open_loops[-1][1].append(Loop(opened, tuple(items)))
        else:
            open_loops[-1][1].append(u)
    if len(open_loops) > 1:
        raise UndefinedError("a RANGE is never closed")
    return tuple(open_loops[0][1])


def of_graph(body: UOp) -> Items:
    """The loops of a body that is still a graph, by data flow; nothing of those that never run."""
    order = toposort([body], executed_sources)
    serial = serial_ranges(order)
    open_at: dict[UOp, frozenset[UOp]] = {}
    for u in order:
        inside = frozenset().union(*(open_at[s] for s in executed_sources(u)))
        if u in serial:
            inside |= {u}
        elif u.op is Op.END:
            inside -= {u.src[1]}
        open_at[u] = inside
    if open_at[body]:
        raise UndefinedError("a serial RANGE is never closed")
    return _block(order, open_at, frozenset())


def executed_sources(u: UOp) -> tuple[UOp, ...]:
    """The sources that run: an END or REDUCE over a range without iterations runs nothing."""
    ranges = u.src[1:] if u.op in (Op.END, Op.REDUCE) else ()
    return () if any(bound(r) == 0 for r in ranges) else u.src


def bound(u: UOp) -> int:
    """How often a RANGE runs, how many items a SPECIAL has."""
    if u.src[0].op is not Op.CONST:
        raise UnsupportedError("symbolic sizes: the bound of a RANGE or SPECIAL is no CONST")
    return int(cast(ConstArg, u.src[0].arg).value)


def serial_ranges(order: Iterable[UOp]) -> set[UOp]:
    """The RANGEs whose END closes a write to REG memory."""
    serial: set[UOp] = set()
    for u in order:
        if u.op is Op.END and any(_writes_register(s) for s in u.src[0].toposort()):
            serial.add(u.src[1])
    return serial


def _writes_register(u: UOp) -> bool:
    return u.op is Op.STORE and base_of(u.src[0]).addrspace is AddrSpace.REG


def _block(
    nodes: Iterable[UOp], open_at: dict[UOp, frozenset[UOp]], current: frozenset[UOp]
) -> Items:
    """What runs directly inside the loops `current`, in topological order."""
    items: list[UOp | Loop] = []
    for u in nodes:
        if u in current or not open_at[u] <= current:
            continue
        closed = u.src[1] if u.op is Op.END else None
        if closed is None or closed not in open_at.get(closed, ()):
            items.append(u)
            continue
        content = [v for v in u.src[0].toposort() if closed in open_at.get(v, ())]
        items.append(Loop(closed, _block(content, open_at, current | {closed})))
    return tuple(items)

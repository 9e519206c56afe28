"""Kernel bodies, run one work item and one iteration at a time: nothing is an array.

A work item is a coroutine that stops at barriers. Every access to shared memory is written down;
two that nothing orders are looked for in the end. Integers only, for the point is which
instruction runs when and on which memory, not arithmetic.
"""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from uop.spec.args import AddrSpace, ConstArg, DTypeArg, ParamArg, ReduceArg, SpecialArg
from uop.spec.dtype import DType, Kind
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

INFIX: dict[Op, Callable[[int, int], int]] = {
    Op.ADD: operator.add,
    Op.MUL: operator.mul,
    Op.SUB: operator.sub,
    Op.MAX: max,
    Op.IDIV: operator.floordiv,
    Op.MOD: operator.mod,
    Op.CMPLT: operator.lt,
    Op.CMPNE: operator.ne,
    Op.AND: operator.and_,
    Op.OR: operator.or_,
    Op.XOR: operator.xor,
}
START = {Op.ADD: 0, Op.MUL: 1}

Number = int | list[int]
Run = Generator[UOp, None, Number]
"""Gives the barriers it waits at, and returns a value."""


class NoMeaningError(Exception):
    """What the program does is undefined."""


def wrapped(value: int, dtype: DType) -> int:
    if dtype.kind is Kind.BOOL:
        return int(value != 0)
    return (value - int(dtype.min)) % (1 << dtype.bits) + int(dtype.min)


def run_body(body: UOp, memory: list[list[int]]) -> None:
    """Run a body for every work item; `memory` holds the argument buffers and is written to."""
    specials = [u for u in body.toposort() if u.op is Op.SPECIAL]
    shared = Shared(memory)
    members = defaultdict(list)
    for number, place in enumerate(itertools.product(*(range(_bound(u)) for u in specials))):
        position = dict(zip(specials, place, strict=True))
        group = tuple(at for u, at in position.items() if not _is_local(u))
        members[group].append((number, position))
    for group, items in members.items():
        local: dict[UOp, list[int | None]] = {}
        runs = [_Item(shared, local, n, group, position) for n, position in items]
        _in_step(body, runs)
    shared.check()


def _in_step(body: UOp, items: list[_Item]) -> None:
    """Run the items of a group from barrier to barrier; all have to meet at each."""
    running = [(item, item.whole(body)) for item in items]
    while True:
        met = [next(run, None) for _, run in running]
        if len(set(met)) > 1:
            raise NoMeaningError("divergent barrier")
        if met[0] is None:
            return
        for item, _ in running:
            item.interval += 1


def _bound(u: UOp) -> int:
    assert isinstance(u.src[0].arg, ConstArg)
    return int(u.src[0].arg.value)


def _is_local(u: UOp) -> bool:
    assert isinstance(u.arg, SpecialArg)
    return u.arg.name.startswith("lidx")


@dataclass
class Shared:
    """The argument buffers, and who accessed what."""

    memory: list[list[int]]
    log: dict[tuple[object, ...], set[tuple[int, object, int, str]]] = field(
        default_factory=lambda: defaultdict(set)
    )

    def check(self) -> None:
        for touches in self.log.values():
            for one, other in itertools.combinations(sorted(touches, key=str), 2):
                _refuse_race(one, other)


def _refuse_race(one: tuple[int, object, int, str], other: tuple[int, object, int, str]) -> None:
    (item, group, interval, use), (item2, group2, interval2, use2) = one, other
    if item == item2 or use == use2 != "write":
        return
    if group != group2 or interval == interval2:
        raise NoMeaningError("race")


class _Item:
    """One work item: what it has computed, the positions of its loops, and its registers."""

    def __init__(
        self,
        shared: Shared,
        local: dict[UOp, list[int | None]],
        number: int,
        group: object,
        position: dict[UOp, int],
    ) -> None:
        self.shared, self.local, self.number, self.group = shared, local, number, group
        self.position: dict[UOp, int] = position
        self.registers: dict[UOp, list[int | None]] = {}
        self.interval = 0
        self.listed: dict[UOp, Number] | None = None
        self.done: dict[tuple[object, ...], Number] = {}
        self.open: dict[UOp, tuple[UOp, ...]] = {}

    def whole(self, body: UOp) -> Iterator[UOp]:
        """Run a body: a LINEAR as its list says, a graph by what depends on what."""
        if body.op is Op.LINEAR:
            self.listed = {}
            yield from self.instructions(list(body.src))
        else:
            for u in body.toposort():
                inside = dict.fromkeys(r for s in u.src for r in self.open[s])
                closed = u.src[1:] if u.op in (Op.END, Op.REDUCE) else ()
                own = (u,) if u.op is Op.RANGE else ()
                self.open[u] = (*(r for r in inside if r not in closed), *own)
            yield from self.value(body)

    def instructions(self, listed: list[UOp]) -> Iterator[UOp]:
        assert self.listed is not None
        at = 0
        while at < len(listed):
            u = listed[at]
            if u.op in (Op.RANGE, Op.IF):
                closing = next(k for k in range(at, len(listed)) if _closes(listed[k], u))
                inside = listed[at + 1 : closing]
                if u.op is Op.RANGE:
                    for i in range(self.number_of((yield from self.value(u.src[0])))):
                        self.position[u] = i
                        yield from self.instructions(inside)
                elif (yield from self.value(u.src[0])):
                    yield from self.instructions(inside)
                at = closing
            elif u.addrspace is None and u not in self.position:
                self.listed[u] = yield from self.fresh(u)
            at += 1

    @staticmethod
    def number_of(value: Number) -> int:
        assert isinstance(value, int)
        return value

    def value(self, u: UOp) -> Run:
        """What a node has computed, or runs it now; a node of a graph runs once an iteration."""
        if u in self.position:
            return self.position[u]
        if self.listed is not None:
            return self.listed[u] if u in self.listed else (yield from self.fresh(u))
        key = (u, *(self.position[r] for r in self.open[u] if r in self.position))
        if key not in self.done:
            self.done[key] = yield from self.fresh(u)
        return self.done[key]

    def fresh(self, u: UOp) -> Run:
        if u.op is Op.CONST:
            assert isinstance(u.arg, ConstArg)
            return int(u.arg.value)
        if u.op in (Op.STORE, Op.ATOMICADD, Op.LOAD):
            return (yield from self.access(u))
        if u.op is Op.END:
            for i in range(self.number_of((yield from self.value(u.src[1].src[0])))):
                self.position[u.src[1]] = i
                yield from self.value(u.src[0])
            self.position.pop(u.src[1], None)
            return 0
        if u.op is Op.REDUCE:
            return (yield from self.reduced(u))
        operands = []
        for s in u.src:
            if self.listed is None or s.dtype.kind is not Kind.VOID:
                operands.append((yield from self.value(s)))
        if u.op is Op.BARRIER:
            yield u
        return 0 if u.dtype.kind is Kind.VOID else computed(u, operands)

    def access(self, u: UOp) -> Run:
        location = u.src[0]
        indices = location.src[1:] if location.op is Op.INDEX else ()
        base = location.src[0] if location.op is Op.INDEX else location
        while base.op is Op.AFTER:
            for dep in base.src[1:] if self.listed is None else ():
                if dep.op is not Op.RANGE:
                    yield from self.value(dep)
            base = base.src[0]
        gate = u.src[2] if len(u.src) > 2 else None
        asked = 1 if gate is None else (yield from self.value(gate))
        if isinstance(asked, list):
            assert u.op is Op.LOAD
            instead = yield from self.value(u.src[1])
            where = yield from self.value(indices[0])
            lanes = zip(where, asked, instead, strict=True)
            return [self.touch(u, base, i, 0) if is_open else n for i, is_open, n in lanes]
        if not asked:
            return (yield from self.value(u.src[1])) if u.op is Op.LOAD else 0
        value: Number = 0
        if u.op is not Op.LOAD:
            value = yield from self.value(u.src[1])
        if not indices:
            return self.touch(u, base, list(range(base.shape[0])), value)
        i = yield from self.value(indices[0])
        return self.touch(u, base, i, value)

    def touch(self, u: UOp, base: UOp, where: Number, value: Number) -> Number:
        """Read, write or add, one element after the other."""
        if isinstance(where, list):
            if u.op is not Op.LOAD and len(set(where)) < len(where):
                raise NoMeaningError("race with itself")
            terms = value if isinstance(value, list) else [value] * len(where)
            return [
                self.number_of(self.touch(u, base, at, term))
                for at, term in zip(where, terms, strict=True)
            ]
        memory = self.memory(base)
        if not 0 <= where < len(memory):
            raise NoMeaningError("out of bounds")
        if base.addrspace is not AddrSpace.REG:
            use = {Op.LOAD: "read", Op.STORE: "write", Op.ATOMICADD: "add"}[u.op]
            owner = (base, self.group if base.addrspace is AddrSpace.LOCAL else None, where)
            self.shared.log[owner].add((self.number, self.group, self.interval, use))
        held = memory[where]
        if u.op is Op.STORE:
            memory[where] = self.number_of(value)
            return 0
        if held is None:
            raise NoMeaningError("never written")
        if u.op is Op.ATOMICADD:
            memory[where] = wrapped(held + self.number_of(value), base.dtype)
        return held

    def memory(self, base: UOp) -> list[int | None]:
        if base.op is Op.PARAM:
            assert isinstance(base.arg, ParamArg)
            return self.shared.memory[base.arg.slot]  # type: ignore[return-value]
        own = self.registers if base.addrspace is AddrSpace.REG else self.local
        return own.setdefault(base, [None] * base.shape[0])

    def reduced(self, u: UOp) -> Run:
        assert isinstance(u.arg, ReduceArg)
        op, loops = u.arg.op, u.src[1:]
        result = START.get(op, int(u.dtype.min))
        counts = []
        for r in loops:
            counts.append(self.number_of((yield from self.value(r.src[0]))))
        for item in itertools.product(*map(range, counts)):
            self.position.update(zip(loops, item, strict=True))
            term = self.number_of((yield from self.value(u.src[0])))
            result = wrapped(INFIX[op](result, term), u.dtype)
        for r in loops:
            self.position.pop(r, None)
        return result


def _closes(u: UOp, opened: UOp) -> bool:
    return u.op in (Op.END, Op.ENDIF) and u.src[-1] is opened


def computed(u: UOp, operands: list[Number]) -> Number:
    """The value of a node from those of its operands, element by element."""
    if u.op is Op.STACK:
        return [_Item.number_of(v) for v in operands]
    if u.op is Op.INDEX:
        held, where = operands
        assert isinstance(held, list)
        return held[where] if isinstance(where, int) else [held[i] for i in where]
    if u.shape:
        spread = [v if isinstance(v, list) else [v] * u.shape[0] for v in operands]
        return [scalar(u, list(row)) for row in zip(*spread, strict=True)]
    return scalar(u, [_Item.number_of(v) for v in operands])


def scalar(u: UOp, operands: list[int]) -> int:
    if u.op is Op.WHERE:
        return operands[1] if operands[0] else operands[2]
    if u.op is Op.CAST:
        assert isinstance(u.arg, DTypeArg)
        return wrapped(operands[0], u.arg.dtype)
    if u.op is Op.NEG:
        return wrapped(-operands[0], u.dtype)
    return wrapped(int(INFIX[u.op](operands[0], operands[1])), u.dtype)

"""Kernel bodies, run one work item and one iteration at a time: nothing is an array.

Integers only, for the point is which instruction runs when and on which memory, not arithmetic.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator

from uop.spec.args import ConstArg, DTypeArg, ParamArg, ReduceArg
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
}
START = {Op.ADD: 0, Op.MUL: 1}


def wrapped(value: int, dtype: DType) -> int:
    if dtype.kind is Kind.BOOL:
        return int(value != 0)
    return (value - int(dtype.min)) % (1 << dtype.bits) + int(dtype.min)


def bound(u: UOp) -> int:
    assert isinstance(u.src[0].arg, ConstArg)
    return int(u.src[0].arg.value)


def run_body(body: UOp, memory: list[list[int]]) -> None:
    """Run a body for every work item; `memory` holds the argument buffers and is written to."""
    specials = [u for u in body.toposort() if u.op is Op.SPECIAL]
    for item in itertools.product(*(range(bound(u)) for u in specials)):
        _Item(memory, dict(zip(specials, item, strict=True))).effects(body)


class _Item:
    """One work item: positions of the open loops, and its registers."""

    def __init__(self, memory: list[list[int]], position: dict[UOp, int]) -> None:
        self.memory = memory
        self.position = position
        self.registers: dict[UOp, list[int]] = {}

    def effects(self, root: UOp) -> None:
        """Run the effects below a node in order; a LINEAR as its list says."""
        if root.op is Op.LINEAR:
            self.instructions(list(root.src))
        elif root.op is Op.STORE:
            self.store(root)
        elif root.op is Op.END:
            for _ in self.iterations(root.src[1]):
                self.effects(root.src[0])
        elif root.op in (Op.SINK, Op.GROUP):
            for s in root.src:
                self.effects(s)

    def instructions(self, listed: list[UOp]) -> None:
        at = 0
        while at < len(listed):
            u = listed[at]
            if u.op is Op.RANGE:
                closing = next(
                    k
                    for k in range(at, len(listed))
                    if listed[k].op is Op.END and u in listed[k].src
                )
                for _ in self.iterations(u):
                    self.instructions(listed[at + 1 : closing])
                at = closing
            elif u.op is Op.STORE:
                self.store(u, linear=True)
            at += 1

    def iterations(self, loop: UOp) -> Iterator[int]:
        for i in range(bound(loop)):
            self.position[loop] = i
            yield i
        self.position.pop(loop, None)

    def place(self, index: UOp, linear: bool) -> tuple[list[int], int]:
        """The memory and position of an INDEX, once what it stands behind has run."""
        location = index.src[0]
        while location.op is Op.AFTER:
            for dep in () if linear else location.src[1:]:
                self.after(dep)
            location = location.src[0]
        if location.op is Op.PARAM:
            assert isinstance(location.arg, ParamArg)
            return self.memory[location.arg.slot], self.value(index.src[1], linear)
        registers = self.registers.setdefault(location, [0] * location.shape[0])
        return registers, self.value(index.src[1], linear)

    def after(self, dep: UOp) -> None:
        """What an AFTER waits for: a write before the first iteration, or a whole loop."""
        if dep.op is Op.RANGE:
            return
        if dep.op is Op.STORE and any(self.position.get(u) for u in self.open_around(dep)):
            return
        self.effects(dep)

    def open_around(self, dep: UOp) -> list[UOp]:
        """The open loops that the write does not stand in: it ran before their first iteration."""
        inside = dep.toposort()
        return [u for u in self.position if u.op is Op.RANGE and u not in inside]

    def store(self, u: UOp, linear: bool = False) -> None:
        if len(u.src) > 2 and not self.value(u.src[2], linear):
            return
        value = self.value(u.src[1], linear)
        memory, at = self.place(u.src[0], linear)
        assert 0 <= at < len(memory)
        memory[at] = value

    def value(self, u: UOp, linear: bool) -> int:
        if u in self.position:
            return self.position[u]
        if u.op is Op.CONST:
            assert isinstance(u.arg, ConstArg)
            return int(u.arg.value)
        if u.op is Op.LOAD:
            if len(u.src) > 1 and not self.value(u.src[2], linear):
                return self.value(u.src[1], linear)
            memory, at = self.place(u.src[0], linear)
            assert 0 <= at < len(memory)
            return memory[at]
        if u.op is Op.REDUCE:
            return self.reduced(u, linear)
        operands = [self.value(s, linear) for s in u.src]
        if u.op is Op.WHERE:
            return operands[1] if operands[0] else operands[2]
        if u.op is Op.CAST:
            assert isinstance(u.arg, DTypeArg)
            return wrapped(operands[0], u.arg.dtype)
        return wrapped(int(INFIX[u.op](operands[0], operands[1])), u.dtype)

    def reduced(self, u: UOp, linear: bool) -> int:
        assert isinstance(u.arg, ReduceArg)
        op, loops = u.arg.op, u.src[1:]
        result = START.get(op, int(u.dtype.min))
        for item in itertools.product(*(range(bound(r)) for r in loops)):
            self.position.update(zip(loops, item, strict=True))
            result = wrapped(INFIX[op](result, self.value(u.src[0], linear)), u.dtype)
        for r in loops:
            self.position.pop(r, None)
        return result

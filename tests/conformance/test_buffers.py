"""Of steps on memory: nodes evaluated one after the other give what the programs give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest

from uop.conformance.suite.case import MIXED, Case
from uop.conformance.suite.generate import groups
from uop.conformance.suite.levels.graph.memory.buffers import EFFECTS
from uop.interpreter.evaluate import evaluate
from uop.spec.args import BufferArg, PadArg, PadFill, ParamArg
from uop.spec.dtype import dtypes
from uop.spec.graph import inlined, slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

Array = npt.NDArray[np.generic]
NOT_COMPUTED = (Op.PARAM, Op.CONST, Op.BIND, Op.GROUP, Op.SINK, Op.TUPLE)
LISTED = (("function", "on-memory"), *(("graph", name) for name in (*EFFECTS, "lent")))


def made(level: str, name: str) -> Iterator[Case]:
    for group in groups(level):
        if group.name == name and group.op == MIXED:
            for index in range(group.count("default")):
                case = group.case(index, 0)
                assert isinstance(case, Case)
                yield case


class Memory:
    """What the slots hold. A value that was computed has a slot of its own."""

    def __init__(self, contents: dict[int, Array]) -> None:
        self.data = dict(contents)
        self.known: dict[UOp, UOp] = {}
        self.free = count(1000)

    def do(self, u: UOp) -> None:
        """Compute a value, or store one. A location is read by what uses it."""
        if u.op is Op.STORE:
            stored = self.run(UOp(Op.SINK, UOp(u.op, self.place(u.src[0]), *self.read(u.src[1:]))))
            assert isinstance(stored, dict)
            self.data |= stored
        elif isinstance(u.arg, PadArg) and u.arg.fill is PadFill.INVALID:
            self.known[u] = UOp(u.op, *self.read(u.src), arg=u.arg)  # Its edges are no numbers.
        elif u.addrspace is None and u.op not in NOT_COMPUTED and u.dtype is not dtypes.index:
            self.known[u] = self.kept(self.run(UOp(u.op, *self.read(u.src), arg=u.arg)), u)

    def run(self, root: UOp) -> object:
        return evaluate(root, {slot: self.data[slot] for slot in slots_of(root)})

    def read(self, sources: Iterable[UOp]) -> list[UOp]:
        return [self.known.get(u, u) if u.addrspace is None else self.now(u) for u in sources]

    def now(self, location: UOp) -> UOp:
        return self.kept(self.run(self.place(location, is_read=True)), location)

    def kept(self, value: object, u: UOp) -> UOp:
        assert isinstance(value, np.ndarray)
        slot = next(self.free)
        self.data[slot] = value
        return param(slot, value.shape, u.dtype)

    def place(self, u: UOp, is_read: bool = False) -> UOp:
        """Return a location without what it waits for, to be written or read."""
        if u.op is Op.AFTER:
            return self.place(u.src[0], is_read)
        if isinstance(u.arg, BufferArg):
            return UOp(Op.PARAM, *u.src, arg=ParamArg(u.arg.slot, u.dtype)) if is_read else u
        first, *others = u.src
        return UOp(u.op, self.place(first, is_read), *self.read(others), arg=u.arg)


@pytest.mark.parametrize(("level", "name"), LISTED)
def test_what_is_computed_one_node_after_the_other_is_the_same(level: str, name: str) -> None:
    cases = list(made(level, name))
    assert len(cases) >= 8
    for case, batch in [(c, batch) for c in cases for batch in c.batches]:
        root, memory = inlined(case.root), Memory(dict(batch.inputs))
        for u in root.toposort():
            memory.do(u)
        found = evaluate(case.root, batch.inputs)
        if isinstance(found, dict):
            pairs = [(found[slot], memory.data[slot]) for slot in found]
        else:
            assert isinstance(found, tuple)
            results = [memory.data[slot] for r in memory.read(root.src) for slot in slots_of(r)]
            pairs = list(zip(found, results, strict=True))
        assert pairs
        for a, b in pairs:
            assert a.tobytes() == b.tobytes(), case.id


def test_siblings_are_distinct_and_of_few_nodes() -> None:
    roots = [case.root for case in made("graph", "stored-siblings")]
    assert len(set(roots)) == len(roots) > 40
    assert max(len(root.toposort()) for root in roots) < 40

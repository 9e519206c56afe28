"""Kernels whose STOREs run in work items of their own: a kernel for each, in a right order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pytest
from kernels import add, argument, int32, kernel_param, load, loop, memory, program, store

from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import compile
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AddrSpace, AxisType, ParamArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import RefusedError, UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

GLOBAL, LOCAL, LOOP, REDUCE = (
    AxisType.GLOBAL, AxisType.LOCAL, AxisType.LOOP, AxisType.REDUCE,
)  # fmt: skip
A, B, C = (kernel_param(slot, 4) for slot in range(3))
G, H = loop(0, 4, GLOBAL), loop(1, 4, GLOBAL)


def end(effect: UOp, *ranges: UOp) -> UOp:
    for r in reversed(ranges):
        effect = UOp(Op.END, effect, r)
    return effect


def after(place: UOp, *effects: UOp) -> UOp:
    return UOp(Op.AFTER, place, *effects)


def sink(*effects: UOp) -> UOp:
    return program(UOp(Op.SINK, *effects), 4, 4, 4)


def inputs_of(root: UOp, seed: int = 0) -> dict[int, Array]:
    draw = np.random.default_rng(seed)
    sizes = {u.arg.slot: u.shape for u in root.toposort() if u.op is Op.BUFFER and u.device is None}  # type: ignore[union-attr]
    return {
        slot: draw.permutation(int(np.prod(s))).astype(np.int32).reshape(s)
        for slot, s in sizes.items()
    }


def contents(output: object) -> dict[int, Array]:
    assert isinstance(output, dict)
    return output


def assert_equal(found: dict[int, Array], right: dict[int, Array]) -> None:
    assert found.keys() == right.keys()
    for slot, expected in right.items():
        np.testing.assert_array_equal(found[slot], expected)


def judged(root: UOp) -> int:
    """Compare a compiled program with the interpreter; return its number of kernels."""
    inputs = inputs_of(root)
    right = evaluate(root, inputs)
    compiled = compile(root)
    assert_equal(contents(compiled.run(inputs)), contents(right))
    return len(compiled.executable.steps)


def one_range() -> UOp:
    return sink(end(store(A, G, load(C, G)), G), end(store(B, G, int32(G)), G))


def own_ranges() -> UOp:
    return sink(end(store(A, G, load(C, G)), G), end(store(B, H, int32(H)), H))


def backwards() -> UOp:
    """The second nest reads what the first one has stored, from the end."""
    first = end(store(A, G, load(C, G)), G)
    last = load(after(A, first), UOp(Op.SUB, index_const(3), H))
    return sink(end(store(B, H, last), H))


def overwritten() -> UOp:
    """What the second nest stores to is read before, by a nest that the SINK names behind it."""
    reader = end(store(B, H, load(A, UOp(Op.SUB, index_const(3), H))), H)
    return sink(end(store(after(A, reader), G, int32(G)), G), reader)


def old_value() -> UOp:
    """A nest of more work items needs what another one reads and overwrites."""
    old = load(A, G)
    inner = loop(2, 1, GLOBAL)
    other = end(store(B, add(G, inner), old), G, inner)
    return sink(end(store(A, G, UOp(Op.ADD, old, old)), G), other)


def halves() -> UOp:
    """Each nest reads one half of a buffer and stores to a half of the other one."""
    i, j = loop(0, 2, GLOBAL), loop(1, 2, GLOBAL)
    return sink(end(store(A, i, load(B, i)), i), end(store(B, add(j, 2), load(A, add(j, 2))), j))


def outside() -> UOp:
    """A STORE beside a loop of work items."""
    return sink(end(store(A, G, int32(G)), G), store(B, 2, const(9, dtypes.int32)))


def in_turn() -> UOp:
    """One RANGE is closed twice, one loop after the other."""
    first = end(store(A, G, load(C, G)), G)
    return sink(end(store(B, G, load(after(A, first), G)), G))


def folds() -> UOp:
    """Two folds over the RANGE that the nest closes too."""
    i = loop(0, 4, LOOP)
    total, most = (UOp(Op.REDUCE, load(C, i), i, arg=ReduceArg(op)) for op in (Op.ADD, Op.MAX))
    return sink(end(store(A, i, UOp(Op.SUB, total, UOp(Op.ADD, most, load(C, i)))), i))


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("root", "count"),
    [
        (one_range(), 1),
        (own_ranges(), 2),
        (backwards(), 2),
        (overwritten(), 2),
        (old_value(), 2),
        (halves(), 2),
        (outside(), 2),
        (in_turn(), 2),
        (folds(), 1),
    ],
    ids=[
        "one range", "own ranges", "backwards", "overwritten", "old value", "halves", "outside",
        "in turn", "folds",
    ],
)  # fmt: skip
def test_each_nest_of_work_items_is_a_kernel(root: UOp, count: int) -> None:
    assert judged(root) == count


def through_local_memory() -> UOp:
    """Two nests that meet in the memory of a group."""
    local = memory(AddrSpace.LOCAL, 4)
    i, j = loop(0, 4, LOCAL), loop(1, 4, LOCAL)
    first = end(store(local, i, load(C, i)), i)
    return sink(end(store(A, j, load(after(local, first), j)), j))


def in_each_iteration() -> UOp:
    """Two nests that take turns."""
    r = loop(2, 3, LOOP)
    first = end(store(after(A, r), G, int32(r)), G)
    second = end(store(B, H, load(after(A, first), H)), H)
    return sink(end(UOp(Op.GROUP, first, second), r))


def what_is_gone() -> UOp:
    """A nest that needs an element both before and behind another nest."""
    old = load(A, 0)
    other = end(store(A, G, UOp(Op.ADD, old, int32(G))), G)
    return sink(end(store(B, H, UOp(Op.ADD, old, load(after(A, other), H))), H))


@pytest.mark.parametrize("root", [through_local_memory(), in_each_iteration(), what_is_gone()])
def test_nests_that_need_one_launch_are_refused(root: UOp) -> None:
    with pytest.raises(RefusedError, match="may be dependent"):
        compile(root)


def test_a_store_in_two_loops_over_one_range_is_refused() -> None:
    i = loop(0, 4, LOOP)
    inside = store(A, i, int32(i))
    first = end(inside, i)
    again = store(after(B, first), i, load(after(A, inside), i))
    with pytest.raises(UnsupportedError, match="two loops over one RANGE"):
        compile(sink(end(again, i)))


SHAPES = ((3, 4), (2, 3, 2), (5,), ())


class Drawn:
    """A random kernel over shaped buffers: a nest for each buffer, loops that are shared, reads of
    what earlier nests have stored, and folds over triangles.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        types = ((GLOBAL,), (GLOBAL, LOCAL), (GLOBAL, LOOP), (LOOP,))
        self.types = self.random.choice(types)
        self.loops: list[UOp] = []
        self.shapes = [self.random.choice(SHAPES) for _ in range(4)]
        self.buffers = [
            UOp(Op.PARAM, dims(s), arg=ParamArg(k, dtypes.int32, None, AddrSpace.GLOBAL))
            for k, s in enumerate(self.shapes)
        ]
        self.number = 100

    def root(self) -> UOp:
        effects = [self.nest(slot) for slot in range(3)]
        self.random.shuffle(effects)
        arguments = [
            UOp(Op.BUFFER, dims(s), arg=argument(k, 1).arg) for k, s in enumerate(self.shapes)
        ]
        return UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK, *effects), *arguments))

    def nest(self, slot: int) -> UOp:
        ranges: list[UOp] = []
        for size in self.shapes[slot]:
            ranges.append(self.loop(size, ranges))
        place = UOp(Op.INDEX, self.buffers[slot], *ranges)
        value = self.value(slot, ranges)
        if self.random.random() < 0.5:
            value = UOp(Op.ADD, value, self.fold(slot, ranges))
        effect = end(UOp(Op.STORE, place, value), *ranges)
        self.buffers[slot] = after(self.buffers[slot], effect)
        return effect

    def loop(self, size: int, others: Sequence[UOp]) -> UOp:
        known = [r for r in self.loops if r.src[0] is index_const(size) and r not in others]
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        self.loops.append(loop(len(self.loops), size, self.random.choice(self.types)))
        return self.loops[-1]

    def value(self, slot: int, ranges: Sequence[UOp]) -> UOp:
        """An element of a buffer that an earlier nest has stored to, or none."""
        source = self.random.choice([*range(slot), 3])
        index = self.random.choice([*ranges, index_const(1)])
        return self.element(source, index)

    def element(self, source: int, index: UOp) -> UOp:
        at = [
            UOp(Op.MOD, add(index, self.random.randrange(3)), index_const(n))
            for n in self.shapes[source]
        ]
        return UOp(Op.LOAD, UOp(Op.INDEX, self.buffers[source], *at))

    def fold(self, slot: int, ranges: Sequence[UOp]) -> UOp:
        """A fold over a triangle, or a rectangle."""
        self.number += 1
        k = loop(self.number, self.random.choice([*ranges, index_const(3)]), REDUCE)
        element = self.element(self.random.choice([*range(slot), 3]), k)
        op = self.random.choice((Op.ADD, Op.MAX))
        return UOp(Op.REDUCE, UOp(Op.ADD, element, int32(k)), k, arg=ReduceArg(op))


def test_random_nests_give_what_the_interpreter_gives(opencl: OpenCLDevice) -> None:
    expected: list[dict[int, Array]] = []
    jobs: list[Job] = []
    for seed in range(100):
        root = Drawn(seed).root()
        inputs = inputs_of(root, seed)
        # Work items that read what others of one launch store to race: such a kernel is skipped.
        with suppress(UndefinedError):
            expected.append(contents(evaluate(root, inputs)))
            jobs.append(Job(compile(root), (inputs,)))
    assert len(jobs) > 40
    assert {1, 2, 3} <= {len(job.program.executable.steps) for job in jobs}
    for right, outcome in zip(expected, run_many(jobs, device=opencl), strict=True):
        assert isinstance(outcome, list)
        assert_equal(contents(outcome[0]), right)

"""Generate level kernel: graphs lowered to each form of kernels, random kernels, and features."""

from __future__ import annotations

from collections.abc import Iterator

from uop.compiler.pipeline import lower
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.random_graph import Flavour, flavours_in, stored_graph
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel import counted, features
from uop.conformance.suite.levels.kernel.scalar import (
    KERNEL_OPS,
    Memory,
    Scalars,
    at,
    closed,
    load,
    loop,
    modulo,
    plus,
    register,
    special,
)
from uop.conformance.suite.levels.kernel.workgroup import workgroup
from uop.conformance.suite.levels.nodes import store
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType, ReduceArg
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

LOWERED: dict[str, tuple[str, ...]] = {
    "integers": ("int32", "uint64"),
    "narrow": ("int8", "uint16"),
    "floats": ("float32", "float64"),
    "small-floats": ("float16", "bfloat16"),
    "pads": ("int64", "float32"),
}
"""The dtypes that lowered graphs start with, by the flavour in which they grow."""

STAGES = {
    "rangeify": (Op.SINK, Op.CALL, Op.RANGE, Op.END),
    "select": (Op.SINK, Op.CALL, Op.SPECIAL),
    "linearize": (Op.SINK, Op.CALL, Op.LINEAR, Op.SPECIAL),
}
"""The stages whose results are three forms of kernels: loops, work items, instruction lists.

Each one comes with what marks its form.
"""

EXACT_DTYPES = (*INTS, dtypes.float32, dtypes.float64)
"""The dtypes on which a device has exact or correctly rounded arithmetic of its own."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, flavour in flavours_in(vocabulary, LOWERED):
        for home in flavour.homes:
            for stage, needs in STAGES.items():
                args = (home, flavour, stage)
                kind, counts = f"{name}-{stage}", (0, 1, 10)
                yield group("kernel", None, home, kind, counts, _lowered, *args, needs=needs)
    for dtype in EXACT_DTYPES:
        for name, kernel, more in KERNELS:
            args_, needs = (dtype, vocabulary), (*KERNEL_OPS, *more)
            yield group("kernel", None, dtype, name, (1, 1, 20), kernel, *args_, needs=needs)
        yield features.of_op(
            Op.BARRIER, dtype, "workgroup", (1, 1, 20), workgroup, dtype, vocabulary
        )
    yield from features.dense_groups()
    for dtype in (dtypes.int32, dtypes.float32):
        yield features.of_op(
            Op.PROGRAM, dtype, "rendered", (1, 1, 10), _rendered, dtype, vocabulary
        )
    yield from features.groups()
    yield from counted.groups()


def _lowered(home: DType, flavour: Flavour, stage: str, choices: Choices, index: int) -> Generated:
    """Lower a random graph to a stage of the compiler: several kernels, in an order."""
    source = stored_graph(home, flavour, choices)
    return program(lower(source.root, stage), *source.batches, source=source)


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build loops over outputs, closed by END, around folds by REDUCE; some stores are gated."""
    scalars = Scalars(choices, dtype, vocabulary)
    outer = [loop(k, choices.between(1, 6)) for k in range(choices.between(1, 3))]
    value = scalars.value(outer, 3)
    if not dtype.is_float:
        inner = _loops_of_fold(choices, 9, 5)
        op = choices.pick(vocabulary.of((Op.ADD, Op.MUL, Op.MAX)))
        term = scalars.value([*outer, *inner], 3)
        value = UOp(Op.ADD, UOp(Op.REDUCE, term, *inner, arg=ReduceArg(op)), value)
    effect = scalars.stored(value, choices.shuffled(outer))
    return scalars.program(UOp(Op.SINK, closed(effect, outer)))


def _loops_of_fold(choices: Choices, first: int, most: int) -> list[UOp]:
    ids = range(first, first + choices.between(1, 2))
    return [loop(k, choices.between(1, most), AxisType.REDUCE) for k in ids]


def _registers(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build work items that fold into registers of their own; each step uses the one before."""
    scalars = Scalars(choices, dtype, vocabulary)
    return scalars.program(_folding(scalars))


def _linear(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the same as instructions in an order."""
    kernel = _registers(dtype, vocabulary, choices, index)
    return program(lower(kernel.root, "linearize"), *kernel.batches)


def _rendered(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the same with its source, which a backend may use or render again."""
    kernel = _registers(dtype, vocabulary, choices, index)
    return program(lower(kernel.root, "render"), *kernel.batches)


def _folding(scalars: Scalars) -> UOp:
    """Build accumulators side by side in one register buffer; the loops write them in turn."""
    choices = scalars.choices
    items = [special(f"gidx{k}", choices.between(1, 6)) for k in range(choices.between(1, 2))]
    loops = _loops_of_fold(choices, 0, 4)
    width = choices.between(1, 3)
    acc = register(0, width, scalars.dtype)
    places = [index_const(k) for k in range(width)]
    starts = [store(at(acc, k), scalars.value(items, 1)) for k in places]
    inside = UOp(Op.AFTER, acc, *starts, *loops)
    one, other = (scalars.place([*items, *loops], width) for _ in range(2))
    operand = UOp(Op.ADD, load(inside, other), scalars.value([*items, *loops], 2))
    step = UOp(scalars.op(), load(inside, one), operand)
    done = UOp(Op.AFTER, acc, closed(store(at(inside, one), step), loops))
    total = load(done, places[0])
    for k in places[1:]:
        total = UOp(scalars.op(), total, load(done, k))
    return UOp(Op.SINK, scalars.stored(total, items))


def _chain(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build two kernels: the second reads, in another order, what the first has written."""
    scalars = Scalars(choices, dtype, vocabulary)
    g = special("gidx0", choices.between(2, 40))
    first = UOp(Op.SINK, scalars.stored(scalars.value([g], 2), [g], gated=False))
    written = scalars.memories[0]
    call = UOp(Op.CALL, first, *(m.argument for m in scalars.memories))
    source = Memory(1, written.count, dtype).param
    element = load(source, scalars.place([g], written.count))
    value = UOp(scalars.op(), element, scalars.small(1, 9))
    second = UOp(Op.SINK, store(at(written.param, g), value))
    copy = Memory(len(scalars.memories), written.count, dtype)
    after = UOp(Op.AFTER, written.argument, call)
    return scalars.on_data(UOp(Op.SINK, UOp(Op.CALL, second, copy.argument, after)))


def _twice(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Run one kernel of two outputs twice, the second time on what the first time has written.

    One output is updated in place, and the second run may take the outputs in the other order.
    """
    scalars = Scalars(choices, dtype, vocabulary)
    n = choices.between(2, 40)
    summed, copied, source = memories = [Memory(slot, n, dtype) for slot in range(3)]
    scalars.memories[1:] = [source, source]
    g = special("gidx0", n)
    value = UOp(Op.ADD, load(summed.param, g), scalars.element([g]))
    turned = modulo(plus(g, choices.below(n)), n)
    body = UOp(
        Op.SINK,
        store(at(summed.param, g), value),
        store(at(copied.param, g), load(source.param, turned)),
    )
    first = UOp(Op.CALL, body, *(m.argument for m in memories))
    places = [UOp(Op.AFTER, m.argument, first) for m in choices.shuffled([summed, copied])]
    return scalars.on_data(UOp(Op.SINK, UOp(Op.CALL, body, *places, source.argument)))


KERNELS = (
    ("loops", _loops, (Op.RANGE, Op.END, Op.REDUCE)),
    ("registers", _registers, (Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    ("linear", _linear, (Op.LINEAR, Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    ("chain", _chain, (Op.SPECIAL, Op.AFTER)),
    ("twice", _twice, (Op.SPECIAL, Op.AFTER)),
)
"""The name and the generator of each kind of kernel, and the ops that it adds to `KERNEL_OPS`."""

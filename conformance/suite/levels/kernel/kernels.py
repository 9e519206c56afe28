"""Level kernel: what a compiler makes of graphs, in its forms on the way, and random kernels.

A lowered kernel is judged by its graph. The others have ops that give one value for their operands
and folds whose order is spelled out, so that the reference is what they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from uop.compiler.pipeline import lower
from uop.conformance.suite import values
from uop.conformance.suite.case import MIXED, Batch, Source
from uop.conformance.suite.choices import Choices, between, chance, data_key, pick, shuffled
from uop.conformance.suite.levels.graph.random_graph import (
    Flavour,
    batches,
    flavour_in,
    grown,
    homes_in,
    stored,
)
from uop.conformance.suite.levels.group import Builder, Counts, Group, Program, program
from uop.conformance.suite.levels.kernel.workgroup import workgroup
from uop.conformance.suite.levels.op.atomics import added, distances
from uop.conformance.suite.levels.op.matrices import multiplied
from uop.conformance.suite.levels.op.scalar import (
    KERNEL_OPS,
    Memory,
    Scalars,
    argument,
    at,
    load,
    loop,
    register,
    special,
)
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.kernel.fragments import SHAPES
from uop.spec.args import AxisType, InsArg, ReduceArg
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

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
"""Stages whose results are three forms of kernels: loops, work items, a list of instructions.

Each with what marks its form.
"""

Kernel = Callable[[DType, Vocabulary, Choices, int], Program]
FLOATS = (dtypes.float32, dtypes.float64)
EXACT = (*INTS, *FLOATS)
"""Dtypes on which a device has exact or correctly rounded arithmetic of its own."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, chosen in LOWERED.items():
        for home in homes_in(vocabulary, name, chosen):
            for stage, needs in STAGES.items():
                build = partial(_lowered, DTYPES[home], flavour_in(vocabulary, name), stage)
                yield _group(DTYPES[home], f"{name}-{stage}", (0, 1, 10), build, needs)
    for dtype in EXACT:
        for name, (kernel, needs) in KERNELS.items():
            build = partial(kernel, dtype, vocabulary)
            yield _group(dtype, name, (1, 1, 20), build, (*KERNEL_OPS, *needs))
        build = partial(workgroup, dtype, vocabulary)
        yield _of_op(Op.BARRIER, dtype, "workgroup", (1, 1, 20), build)
    for dtype in (dtypes.int32, dtypes.float32):
        build = partial(_program, dtype, vocabulary)
        yield _of_op(Op.PROGRAM, dtype, "rendered", (1, 1, 10), build)
    yield _of_op(Op.INS, dtypes.uint32, "instructions", (1, 1, 10), _instructions)
    for arg in SHAPES:
        # An instruction is named for its shape; of two results the narrow one is told too.
        name = f"m{arg.m}n{arg.n}k{arg.k}"
        if arg.dtype_out is not dtypes.float32:
            name += f"-{arg.dtype_out.name}"
        yield _of_op(Op.WMMA, arg.dtype_in, name, (1, 1, 6), partial(multiplied, arg))
    for dtype in values.VALUES:
        if dtype is not dtypes.index:
            copy_ops = (*KERNEL_OPS, Op.SPECIAL, Op.CMPLT, Op.CMPNE)
            yield _group(dtype, "copy", (1, 1, 10), partial(_copy, dtype), copy_ops)
            yield _of_op(Op.GETADDR, dtype, "distances", (0, 1, 6), partial(distances, dtype))
        if dtype.is_int or dtype.is_float:
            yield _of_op(Op.ATOMICADD, dtype, "added", (0, 2, 20), partial(added, dtype))


def _group(dtype: DType, name: str, counts: Counts, build: Builder, needs: tuple[Op, ...]) -> Group:
    return Group("kernel", MIXED, dtype.name, name, counts, build, needs)


def _of_op(op: Op, dtype: DType, name: str, counts: Counts, build: Builder) -> Group:
    return Group("kernel", op.name, dtype.name, name, counts, build, (*KERNEL_OPS, op))


def _lowered(home: DType, flavour: Flavour, stage: str, choices: Choices, index: int) -> Program:
    """A random graph as a stage of the compiler leaves it: several kernels, in an order."""
    with np.errstate(all="ignore"):
        growth = grown(home, flavour, choices)
    graph = UOp(Op.SINK, *(stored(growth, choices, u) for u in growth.outputs()))
    source = Source(graph, batches(growth, graph))
    kernels = lower(graph, stage)
    left = slots_of(kernels)
    given = (Batch({s: a for s, a in b.inputs.items() if s in left}) for b in source.batches)
    return Program(kernels, tuple(given), source)


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Loops over outputs, closed by END, around folds by REDUCE; a gate leaves elements alone."""
    scalars = Scalars(choices, dtype, vocabulary)
    outer = [loop(k, between(choices, 1, 6)) for k in range(between(choices, 1, 3))]
    value = scalars.value(outer, 3)
    if not dtype.is_float:
        inner = [loop(9 + k, between(choices, 1, 5), AxisType.REDUCE)
                 for k in range(between(choices, 1, 2))]  # fmt: skip
        op = pick(choices, vocabulary.of((Op.ADD, Op.MUL, Op.MAX)))
        folded = UOp(Op.REDUCE, scalars.value([*outer, *inner], 3), *inner, arg=ReduceArg(op))
        value = UOp(Op.ADD, folded, value)
    effect = scalars.stored(value, shuffled(choices, outer))
    for r in reversed(outer):
        effect = UOp(Op.END, effect, r)
    return scalars.program(UOp(Op.SINK, effect))


def _registers(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Work items that fold into registers of their own: each step uses what the last one left."""
    scalars = Scalars(choices, dtype, vocabulary)
    return scalars.program(_folding(scalars))


def _linear(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """The same as instructions in an order."""
    scalars = Scalars(choices, dtype, vocabulary)
    made = scalars.program(_folding(scalars))
    return Program(lower(made.root, "linearize"), made.batches)


def _program(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """The same with its source, which a backend may take or make again."""
    scalars = Scalars(choices, dtype, vocabulary)
    made = scalars.program(_folding(scalars))
    return Program(lower(made.root, "render"), made.batches)


def _instructions(choices: Choices, index: int) -> Program:
    """Every machine instruction that has a name, on elements of any bits."""
    n, dtype = between(choices, 5, 70), dtypes.uint32
    target, source = Memory(0, len(ARITY) * n, dtype), Memory(1, n, dtype)
    g, stores = special(0, n), []
    for k, (name, arity) in enumerate(ARITY.items()):
        steps = (index_const(choices.below(n)) for _ in range(arity))
        places = (UOp(Op.MOD, UOp(Op.ADD, g, step), index_const(n)) for step in steps)
        value = UOp(Op.INS, *(load(source.param, i) for i in places), arg=InsArg(name, dtype))
        there = at(target.param, UOp(Op.ADD, g, index_const(k * n)))
        stores.append(UOp(Op.STORE, there, value))
    root = UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK, *stores), argument(target), argument(source)))
    return program(root, {1: values.draw_mixed(dtype, n, data_key(choices))})


ARITY = {"mul_hi": 2, "popcount": 1, "clz": 1}


def _folding(scalars: Scalars) -> UOp:
    """Accumulators side by side in one register buffer; the loops write them in turn."""
    choices, dtype = scalars.choices, scalars.dtype
    items = [special(k, between(choices, 1, 6)) for k in range(between(choices, 1, 2))]
    loops = [loop(k, between(choices, 1, 4), AxisType.REDUCE)
             for k in range(between(choices, 1, 2))]  # fmt: skip
    width = between(choices, 1, 3)
    acc = register(0, width, dtype)
    started = [
        UOp(Op.STORE, at(acc, index_const(k)), scalars.value(items, 1)) for k in range(width)
    ]
    inside = UOp(Op.AFTER, acc, *started, *loops)
    one, other = (scalars.place([*items, *loops], width) for _ in range(2))
    operand = UOp(Op.ADD, load(inside, other), scalars.value([*items, *loops], 2))
    step = UOp(pick(choices, scalars.ops), load(inside, one), operand)
    effect = UOp(Op.STORE, at(inside, one), step)
    for r in reversed(loops):
        effect = UOp(Op.END, effect, r)
    done = UOp(Op.AFTER, acc, effect)
    total = load(done, index_const(0))
    for k in range(1, width):
        total = UOp(pick(choices, scalars.ops), total, load(done, index_const(k)))
    return UOp(Op.SINK, scalars.stored(total, items))


def _chain(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Two kernels: the second reads, in another order, what the first has written."""
    scalars = Scalars(choices, dtype, vocabulary)
    g = special(0, between(choices, 2, 40))
    first = UOp(Op.SINK, scalars.stored(scalars.value([g], 2), [g], gated=False))
    n = scalars.stored_to.count
    written = argument(Memory(0, n, dtype))
    call = UOp(Op.CALL, first, *scalars.arguments())
    place = scalars.place([g], n)
    changed = UOp(pick(choices, scalars.ops), load(Memory(1, n, dtype).param, place),
                  const(between(choices, 1, 9), dtype))  # fmt: skip
    second = UOp(Op.SINK, UOp(Op.STORE, at(Memory(0, n, dtype).param, g), changed))
    copy = argument(Memory(len(scalars.memories), n, dtype))
    root = UOp(Op.SINK, UOp(Op.CALL, second, copy, UOp(Op.AFTER, written, call)))
    return Program(root, scalars.batches(root))


def _copy(dtype: DType, choices: Choices, index: int) -> Program:
    """Elements moved bit by bit; where a gate is false stands alt, or what stood there before."""
    n = pick(choices, (7, 16, 65))
    target, source = Memory(0, n, dtype), Memory(1, n, dtype)
    g = special(0, n)
    step = pick(choices, [k for k in (1, 3, 5, n - 1) if np.gcd(k, n) == 1])
    place = UOp(Op.MOD, UOp(Op.ADD, UOp(Op.MUL, g, index_const(step)),
                            index_const(choices.below(n))), index_const(n))  # fmt: skip
    alt = load(source.param, index_const(choices.below(n)))
    inside = UOp(Op.CMPLT, g, index_const(between(choices, 1, n)))
    value = UOp(Op.LOAD, at(source.param, UOp(Op.ADD, g, index_const(0))), alt, inside)
    gates = (UOp(Op.CMPNE, place, index_const(choices.below(n))),) if chance(choices, 50) else ()
    body = UOp(Op.SINK, UOp(Op.STORE, at(target.param, place), value, *gates))
    root = UOp(Op.SINK, UOp(Op.CALL, body, argument(target), argument(source)))
    return program(root, [values.draw_bits(dtype, n, data_key(choices)) for _ in range(2)])


KERNELS: dict[str, tuple[Kernel, tuple[Op, ...]]] = {
    "loops": (_loops, (Op.RANGE, Op.END, Op.REDUCE)),
    "registers": (_registers, (Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    "linear": (_linear, (Op.LINEAR, Op.SPECIAL, Op.RANGE, Op.END, Op.AFTER)),
    "chain": (_chain, (Op.SPECIAL, Op.AFTER)),
}
"""Each with the ops that it needs besides those of every kernel."""

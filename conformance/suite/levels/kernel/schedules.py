"""Generate level schedule: random graphs with random optimizations, or split at random places.

Each program is judged by the graph that it is made of: only the order of a fold may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from uop.compiler.pipeline import lower
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.axes import axes, type_of
from uop.compiler.stages.optimize.stage import optimize
from uop.conformance.suite.case import Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import random_graph
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel.kernels import LOWERED
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType
from uop.spec.dtype import DType
from uop.spec.errors import InvalidError
from uop.spec.graph import base_of, calls, leaves, over, slot_of
from uop.spec.kernel.optimization import (
    SPLIT_FROM,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param
from uop.spec.walk import outside_bodies, rebuild

GRAPHS = LOWERED | {"small-floats": ("float16",)}
"""The dtypes that graphs start with, by the flavour in which they grow."""
MOST = {AxisType.UPCAST: 16, AxisType.UNROLL: 16, AxisType.LOCAL: 16, AxisType.GROUP_REDUCE: 16}
"""The most positions of a kernel on its axes of a type, so that no source gets long."""
STEPS = 5
NEEDS = (Op.SINK, Op.CALL, Op.RANGE, Op.END)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, flavour in random_graph.flavours_in(vocabulary, GRAPHS):
        for home in flavour.homes:
            # A smoke run takes each flavour once.
            counts, args = (int(home is flavour.homes[0]), 2, 30), (home, flavour)
            for kind, build in (("optimized", _optimized), ("split", _cut), ("called", _called)):
                title = f"{name}-{kind}"
                yield group("schedule", None, home, title, counts, build, *args, needs=NEEDS)


def random_sequence(choices: Choices, body: UOp) -> tuple[Optimization, ...]:
    """Return random optimizations that a kernel allows, one after the other."""
    sequence: list[Optimization] = []
    optimized = body
    for _ in range(choices.between(1, STEPS)):
        order = axes(optimized)
        optimization = _random(choices, order) if order else NoLocals()
        if not _fits(optimization, order):
            continue
        try:
            optimized = apply(body, [*sequence, optimization])
        except InvalidError:
            continue
        sequence.append(optimization)
    return tuple(sequence)


def _random(choices: Choices, order: Sequence[UOp]) -> Optimization:
    """Return one that may be illegal: of another nest, or after NOLOCALS."""
    axis = choices.below(len(order))
    bound = int_value(order[axis].src[0]) or 0
    kind = choices.below(10)
    if kind == 0:
        return NoLocals()
    if kind < 3:
        return PadTo(axis, choices.between(2, 5))
    if kind < 5:
        return Swap(axis, choices.below(len(order)))
    targets = [t for t, origin in SPLIT_FROM.items() if type_of(order[axis]) in origin.types]
    if not targets:
        return PadTo(axis, 2)
    target = choices.pick(targets)
    factor = choices.pick([k for k in range(1, bound + 1) if bound % k == 0] or [1])
    return Split(axis, factor, target, choices.pick(tuple(Side)))


def _fits(opt: Optimization, order: Sequence[UOp]) -> bool:
    """Return whether the kernel keeps its size: a SPLIT adds positions, a PADTO may."""
    sizes = {t: prod(int_value(r.src[0]) or 1 for r in order if type_of(r) is t) for t in MOST}
    if isinstance(opt, Split):
        return opt.target not in MOST or sizes[opt.target] * opt.factor <= MOST[opt.target]
    if isinstance(opt, PadTo):
        axis_type = type_of(order[opt.axis])
        return axis_type not in MOST or sizes[axis_type] * opt.multiple <= MOST[axis_type]
    return True


def _optimized(
    home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    source = random_graph.stored_graph(home, flavour, choices)
    return with_sequences(source.root, source, choices)


def _cut(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a random graph with more values in memory.

    Other kernels compute it then, and each is optimized in its own way.
    """
    source = random_graph.stored_graph(home, flavour, choices)

    def cut(u: UOp, src: list[UOp]) -> UOp:
        is_value = u.declaration.is_elementwise or u.op is Op.REDUCE
        cuts = is_value and u.shape and choices.chance(30)
        return UOp(Op.CONTIGUOUS, u.with_src(src)) if cuts else u.with_src(src)

    return with_sequences(rebuild(source.root, cut), source, choices)


def _called(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a random graph with elementwise ops that CALLs of kernels compute.

    A kernel reads what the graph computes; half of them write over their first operand.
    """
    growth = random_graph.grown(home, flavour, choices)
    graph = UOp(Op.SINK, *(random_graph.stored(growth, choices, u) for u in growth.outputs()))
    data = random_graph.batches(growth, graph)

    def by_kernels(u: UOp, operands: list[UOp]) -> UOp:
        rebuilt = over(u, operands)
        if u.declaration.is_elementwise and choices.chance(40):
            known = [growth.value(v) for v in (u, *u.src) if v in growth.known]
            # An absent element leaves a buffer as it was, and nothing was written there before.
            if len(known) > len(u.src) and all(v.invalid is None for v in known):
                target = growth.blank(u.dtype, u.shape)
                rebuilt = _by_kernel(rebuilt, target, in_place=choices.chance(50))
        return rebuilt

    root = rebuild(graph, by_kernels, outside_bodies)
    return program(root, *data, source=Source(graph, data))


def _by_kernel(u: UOp, target: UOp, in_place: bool) -> UOp:
    """Return a buffer after a kernel that computes an elementwise op into it."""
    slots = range(1, 1 + len(u.src))
    inputs = [param(k, s.shape, s.dtype) for k, s in zip(slots, u.src, strict=True)]
    lowered = lower(
        UOp(Op.SINK, nodes.store(nodes.buffer(0, u.shape, u.dtype), u.with_src(inputs))), "rangeify"
    )
    (kernel,) = calls(lowered)
    order = [slot_of(base_of(a)) for a in kernel.src[1:]]
    body, sources = kernel.src[0], {0: target, **dict(zip(slots, u.src, strict=True))}
    first = next((p for p in leaves(body) if slot_of(p) and order[slot_of(p)] == 1), None)
    if in_place and first is not None and (u.src[0].dtype, u.src[0].shape) == (u.dtype, u.shape):
        written = next(p for p in leaves(body) if slot_of(p) == 0)
        body = body.substitute({first: written})
        sources[0] = nodes.after(target, u.src[0])
    return UOp(Op.AFTER, target, UOp(Op.CALL, body, *(sources[slot] for slot in order)))


def with_sequences(graph: UOp, source: Source, choices: Choices) -> Generated:
    """Return a graph whose kernels are optimized at random, and the program that judges it."""
    ranged = lower(graph, "rangeify")
    kernels = calls(optimize(ranged))
    sequences = [random_sequence(choices, kernel.src[0]) for kernel in kernels]
    return program(optimize(ranged, sequences=sequences), *source.batches, source=source)

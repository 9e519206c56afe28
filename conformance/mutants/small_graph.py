"""Builds and simplifies the graphs of the small compiler, with value numbering."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any

import numpy as np

from uop.spec.args import ConstArg, ParamArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Number = int | float
Shape = tuple[int, ...]
DType = np.dtype[Any]
BOOL, INT, FLOAT = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.float32)
KINDS: Mapping[str, DType] = {"bool": BOOL, "int32": INT, "float32": FLOAT}
WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node. `arg` is the bits of a CONST, the slot of a PARAM, the op and axes of a REDUCE."""

    op: Op
    src: tuple[Node, ...]
    dtype: DType
    shape: Shape
    arg: Any = None


@dataclass(slots=True, eq=False)
class Graph:
    """Makes nodes, each of them once, by value numbering."""

    known: dict[Any, Node] = field(default_factory=dict)

    def read(self, root: UOp) -> Node:
        """The node of a program. UnsupportedError for a dtype that is not supported."""
        made: dict[UOp, Node] = {}
        for u in root.toposort():
            # Nodes of dtype index are parts of shapes, which every node has.
            if u.dtype is dtypes.index:
                continue
            if u.dtype.name not in KINDS:
                raise UnsupportedError(f"{u.op.name} of {u.dtype.name}")
            src = tuple(made[s] for s in u.src if s.dtype is not dtypes.index)
            made[u] = self.make(u.op, src, KINDS[u.dtype.name], u.shape, _arg(u))
        return made[root]

    def make(
        self, op: Op, src: tuple[Node, ...], dtype: DType, shape: Shape, arg: Any = None
    ) -> Node:
        """The simplest node of the same value."""
        new = Node(op, src, dtype, shape, arg)
        for rule in RULES.get(op, ()):
            simpler = rule(self, new)
            if simpler is not None:
                return simpler
        return self.known.setdefault((op, src, dtype, shape, arg), new)

    def like(self, u: Node, op: Op, *src: Node) -> Node:
        """An elementwise op of the dtype and shape of a node."""
        return self.make(op, src, u.dtype, u.shape)

    def const(self, number: Number, dtype: DType) -> Node:
        return self.make(Op.CONST, (), dtype, (), bits_of(number, dtype))

    def expanded(self, u: Node, shape: Shape) -> Node:
        return self.make(Op.EXPAND, (u,), u.dtype, shape)


def bits_of(number: Number, dtype: DType) -> int:
    """The bits of a number of any size: integers wrap, floats round once."""
    if dtype == FLOAT:
        return int(np.array(number, FLOAT).view(np.uint32))
    return int(number) & WORD if dtype == INT else int(bool(number))


def number_of(u: Node) -> Number:
    """The value of a CONST."""
    if u.dtype == BOOL:
        return bool(u.arg)
    number: Number = np.array(u.arg, np.uint32).view(u.dtype).item()
    return number


def _arg(u: UOp) -> Any:
    if isinstance(u.arg, ConstArg):
        return u.arg.bits & WORD
    if isinstance(u.arg, ReduceArg):
        return u.arg.op, u.arg.axes
    return u.arg.slot if isinstance(u.arg, ParamArg) else None


def _is(u: Node, number: Number) -> bool:
    """Whether a node is this constant: 0.0 is not -0.0."""
    return u.op is Op.CONST and u.arg == bits_of(number, u.dtype)


def _zero(u: Node) -> Number:
    """The neutral element of ADD: 0.0 would turn -0.0 into 0.0."""
    return -0.0 if u.dtype == FLOAT else 0


def fold(graph: Graph, u: Node) -> Node | None:
    """Fold an op on constants, where they are finite."""
    if any(s.op is not Op.CONST for s in u.src):
        return None
    numbers = [number_of(s) for s in u.src]
    if not all(map(isfinite, numbers)) or (u.dtype == INT and abs(numbers[0]) > WORD):
        return None
    # One op on two float32 is exact in double, or rounds in it far below the last bit.
    return graph.const(FOLDS[u.op](*numbers), u.dtype)


def constant_to_the_right(graph: Graph, u: Node) -> Node | None:
    a, b = u.src
    return graph.like(u, u.op, b, a) if a.op is Op.CONST and b.op is not Op.CONST else None


def add_nothing(graph: Graph, u: Node) -> Node | None:
    return u.src[0] if _is(u.src[1], _zero(u)) else None


def double(graph: Graph, u: Node) -> Node | None:
    a, b = u.src
    return graph.like(u, Op.MUL, a, graph.const(2, u.dtype)) if a is b and u.dtype != BOOL else None


def join_constants(graph: Graph, u: Node) -> Node | None:
    """(x + c) + d, (x * c) * d; floats would round otherwise."""
    inner, d = u.src
    if inner.op is not u.op or u.dtype != INT or d.op is not Op.CONST:
        return None
    x, c = inner.src
    return graph.like(u, u.op, x, graph.like(d, u.op, c, d)) if c.op is Op.CONST else None


def subtract_itself(graph: Graph, u: Node) -> Node | None:
    """Not of floats: inf - inf."""
    is_zero = u.src[0] is u.src[1] and u.dtype == INT
    return graph.expanded(graph.const(0, INT), u.shape) if is_zero else None


def subtract_constant(graph: Graph, u: Node) -> Node | None:
    a, b = u.src
    return graph.like(u, Op.ADD, a, graph.like(b, Op.NEG, b)) if b.op is Op.CONST else None


def subtract_from_zero(graph: Graph, u: Node) -> Node | None:
    """Not of floats: 0.0 - 0.0 is 0.0."""
    a, b = u.src
    return graph.like(u, Op.NEG, b) if u.dtype == INT and _is(a, 0) else None


def multiply_by_one(graph: Graph, u: Node) -> Node | None:
    return u.src[0] if _is(u.src[1], 1) else None


def multiply_by_zero(graph: Graph, u: Node) -> Node | None:
    """Not of floats: inf * 0."""
    is_zero = u.dtype == INT and _is(u.src[1], 0)
    return graph.expanded(u.src[1], u.shape) if is_zero else None


def multiply_by_minus_one(graph: Graph, u: Node) -> Node | None:
    is_negated = u.dtype != BOOL and _is(u.src[1], -1)
    return graph.like(u, Op.NEG, u.src[0]) if is_negated else None


def negate_twice(graph: Graph, u: Node) -> Node | None:
    return u.src[0].src[0] if u.src[0].op is Op.NEG else None


def negate_difference(graph: Graph, u: Node) -> Node | None:
    """Not of floats: both differences of equal ones are 0.0."""
    inner = u.src[0]
    is_swapped = inner.op is Op.SUB and u.dtype == INT
    return graph.like(u, Op.SUB, *reversed(inner.src)) if is_swapped else None


def compare_with_itself(graph: Graph, u: Node) -> Node | None:
    is_false = u.src[0] is u.src[1]
    return graph.expanded(graph.const(False, BOOL), u.shape) if is_false else None


def compare_negated(graph: Graph, u: Node) -> Node | None:
    """Not of integers: the least is its own negative."""
    a, b = u.src
    if not a.op is b.op is Op.NEG or a.dtype != FLOAT:
        return None
    return graph.like(u, Op.CMPLT, b.src[0], a.src[0])


def choose_known(graph: Graph, u: Node) -> Node | None:
    p, a, b = u.src
    return graph.expanded(a if p.arg else b, u.shape) if p.op is Op.CONST else None


def choose_either(graph: Graph, u: Node) -> Node | None:
    _, a, b = u.src
    return graph.expanded(a, u.shape) if a is b else None


def choose_one_or_zero(graph: Graph, u: Node) -> Node | None:
    p, a, b = u.src
    is_truth = u.dtype != BOOL and _is(a, 1) and _is(b, 0)
    return graph.like(u, Op.CAST, p) if is_truth else None


def choose_larger(graph: Graph, u: Node) -> Node | None:
    """Not of floats: beside a NaN, and of two zeros, the second is chosen."""
    p, a, b = u.src
    is_larger = p.op is Op.CMPLT and p.src == (b, a) and u.dtype == INT
    return graph.like(u, Op.MAX, a, b) if is_larger else None


def cast_to_itself(graph: Graph, u: Node) -> Node | None:
    return u.src[0] if u.src[0].dtype == u.dtype else None


def cast_truth_twice(graph: Graph, u: Node) -> Node | None:
    inner = u.src[0]
    is_truth = inner.op is Op.CAST and inner.src[0].dtype == BOOL
    return graph.like(u, Op.CAST, inner.src[0]) if is_truth else None


def move_nothing(graph: Graph, u: Node) -> Node | None:
    return u.src[0] if u.shape == u.src[0].shape else None


def move_once(graph: Graph, u: Node) -> Node | None:
    inner = u.src[0]
    return graph.make(u.op, inner.src, u.dtype, u.shape) if inner.op is u.op else None


def reduce_single(graph: Graph, u: Node) -> Node | None:
    """An axis of one element holds its own sum and product."""
    op, axes = u.arg
    left = tuple(axis for axis in axes if u.src[0].shape[axis] != 1)
    if not left:
        return u.src[0]
    return graph.make(u.op, u.src, u.dtype, u.shape, (op, left)) if left != axes else None


def reduce_reduced(graph: Graph, u: Node) -> Node | None:
    """Not of floats: it is another order."""
    inner, (op, axes) = u.src[0], u.arg
    if inner.op is not Op.REDUCE or inner.arg[0] is not op or u.dtype == FLOAT:
        return None
    every = tuple(sorted({*axes, *inner.arg[1]}))
    return graph.make(u.op, inner.src, u.dtype, u.shape, (op, every))


def reduce_expanded(graph: Graph, u: Node) -> Node | None:
    """The sum of n equal integers is n times one of them."""
    inner, (op, axes) = u.src[0], u.arg
    if inner.op is not Op.EXPAND or op is not Op.ADD or u.dtype != INT:
        return None
    x = inner.src[0]
    if len(x.shape) != len(inner.shape):
        return None
    count = prod(inner.shape[axis] for axis in axes if x.shape[axis] == 1)
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    once = graph.make(u.op, (x,), u.dtype, kept, (op, axes))
    return graph.expanded(graph.like(once, Op.MUL, once, graph.const(count, INT)), u.shape)


FOLDS: Mapping[Op, Callable[..., Number]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: operator.neg,
    Op.CMPLT: operator.lt,
    Op.CAST: operator.pos,
}
Rule = Callable[[Graph, Node], Node | None]
RULES: Mapping[Op, tuple[Rule, ...]] = {
    Op.ADD: (fold, constant_to_the_right, add_nothing, double, join_constants),
    Op.SUB: (fold, subtract_itself, subtract_constant, subtract_from_zero),
    Op.MUL: (
        fold,
        constant_to_the_right,
        multiply_by_one,
        multiply_by_zero,
        multiply_by_minus_one,
        join_constants,
    ),
    Op.NEG: (fold, negate_twice, negate_difference),
    Op.CMPLT: (fold, compare_with_itself, compare_negated),
    Op.WHERE: (choose_known, choose_either, choose_one_or_zero, choose_larger),
    Op.CAST: (fold, cast_to_itself, cast_truth_twice),
    Op.RESHAPE: (move_nothing, move_once),
    Op.EXPAND: (move_nothing, move_once),
    Op.REDUCE: (reduce_single, reduce_reduced, reduce_expanded),
}

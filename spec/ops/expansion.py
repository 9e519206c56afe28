"""Decompositions of the extension ops into core ops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, cast

from uop.spec import args
from uop.spec.args import arg_of
from uop.spec.dtype import Kind, dtypes
from uop.spec.graph import rebuild
from uop.spec.ops.names import Op
from uop.spec.ops.sizes import const_like, shape_node, size_node

if TYPE_CHECKING:
    from uop.spec.registry import Build, Node

Position = Mapping[int, int]


def bound(r: Node) -> int:
    """The bound of a RANGE up to a CONST."""
    return int(arg_of(r.src[0], args.ConstArg).value)


def cdiv(build: Build, u: Node) -> Node:
    """CDIV: the floor, plus one for a negative quotient that is no integer."""
    floor = build(Op.IDIV, *u.src)
    more = build(Op.ADD, floor, const_like(build, u, 1))
    return build(Op.WHERE, _rounds_up(build, u), more, floor)


def cmod(build: Build, u: Node) -> Node:
    rest = build(Op.MOD, *u.src)
    less = build(Op.SUB, rest, u.src[1])
    return build(Op.WHERE, _rounds_up(build, u), less, rest)


def _rounds_up(build: Build, u: Node) -> Node:
    """Whether the signs differ and a remainder is left."""
    a, b = u.src
    zero = const_like(build, u, 0)
    differ = build(Op.CMPNE, build(Op.CMPLT, a, zero), build(Op.CMPLT, b, zero))
    return build(Op.AND, differ, build(Op.CMPNE, build(Op.MOD, a, b), zero))


def minimum(build: Build, u: Node) -> Node:
    """MIN: reverse the order of the operands, take the MAX, reverse it back."""
    turned = (_turned(build, s) for s in u.src)
    return _turned(build, build(Op.MAX, *turned))


def reduce_min(build: Build, u: Node) -> Node:
    """A REDUCE with MIN as a REDUCE with MAX over reversed order."""
    t, *ranges = u.src
    arg = args.ReduceArg(Op.MAX, arg_of(u, args.ReduceArg).axes)
    largest = build(Op.REDUCE, _turned(build, t), *ranges, arg=arg)
    return _turned(build, largest)


def _turned(build: Build, x: Node) -> Node:
    """Reverse the order without loss: -x of a float, ~x of an integer or bool."""
    if x.dtype.is_float:
        return build(Op.NEG, x)
    if x.dtype is dtypes.index:
        # An index has no bits to flip, and its lowest value no negative.
        return build(Op.SUB, const_like(build, x, -1), x)
    if x.dtype.kind is Kind.BOOL:
        return build(Op.NOT, x)
    return build(Op.XOR, x, const_like(build, x, -1 if x.dtype.is_signed else x.dtype.max))


def contract(build: Build, u: Node) -> Node:
    """CONTRACT: x at each position of the axes, side by side."""
    return _at(build, u, {})


def open_lanes(order: Sequence[Node]) -> dict[Node, dict[int, int]]:
    """The axes of the UNROLLs below each node that no CONTRACT binds, with their factors.

    Each node comes after its sources. An axis of two factors has none: 0.
    """
    found: dict[Node, dict[int, int]] = {}
    for u in order:
        lanes: dict[int, int] = {}
        own = (
            arg_of(u, args.LanesArg) if u.op in (Op.UNROLL, Op.CONTRACT) else args.LanesArg((), ())
        )
        unrolled = dict(zip(own.axes, own.factors, strict=True)) if u.op is Op.UNROLL else {}
        for more in (*(found[s] for s in u.src), unrolled):
            for axis, factor in more.items():
                lanes[axis] = factor if lanes.get(axis, factor) == factor else 0
        if u.op is Op.CONTRACT:
            lanes = {axis: factor for axis, factor in lanes.items() if axis not in own.axes}
        found[u] = lanes
    return found


def each_lane(build: Build, u: Node, lanes: Mapping[int, int]) -> Node:
    """An effect at each position of its open axes, in row-major order."""
    axes = sorted(lanes)
    choices = product(*(range(lanes[axis]) for axis in axes))
    copies = [_at(build, u, dict(zip(axes, choice, strict=True))) for choice in choices]
    return build(Op.GROUP, *copies)


def _at(build: Build, root: Node, position: Position) -> Node:
    """A graph at one position of the known expansion axes."""

    def new(u: Node, src: list[Node]) -> Node:
        if u.op is Op.CONTRACT:
            return _side_by_side(build, u, position)
        if u.op is Op.UNROLL and all(a in position for a in arg_of(u, args.LanesArg).axes):
            return _lanes_at(build, u, src[0], position)
        return _like(build, u, src)

    return rebuild(root, new, lambda u: () if u.op is Op.CONTRACT else u.src)


def _side_by_side(build: Build, u: Node, position: Position) -> Node:
    arg, x = arg_of(u, args.LanesArg), u.src[0]
    copies = [
        _at(build, x, {**position, **dict(zip(arg.axes, choice, strict=True))})
        for choice in product(*(range(f) for f in arg.factors))
    ]
    if x.shape == ():
        return build(Op.STACK, *copies)
    # By element: a kernel has no RESHAPE of a value.
    places = [size_node(build, k) for k in range(x.shape[0])]
    return build(Op.STACK, *(build(Op.INDEX, copy, k) for copy in copies for k in places))


def _lanes_at(build: Build, u: Node, v: Node, position: Position) -> Node:
    arg = arg_of(u, args.LanesArg)
    number = 0
    for a, factor in zip(arg.axes, arg.factors, strict=True):
        number = number * factor + position[a]
    if v.shape == ():
        return v
    count = math.prod(u.shape)
    if u.shape == ():
        return build(Op.INDEX, v, size_node(build, number))
    return build(Op.INDEX, v, shape_node(build, range(number * count, (number + 1) * count)))


def stage(build: Build, u: Node) -> Node:
    """STAGE: x for each value of the RANGEs, stacked, then copied to memory."""
    arg, (x, *ranges) = arg_of(u, args.StageArg), u.src

    if 0 in u.shape:
        return _empty(build, u)
    filled = _filled(build, _by_axes(build, x), ranges)
    return build(Op.LOAD, filled, arg=args.LoadArg(arg.device, arg.addrspace))


def _filled(build: Build, x: Node, ranges: Sequence[Node]) -> Node:
    """x for each value of the RANGEs, stacked: an axis for each."""
    if not ranges:
        return x
    r, *inner = ranges
    at = (size_node(build, i) for i in range(bound(r)))
    return build(Op.STACK, *(_filled(build, _put(build, x, r, i), inner) for i in at))


def _by_axes(build: Build, root: Node) -> Node:
    """The same value with REDUCEs over axes in place of RANGEs, which only a kernel has."""

    def new(u: Node, src: list[Node]) -> Node:
        same = _like(build, u, src)
        if (
            u.op is not Op.REDUCE
            or len(src) == 1
            or not all(r.src[0].op is Op.CONST and bound(r) > 0 for r in src[1:])
        ):
            return same
        arg, count = arg_of(u, args.ReduceArg), len(src) - 1
        axes = (*range(count), *(axis + count for axis in arg.axes))
        stacked = _filled(build, src[0], src[1:])
        folded = build(Op.REDUCE, stacked, arg=args.ReduceArg(arg.op, axes))
        return build(Op.RESHAPE, folded, shape_node(build, u.shape))

    return rebuild(root, new)


def _put(build: Build, root: Node, old: Node, value: Node) -> Node:
    def new(u: Node, src: list[Node]) -> Node:
        return value if u is old else _like(build, u, src)

    return rebuild(root, new, lambda u: () if u is old else u.src)


def _empty(build: Build, u: Node) -> Node:
    one = build(Op.RESHAPE, const_like(build, u, 0), shape_node(build, (1,) * len(u.shape)))
    return build(Op.EXPAND, one, shape_node(build, u.shape))


def pointer(build: Build, u: Node) -> Node:
    """PTRADD: an INDEX by the sum of all offsets, in elements."""
    ptr, total = u.src[0], _elements(build, u)
    while ptr.op is Op.PTRADD:
        ptr, total = ptr.src[0], build(Op.ADD, _elements(build, ptr), total)
    if ptr.op is Op.INDEX:
        ptr, total = ptr.src[0], build(Op.ADD, _index(build, ptr.src[1]), total)
    return build(Op.INDEX, ptr, total)


def _elements(build: Build, u: Node) -> Node:
    """The offset of a PTRADD in elements; an offset in bytes is one of whole elements."""
    offset = _index(build, u.src[1])
    if arg_of(u, args.PtrAddArg).unit is args.Unit.ELEMENTS or u.dtype.itemsize == 1:
        return offset
    return build(Op.IDIV, offset, size_node(build, u.dtype.itemsize))


def _index(build: Build, i: Node) -> Node:
    return i if i.dtype is dtypes.index else build(Op.CAST, i, arg=args.DTypeArg(dtypes.index))


def all_reduce(build: Build, u: Node) -> Node:
    """ALLREDUCE: gather the shards, fold them, and copy the result to the devices."""
    arg, t = arg_of(u, args.AllReduceArg), u.src[0]
    places = cast("tuple[str, ...]", t.device)
    gathered = build(Op.LOAD, t, arg=args.LoadArg(places[0]))
    rows = build(Op.RESHAPE, gathered, shape_node(build, (len(places), *u.shape)))
    folded = build(Op.REDUCE, rows, arg=args.ReduceArg(arg.op, (0,)))
    if not isinstance(arg.device, tuple):
        one = build(Op.RESHAPE, folded, shape_node(build, u.shape))
        return build(Op.LOAD, one, arg=args.LoadArg(arg.device))
    copies = build(Op.EXPAND, folded, shape_node(build, (len(arg.device), *u.shape)))
    handed = build(Op.LOAD, copies, arg=args.LoadArg(arg.device))
    one = build(Op.REPLICATED, handed, arg=args.ReplicatedArg((0,)))
    return build(Op.RESHAPE, one, shape_node(build, u.shape))


def _like(build: Build, u: Node, src: list[Node]) -> Node:
    return u if tuple(src) == u.src else build(u.op, *src, arg=u.arg)

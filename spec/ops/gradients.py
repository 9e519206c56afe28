"""The gradient rules of the ops, which the declarations name.

A rule gets the node u and the gradient g of the loss with respect to u, of u's shape. It returns
one gradient per operand, None for an operand without gradient. An elementwise rule may return the
shape of u: the caller sums over the axes along which the operand was broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from uop.spec import args
from uop.spec.args import Arg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.ops.sizes import const_like, shape_node, size_node
from uop.spec.properties.shape import fixed

if TYPE_CHECKING:
    from uop.spec.registry import Build, Node, Sizes

Parts = Sequence["Node | None"]


def to_first(build: Build, u: Node, g: Node) -> Parts:
    """The identity in its first operand."""
    return (g, *[None] * (len(u.src) - 1))


def stopped(build: Build, u: Node, g: Node) -> Parts:
    """No gradient (D-082)."""
    return [None] * len(u.src)


def add(build: Build, u: Node, g: Node) -> Parts:
    return g, g


def sub(build: Build, u: Node, g: Node) -> Parts:
    return g, build(Op.NEG, g)


def neg(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.NEG, g),)


def mul(build: Build, u: Node, g: Node) -> Parts:
    a, b = u.src
    return build(Op.MUL, g, b), build(Op.MUL, g, a)


def mulacc(build: Build, u: Node, g: Node) -> Parts:
    a, b, _ = u.src
    return build(Op.MUL, g, b), build(Op.MUL, g, a), g


def recip(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.NEG, build(Op.MUL, g, build(Op.MUL, u, u))),)


def div(build: Build, u: Node, g: Node) -> Parts:
    share = build(Op.DIV, g, u.src[1])
    return share, build(Op.NEG, build(Op.MUL, share, u))


def maximum(build: Build, u: Node, g: Node) -> Parts:
    """The gradient goes to the larger operand; half to each of equal ones."""
    a, b = u.src
    zero = const_like(build, g, 0)
    equal = build(
        Op.WHERE, build(Op.CMPEQ, a, b), build(Op.MUL, g, const_like(build, g, 0.5)), zero
    )
    return (
        build(Op.WHERE, build(Op.CMPLT, b, a), g, equal),
        build(Op.WHERE, build(Op.CMPLT, a, b), g, equal),
    )


def where(build: Build, u: Node, g: Node) -> Parts:
    condition, zero = u.src[0], const_like(build, g, 0)
    return None, build(Op.WHERE, condition, g, zero), build(Op.WHERE, condition, zero, g)


def cast_(build: Build, u: Node, g: Node) -> Parts:
    """Between floats the gradient is cast back; a cast through another dtype is a step function."""
    (t,) = u.src
    if not (u.dtype.is_float and t.dtype.is_float):
        return (None,)
    return (build(Op.CAST, g, arg=args.DTypeArg(t.dtype)),)


def exp2(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.MUL, g, build(Op.MUL, u, const_like(build, g, math.log(2)))),)


def log2(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.MUL, build(Op.DIV, g, u.src[0]), const_like(build, g, 1 / math.log(2))),)


def sin(build: Build, u: Node, g: Node) -> Parts:
    """cos x as 1 - 2 sin(x/2)^2: adding pi/2 to a large x would be lost to rounding."""
    half = build(Op.SIN, build(Op.MUL, u.src[0], const_like(build, g, 0.5)))
    twice = build(Op.MUL, const_like(build, g, 2), build(Op.MUL, half, half))
    return (build(Op.MUL, g, build(Op.SUB, const_like(build, g, 1), twice)),)


def sqrt(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.DIV, g, build(Op.MUL, u, const_like(build, g, 2))),)


def power(build: Build, u: Node, g: Node) -> Parts:
    """b a^(b-1), which is 0 for b = 0; a^b ln a, which is 0 for a = 0 and b != 0."""
    a, b = u.src
    zero, one = const_like(build, g, 0), const_like(build, g, 1)
    slope = build(Op.MUL, b, build(Op.POW, a, build(Op.SUB, b, one)))
    base = build(Op.WHERE, build(Op.CMPEQ, a, zero), one, a)
    log = build(Op.MUL, build(Op.LOG2, base), const_like(build, g, math.log(2)))
    return (
        build(Op.WHERE, build(Op.CMPEQ, b, zero), zero, build(Op.MUL, g, slope)),
        build(Op.MUL, g, build(Op.MUL, u, log)),
    )


def permute(build: Build, u: Node, g: Node) -> Parts:
    order = arg_of(u, args.PermuteArg).order
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return (build(Op.PERMUTE, g, arg=args.PermuteArg(inverse)),)


def flip(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.FLIP, g, arg=u.arg),)


def reshape(build: Build, u: Node, g: Node) -> Parts:
    return _reshape(build, g, u.src[0].shape), None


def expand(build: Build, u: Node, g: Node) -> Parts:
    pairs = zip(u.src[0].shape, u.shape, strict=True)
    return _sum(build, g, [axis for axis, (old, new) in enumerate(pairs) if old != new]), None


def pad(build: Build, u: Node, g: Node) -> Parts:
    return build(Op.SHRINK, g, u.src[1], shape_node(build, u.src[0].shape)), None, None


def shrink(build: Build, u: Node, g: Node) -> Parts:
    size = shape_node(build, u.src[0].shape)
    return build(Op.PAD, g, u.src[1], size, arg=args.PadArg(args.PadFill.ZERO)), None, None


def replicated(build: Build, u: Node, g: Node) -> Parts:
    """The gradient goes to the first copy, which represents all of them."""
    shape = u.src[0].shape
    start, size = shape_node(build, [0] * len(shape)), shape_node(build, shape)
    return (build(Op.PAD, g, start, size, arg=args.PadArg(args.PadFill.ZERO)),)


def index(build: Build, u: Node, g: Node) -> Parts:
    """Each element of T gets the sum over the places that read it."""
    t, indices = u.src[0], u.src[1:]
    for k in reversed(range(len(indices))):
        # To the right of this axis are axes of T again, to the left those that the indices made.
        left = sum(len(i.shape) for i in indices[:k])
        g = _put(build, g, indices[k], left, *fixed(t, [k]))
    return (g, *[None] * len(indices))


def _put(build: Build, g: Node, i: Node, left: int, size: int) -> Node:
    """Put the axis of `size` that i has indexed back into g, after the first `left` axes."""
    kept = left + len(i.shape)
    shape = (*g.shape[:kept], 1, *g.shape[kept:])
    right = (1,) * (len(shape) - kept - 1)
    wanted = _reshape(build, build(Op.CAST, i, arg=args.DTypeArg(dtypes.int64)), (*i.shape, 1))
    read = build(Op.CMPEQ, wanted, _positions(build, size))
    read = _reshape(build, read, (*i.shape, size, *right))
    spread = build(Op.WHERE, read, _reshape(build, g, shape), const_like(build, g, 0))
    if not i.shape:
        return spread
    total = _sum(build, spread, [left])
    return _reshape(build, total, (*spread.shape[:left], *spread.shape[left + 1 :]))


def stack(build: Build, u: Node, g: Node) -> Parts:
    return [build(Op.INDEX, g, size_node(build, k)) for k, _ in enumerate(u.src)]


def reduce(build: Build, u: Node, g: Node) -> Parts:
    if len(u.src) > 1:
        raise UnsupportedError("the gradient of a REDUCE over RANGEs: it is part of a kernel")
    arg = arg_of(u, args.ReduceArg)
    return (_FOLDS[arg.op](build, u, g),)


def _of_max(build: Build, u: Node, g: Node) -> Node:
    """Equal shares to the elements that are the maximum, or for MIN the minimum."""
    (t,) = u.src
    largest = build(Op.CMPEQ, t, u)
    ones = build(Op.CAST, largest, arg=args.DTypeArg(g.dtype))
    count = _sum(build, ones, arg_of(u, args.ReduceArg).axes)
    return build(Op.WHERE, largest, build(Op.DIV, g, count), const_like(build, g, 0))


def _of_product(build: Build, u: Node, g: Node) -> Node:
    """g times the product of the other elements; dividing the product by the element fails at 0."""
    (t,), axes = u.src, arg_of(u, args.ReduceArg).axes
    rest = tuple(axis for axis in range(len(t.shape)) if axis not in axes)
    order = (*rest, *axes)
    kept, n = tuple(t.shape[a] for a in rest), math.prod(fixed(t, axes))
    row = _reshape(build, build(Op.PERMUTE, t, arg=args.PermuteArg(order)), (*kept, 1, n))
    own = build(Op.CMPEQ, _reshape(build, _positions(build, n), (n, 1)), _positions(build, n))
    others = build(Op.WHERE, own, const_like(build, g, 1), row)
    product = build(Op.REDUCE, others, arg=args.ReduceArg(Op.MUL, (len(kept) + 1,)))
    moved = _reshape(build, product, tuple(t.shape[axis] for axis in order))
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return build(Op.MUL, g, build(Op.PERMUTE, moved, arg=args.PermuteArg(inverse)))


_FOLDS: dict[Op, Callable[[Build, Node, Node], Node]] = {
    Op.ADD: lambda build, u, g: build(Op.EXPAND, g, shape_node(build, u.src[0].shape)),
    Op.MAX: _of_max,
    Op.MIN: _of_max,
    Op.MUL: _of_product,
}


def load(build: Build, u: Node, g: Node) -> Parts:
    """The gradient is copied to the operand's device; where the gate is false it goes to alt."""
    if arg_of(u, args.LoadArg).device is not None and u.src[0].device is not None:
        g = _on_devices_of(build, g, u.src[0])
    if len(u.src) < 3:
        return to_first(build, u, g)
    gate, zero = u.src[2], const_like(build, g, 0)
    return build(Op.WHERE, gate, g, zero), build(Op.WHERE, gate, zero, g), None


def _on_devices_of(build: Build, g: Node, like: Node) -> Node:
    """Copy g to the devices of another node, sharded like that node."""
    target, axis = args.LoadArg(like.device), like.axis
    if not isinstance(like.device, tuple):
        return build(Op.LOAD, g, arg=target)
    if axis is None:
        wide = _reshape(build, g, (1, *g.shape))
        copies = build(Op.EXPAND, wide, shape_node(build, (len(like.device), *g.shape)))
        whole = build(Op.LOAD, copies, arg=target)
        return _reshape(build, build(Op.REPLICATED, whole, arg=args.ReplicatedArg((0,))), g.shape)
    rest = [k for k in range(len(g.shape)) if k != axis]
    # A copy to several devices splits axis 0, so the shard axis is moved there and back.
    front = build(Op.PERMUTE, g, arg=args.PermuteArg((axis, *rest)))
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(g.shape)))
    return build(Op.PERMUTE, build(Op.LOAD, front, arg=target), arg=args.PermuteArg(back))


def contiguous(build: Build, u: Node, g: Node) -> Parts:
    return (build(Op.CONTIGUOUS, g),)


def _reshape(build: Build, t: Node, shape: Sizes) -> Node:
    return t if t.shape == shape else build(Op.RESHAPE, t, shape_node(build, shape))


def _sum(build: Build, t: Node, axes: Sequence[int]) -> Node:
    arg: Arg = args.ReduceArg(Op.ADD, tuple(axes))
    return build(Op.REDUCE, t, arg=arg) if axes else t


def _positions(build: Build, size: int) -> Node:
    """0, 1, ... as int64, in one BINARY node."""
    data = b"".join(k.to_bytes(8, "little") for k in range(size))
    return build(
        Op.BITCAST, build(Op.BINARY, arg=args.BinaryArg(data)), arg=args.DTypeArg(dtypes.int64)
    )

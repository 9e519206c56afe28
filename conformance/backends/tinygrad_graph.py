"""Translates tensor graphs to tinygrad's, op by op, by its node constructors.

Its Tensor would promote and simplify. Ops that its tensor graphs lack are written as its Tensor
writes them: SUB, NEG, DIV, MULACC, NOT and the comparisons other than CMPLT and CMPNE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uop.conformance.backends.tinygrad_library import Language, Node
from uop.spec.args import (
    ConstArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    LoadArg,
    ParamArg,
    PermuteArg,
    ReduceArg,
    arg_of,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, outside_bodies, toposort
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_values
from uop.spec.uop import UOp

NAMES: dict[Op, str] = {
    **{op: op.name for op in (Op.TRUNC, Op.ADD, Op.MUL, Op.MAX, Op.CMPLT, Op.CMPNE, Op.XOR)},
    **{op: op.name for op in (Op.OR, Op.AND, Op.WHERE, Op.EXP2, Op.LOG2, Op.SIN)},
    **{op: op.name for op in (Op.SQRT, Op.POW, Op.THREEFRY, Op.CDIV, Op.CMOD)},
    **{op: op.name for op in (Op.CONTIGUOUS, Op.DETACH, Op.AFTER, Op.STORE, Op.TUPLE)},
    Op.RECIP: "RECIPROCAL",
    Op.IDIV: "FLOORDIV",
    Op.MOD: "FLOORMOD",
    Op.CONTIGUOUSBACKWARD: "CONTIGUOUS_BACKWARD",
}
"""The ops of tinygrad with the same operands and no arg."""

REDUCES = (Op.ADD, Op.MUL, Op.MAX)


class Graph:
    """The translation of one graph. `leaves` makes the node of a PARAM or BUFFER."""

    def __init__(self, language: Language, leaves: Callable[[UOp], Node]) -> None:
        self.language, self.leaves = language, leaves

    def translated(self, roots: Sequence[UOp]) -> list[Node]:
        """The nodes of values. UnsupportedError for what tinygrad cannot express."""
        done: dict[UOp, Node] = {}
        for u in toposort(roots, outside_bodies):
            done[u] = self._node(u, done)
        return [done[root] for root in roots]

    def _node(self, u: UOp, done: dict[UOp, Node]) -> Node:
        if u.op in LEAVES:
            return self.leaves(u)
        if u.op is Op.CONST:
            return self.language.constant(arg_of(u, ConstArg))
        if u.op is Op.FUNCTION:
            return self._function(u, [done[s] for s in u.src[1:]])
        if u.op is Op.STORE and len(u.src) > 2:
            raise UnsupportedError("tinygrad has no STORE with a gate in tensor graphs")
        src = [done[s] for s in u.src]
        if u.op in NAMES:
            return self.language.node(NAMES[u.op], *src)
        rule = RULES.get(u.op)
        if rule is None:
            raise UnsupportedError(f"tinygrad has no {u.op.name} in tensor graphs")
        return rule(self.language, u, src)

    def _function(self, u: UOp, arguments: list[Node]) -> Node:
        language = self.language
        body = u.src[0]

        def param(p: UOp) -> Node:
            arg = arg_of(p, ParamArg)
            return language.uop.param(
                arg.slot, language.dtype(p.dtype), p.shape, device=arguments[arg.slot].device
            )

        members = Graph(language, param).translated(body.src)
        return language.node("TUPLE", *members).call(*arguments)


Rule = Callable[[Language, UOp, list[Node]], Node]
"""The node of tinygrad for a node, from those of its operands."""


def _negated(language: Language, u: UOp, x: Node) -> Node:
    return language.node("MUL", x, language.uop.const(-1.0 if u.dtype.is_float else -1))


def _not(language: Language, x: Node) -> Node:
    return language.node("CMPNE", x, language.uop.const(True))


def _shift(language: Language, u: UOp, src: list[Node]) -> Node:
    """In tinygrad the count has the dtype of the value, which holds every count in range."""
    value, count = src
    if u.src[1].dtype is not u.dtype:
        count = language.node("CAST", count, arg=language.dtype(u.dtype))
    return language.node(u.op.name, value, count)


def _convert(language: Language, u: UOp, src: list[Node]) -> Node:
    return language.node(u.op.name, *src, arg=language.dtype(arg_of(u, DTypeArg).dtype))


def _expand(language: Language, u: UOp, src: list[Node]) -> Node:
    """tinygrad's EXPAND adds leading axes: drop axes of size 1 first, permute after."""
    old, new = u.src[0].shape, u.shape
    grown = [k for k in range(len(new)) if old[k] != new[k]]
    if not grown:
        return src[0]
    kept = [k for k in range(len(new)) if old[k] == new[k]]
    dropped = language.reshape(src[0], [old[k] for k in kept])
    wide = language.node("EXPAND", dropped, language.dims([new[k] for k in grown]))
    places = (*grown, *kept)
    return language.node("PERMUTE", wide, arg=tuple(places.index(k) for k in range(len(new))))


def _window(language: Language, u: UOp, src: list[Node]) -> Node:
    """PAD fills with zeros, whatever its arg: the profile says so by `pad_fill`."""
    if not u.shape:
        return src[0]
    offset, size = (language.dims(index_values(s)) for s in u.src[1:])
    return language.node(u.op.name, src[0], offset, size)


def _index(language: Language, u: UOp, src: list[Node]) -> Node:
    """An INDEX by constants is a window of size 1; tinygrad has no other without a fold."""
    indices = u.src[1:]
    if any(i.op is not Op.CONST for i in indices):
        raise UnsupportedError("tinygrad has no INDEX by data in tensor graphs")
    if not indices:
        return src[0]
    rest = u.src[0].shape[len(indices) :]
    offsets = [int(arg_of(i, ConstArg).value) for i in indices] + [0] * len(rest)
    sizes = [1] * len(indices) + list(rest)
    window = language.node("SHRINK", src[0], language.dims(offsets), language.dims(sizes))
    return language.reshape(window, u.shape)


def _reduce(language: Language, u: UOp, src: list[Node]) -> Node:
    """tinygrad's REDUCE removes leading axes, none of size 1."""
    arg, shape = arg_of(u, ReduceArg), u.src[0].shape
    if arg.op not in REDUCES or len(u.src) > 1:
        raise UnsupportedError(f"tinygrad has no REDUCE by {arg.op.name} in tensor graphs")
    axes = tuple(a for a in arg.axes if shape[a] != 1)
    if not axes:
        return src[0]
    order = (*axes, *(k for k in range(len(shape)) if k not in axes))
    permuted = language.node("PERMUTE", src[0], arg=order)
    folded = language.node("REDUCE", permuted, arg=(language.ops[arg.op.name], len(axes)))
    return language.reshape(folded, u.shape)


def _stack(language: Language, u: UOp, src: list[Node]) -> Node:
    if u.dtype is dtypes.index and all(s.op is Op.CONST for s in u.src):
        return language.dims(index_values(u))
    if not src:
        raise UnsupportedError("tinygrad has no empty STACK")
    return language.node("STACK", *src)


def _load(language: Language, u: UOp, src: list[Node]) -> Node:
    """A LOAD of a value is a copy; tinygrad has no gate there, so WHERE chooses."""
    if arg_of(u, LoadArg).device is not None:
        raise UnsupportedError("a program for several devices")
    copy = language.node("CONTIGUOUS", src[0])
    return copy if len(src) < 3 else language.node("WHERE", src[2], copy, src[1])


RULES: dict[Op, Rule] = {
    Op.NEG: lambda to, u, src: _negated(to, u, src[0]),
    Op.SUB: lambda to, u, src: to.node("ADD", src[0], _negated(to, u, src[1])),
    Op.DIV: lambda to, u, src: to.node("MUL", src[0], to.node("RECIPROCAL", src[1])),
    Op.MULACC: lambda to, u, src: to.node("ADD", to.node("MUL", src[0], src[1]), src[2]),
    Op.NOT: lambda to, u, src: _not(to, src[0]),
    Op.SHL: _shift,
    Op.SHR: _shift,
    Op.CMPEQ: lambda to, u, src: _not(to, to.node("CMPNE", *src)),
    Op.CMPGT: lambda to, u, src: to.node("CMPLT", src[1], src[0]),
    Op.CMPGE: lambda to, u, src: _not(to, to.node("CMPLT", *src)),
    Op.CMPLE: lambda to, u, src: _not(to, to.node("CMPLT", src[1], src[0])),
    Op.CAST: _convert,
    Op.BITCAST: _convert,
    Op.RESHAPE: lambda to, u, src: to.reshape(src[0], u.shape),
    Op.PERMUTE: lambda to, u, src: to.node("PERMUTE", src[0], arg=arg_of(u, PermuteArg).order),
    Op.FLIP: lambda to, u, src: to.node("FLIP", src[0], arg=arg_of(u, FlipArg).flags),
    Op.EXPAND: _expand,
    Op.PAD: _window,
    Op.SHRINK: _window,
    Op.INDEX: _index,
    Op.REDUCE: _reduce,
    Op.STACK: _stack,
    Op.LOAD: _load,
    Op.GETTUPLE: lambda to, u, src: to.node("GETTUPLE", src[0], arg=arg_of(u, GetTupleArg).idx),
}
"""The translation of ops with other operands or an arg."""

COMPOSED = {
    "NEG": ("MUL",),
    "SUB": ("MUL", "ADD"),
    "DIV": ("RECIP", "MUL"),
    "MULACC": ("MUL", "ADD"),
    "NOT": ("CMPNE",),
    "CMPEQ": ("CMPNE",),
    "CMPGT": ("CMPLT",),
    "CMPGE": ("CMPLT", "CMPNE"),
    "CMPLE": ("CMPLT", "CMPNE"),
    "LOAD": ("CONTIGUOUS", "WHERE"),
}
"""The ops that tinygrad's graphs do not have, and those of which its Tensor makes them."""

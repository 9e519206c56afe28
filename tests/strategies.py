"""Hypothesis strategies for programs: every section of ops, any dtype, tags and devices."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from hypothesis import strategies as st

from uop.spec.args import (
    AddrSpace,
    Arg,
    AxisType,
    BinaryArg,
    BufferArg,
    ConstArg,
    CustomArg,
    CustomFunctionArg,
    DTypeArg,
    FlipArg,
    GetAddrArg,
    GetTupleArg,
    InsArg,
    LoadArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
    SourceArg,
    SpecialArg,
)
from uop.spec.dtype import DTYPES, DType, Kind
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, dims, index_const

Draw = Callable[[st.SearchStrategy[Any]], Any]
Step = Callable[[Draw, list[UOp]], UOp]

VALUE_DTYPES = [d for d in DTYPES.values() if d.kind is not Kind.VOID]
ELEMENTWISE = [d for d in DECLARATIONS.values() if d.is_elementwise and d.op is not Op.CAST]
EFFECTS = [Op.SINK, Op.GROUP, Op.TUPLE, Op.LINEAR, Op.AFTER, Op.STACK, Op.STORE, Op.LOAD]
OPAQUE: dict[Op, Callable[..., Arg]] = {Op.INS: InsArg, Op.CUSTOM: CustomArg}
MARKERS = [Op.CONTIGUOUS, Op.CONTIGUOUSBACKWARD, Op.DETACH]

dtypes_of_values: st.SearchStrategy[DType] = st.sampled_from(VALUE_DTYPES)
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
devices = st.sampled_from([None, None, "CPU", 'a "b";%\\', ("A", "B")])
addrspaces = st.sampled_from([None, *AddrSpace])
tags = st.one_of(st.none(), st.none(), st.text(max_size=4))


def bits_of(dtype: DType) -> st.SearchStrategy[int]:
    """Any bit pattern, with the special ones often."""
    top = (1 << dtype.bits) - 1
    special = [0, top, top >> 1, (top >> 1) + 1 if top > 1 else 1, 1]
    if dtype.is_float:
        special += [dtype.format.nan_bits, dtype.format.max_bits, dtype.format.sign_bit]
    return st.one_of(st.sampled_from(special), st.integers(0, top))


def _const(draw: Draw, pool: list[UOp]) -> UOp:
    dtype = draw(dtypes_of_values)
    return UOp(Op.CONST, arg=ConstArg(draw(bits_of(dtype)), dtype), tag=draw(tags))


def _param(draw: Draw, pool: list[UOp]) -> UOp:
    dtype, device, slot = draw(dtypes_of_values), draw(devices), draw(st.integers(0, 9))
    shape = (2, *draw(shapes)) if isinstance(device, tuple) else draw(shapes)
    if draw(st.booleans()):
        where = draw(st.sampled_from(AddrSpace))
        return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype, device, where))
    return UOp(Op.PARAM, dims(shape), arg=ParamArg(slot, dtype, device, draw(addrspaces)))


def _leaf(draw: Draw, pool: list[UOp]) -> UOp:
    op = draw(st.sampled_from([Op.BINARY, Op.SOURCE, Op.RANGE, Op.SPECIAL]))
    arg: Arg
    if op is Op.BINARY:
        arg = BinaryArg(draw(st.binary(max_size=5)))
        return UOp(op, arg=arg)
    if op is Op.SOURCE:
        return UOp(op, arg=SourceArg(draw(st.text(max_size=8))))
    bound = UOp(Op.CONST, arg=ConstArg(draw(st.integers(0, 1 << 40)), DTYPES["index"]))
    if op is Op.RANGE:
        arg = RangeArg(draw(st.integers(0, 99)), draw(st.sampled_from(AxisType)))
    else:
        arg = SpecialArg(draw(st.text(max_size=6)))
    return UOp(op, bound, arg=arg)


def _elementwise(draw: Draw, pool: list[UOp]) -> UOp:
    declaration = draw(st.sampled_from(ELEMENTWISE))
    first = draw(st.sampled_from(pool))
    same = [u for u in pool if u.dtype is first.dtype]
    src = [draw(st.sampled_from(same)) for _ in declaration.src]
    return UOp(declaration.op, *src, tag=draw(tags))


def _cast(draw: Draw, pool: list[UOp]) -> UOp:
    op = draw(st.sampled_from([Op.CAST, Op.BITCAST]))
    return UOp(op, draw(st.sampled_from(pool)), arg=DTypeArg(draw(dtypes_of_values)))


def _movement(draw: Draw, pool: list[UOp]) -> UOp:
    t = draw(st.sampled_from(pool))
    rank = len(t.shape)
    op = draw(st.sampled_from([Op.PERMUTE, Op.FLIP, Op.RESHAPE, Op.EXPAND, Op.PAD, Op.SHRINK]))
    if op is Op.PERMUTE:
        return UOp(op, t, arg=PermuteArg(tuple(draw(st.permutations(range(rank))))))
    if op is Op.FLIP:
        return UOp(op, t, arg=FlipArg(tuple(draw(st.booleans()) for _ in t.shape)))
    if op is Op.RESHAPE:
        return UOp(op, t, dims(draw(st.sampled_from([(prod(t.shape),), (1, *t.shape)]))))
    if op is Op.EXPAND:
        return UOp(op, t, dims(draw(st.integers(0, 4)) if d == 1 else d for d in t.shape))
    more = [draw(st.integers(0, 2)) for _ in t.shape]
    if op is Op.PAD:
        wide = dims(d + 2 * m for d, m in zip(t.shape, more, strict=True))
        return UOp(op, t, dims(more), wide, arg=PadArg(draw(st.sampled_from(PadFill))))
    return UOp(op, t, dims(more), dims(d - m for d, m in zip(t.shape, more, strict=True)))


def _reduce(draw: Draw, pool: list[UOp]) -> UOp:
    t = draw(st.sampled_from(pool))
    axes = tuple(axis for axis, _ in enumerate(t.shape) if draw(st.booleans()))
    op = draw(st.sampled_from([Op.ADD, Op.MUL, Op.MAX]))
    return UOp(Op.REDUCE, t, arg=ReduceArg(op, axes))


def _replicated(draw: Draw, pool: list[UOp]) -> UOp:
    t = draw(st.sampled_from(pool))
    axes = tuple(axis for axis, _ in enumerate(t.shape) if draw(st.booleans()))
    return UOp(Op.REPLICATED, t, arg=ReplicatedArg(axes))


def _slice(draw: Draw, pool: list[UOp]) -> UOp:
    t = draw(st.sampled_from(pool))
    dtype = draw(st.sampled_from([t.dtype, *VALUE_DTYPES]))
    arg = SliceArg(draw(st.integers(0, 3)), dtype)
    return UOp(Op.SLICE, t, index_const(draw(st.integers(0, 3))), arg=arg)


def _index(draw: Draw, pool: list[UOp]) -> UOp:
    t = draw(st.sampled_from(pool))
    count = draw(st.integers(0, len(t.shape)))
    whole = [draw(st.sampled_from([dims((0,)), dims((0, 0)), dims((5,)).src[0]])) for _ in t.shape]
    return UOp(Op.INDEX, t, *whole[:count])


def _marker(draw: Draw, pool: list[UOp]) -> UOp:
    return UOp(draw(st.sampled_from(MARKERS)), draw(st.sampled_from(pool)), tag=draw(tags))


def _effect(draw: Draw, pool: list[UOp]) -> UOp:
    op = draw(st.sampled_from(EFFECTS))
    src = draw(st.lists(st.sampled_from(pool), max_size=3))
    if op is Op.LOAD:
        return UOp(op, *src, arg=LoadArg(draw(st.sampled_from([None, "GPU"])), draw(addrspaces)))
    return UOp(op, *src)


def _element(draw: Draw, pool: list[UOp]) -> UOp:
    tuples = [u for u in pool if u.op is Op.TUPLE and u.src]
    if not tuples:
        return _param(draw, pool)
    t = draw(st.sampled_from(tuples))
    return UOp(Op.GETTUPLE, t, arg=GetTupleArg(draw(st.integers(0, len(t.src) - 1))))


def _codegen(draw: Draw, pool: list[UOp]) -> UOp:
    op = draw(st.sampled_from([Op.BARRIER, Op.IF, Op.ENDIF, Op.ATOMICADD, Op.GETADDR, *OPAQUE]))
    if op in OPAQUE:
        arg = OPAQUE[op](draw(st.text(max_size=6)), draw(dtypes_of_values), draw(shapes))
        return UOp(op, *draw(st.lists(st.sampled_from(pool), max_size=3)), arg=arg)
    first = draw(st.sampled_from(pool))
    if op is Op.GETADDR:
        return UOp(op, first, arg=GetAddrArg(draw(st.text(max_size=3))))
    return UOp(op, *([first, first] if op is Op.ATOMICADD else [first]))


def _function(draw: Draw, pool: list[UOp]) -> UOp:
    meta = draw(st.lists(st.sampled_from(pool), max_size=2))
    return UOp(Op.CUSTOMFUNCTION, *meta, arg=CustomFunctionArg(draw(st.text(max_size=6))))


STEPS: tuple[Step, ...] = (
    _const,
    _param,
    _leaf,
    _elementwise,
    _elementwise,
    _cast,
    _movement,
    _movement,
    _reduce,
    _replicated,
    _slice,
    _index,
    _marker,
    _effect,
    _element,
    _codegen,
    _function,
)


@st.composite
def programs(draw: Draw, most: int = 12) -> UOp:
    """A program of up to `most` steps; a step that would be invalid is left out."""
    pool = [_param(draw, [])]
    for _ in range(draw(st.integers(1, most))):
        try:
            pool.append(draw(st.sampled_from(STEPS))(draw, pool))
        except InvalidError:
            continue
    return pool[-1]

"""Programs over two variables, which tests bind to all their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uop.spec.args import (
    BufferArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, variable

Size = Any
Program = Callable[[Size, Size], UOp]


N, M = variable(0, 1, 5), variable(1, 0, 3)


def number(size: Size) -> UOp:
    return size if isinstance(size, UOp) else index_const(size)


def shape(*sizes: Size) -> UOp:
    return UOp(Op.STACK, *map(number, sizes))


def plus(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) else UOp(Op.ADD, a, number(b))


def times(a: Size, b: Size) -> Size:
    return a * b if isinstance(a, int) else UOp(Op.MUL, a, number(b))


def values(slot: int, *sizes: Size, dtype: DType = dtypes.int32) -> UOp:
    return UOp(Op.PARAM, shape(*sizes), arg=ParamArg(slot, dtype))


def gemm(n: Size, m: Size) -> UOp:
    a = UOp(Op.RESHAPE, values(2, n, 3), shape(n, 3, 1))
    b = UOp(Op.RESHAPE, values(3, 3, m), shape(1, 3, m))
    return UOp(Op.REDUCE, UOp(Op.MUL, a, b), arg=ReduceArg(Op.ADD, (1,)))


def windows(n: Size, m: Size) -> UOp:
    """A sum of all that stands before, by padding, tiling and trimming."""
    x = UOp(
        Op.PAD,
        values(2, n),
        shape(plus(n, -1)),
        shape(plus(times(n, 2), -1)),
        arg=PadArg(PadFill.ZERO),
    )
    wide = plus(times(n, 2), -1)
    x = UOp(Op.EXPAND, UOp(Op.RESHAPE, x, shape(1, wide)), shape(plus(n, 1), wide))
    x = UOp(Op.RESHAPE, x, shape(times(plus(n, 1), wide)))
    x = UOp(Op.SHRINK, x, shape(0), shape(times(times(n, 2), n)))
    x = UOp(Op.RESHAPE, x, shape(n, times(n, 2)))
    x = UOp(Op.SHRINK, x, shape(0, 0), shape(n, n))
    return UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,)))


def stored(n: Size, m: Size) -> UOp:
    b = UOp(Op.BUFFER, shape(n, m), arg=BufferArg(4, dtypes.int32))
    return UOp(Op.SINK, UOp(Op.STORE, b, UOp(Op.NEG, values(2, n, m))))


def packed(n: Size, m: Size) -> UOp:
    both = UOp(Op.TUPLE, values(2, n), values(3, m, n))
    return UOp(Op.GETTUPLE, both, arg=GetTupleArg(1))


def counted(n: Size, m: Size) -> UOp:
    """The variable as a number too."""
    return UOp(Op.ADD, values(2, n, dtype=dtypes.index), number(plus(n, 1)))


def centred(n: Size, m: Size) -> UOp:
    """A value of each row is read by all of it: two kernels, and a temporary between them."""
    x = values(2, n, m)
    return UOp(Op.SUB, x, UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,))))


def buffer(slot: int, *sizes: Size) -> UOp:
    return UOp(Op.BUFFER, shape(*sizes), arg=BufferArg(slot, dtypes.int32))


def written_in_part(n: Size, m: Size) -> UOp:
    part = UOp(Op.SHRINK, buffer(4, plus(n, m)), shape(m), shape(n))
    return UOp(Op.SINK, UOp(Op.STORE, part, UOp(Op.NEG, values(2, n))))


def turned_in_place(n: Size, m: Size) -> UOp:
    b = buffer(4, n, m)
    return UOp(Op.SINK, UOp(Op.STORE, b, UOp(Op.FLIP, b, arg=FlipArg((True, True)))))


def read_after(n: Size, m: Size) -> UOp:
    b = buffer(4, n)
    return UOp(Op.NEG, UOp(Op.AFTER, b, UOp(Op.STORE, b, values(2, n))))


def without_padding(n: Size, m: Size) -> UOp:
    """INVALID elements are left out of the sum."""
    x = UOp(Op.PAD, values(2, n), shape(m), shape(plus(plus(n, m), 1)), arg=PadArg(PadFill.INVALID))
    return UOp(Op.REDUCE, x, arg=ReduceArg(Op.MAX, (0,)))


def two_results(n: Size, m: Size) -> UOp:
    x = values(2, n, m)
    return UOp(Op.TUPLE, UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (0, 1))), UOp(Op.NEG, x))


def joined(n: Size, m: Size) -> UOp:
    """Two values one behind the other."""
    zero, whole = PadArg(PadFill.ZERO), shape(plus(n, m))
    first = UOp(Op.PAD, values(2, n), shape(0), whole, arg=zero)
    return UOp(Op.ADD, first, UOp(Op.PAD, values(3, m), shape(n), whole, arg=zero))


def called(n: Size, m: Size) -> UOp:
    """A body that is called with two sizes."""
    own = variable(0, 0, 9)
    x = values(1, own, 2)
    body = UOp(Op.TUPLE, UOp(Op.FLIP, x, arg=FlipArg((True, False))))

    def turned(size: Size, slot: int) -> UOp:
        function = UOp(Op.FUNCTION, body, number(size), values(slot, size, 2))
        return UOp(Op.GETTUPLE, function, arg=GetTupleArg(0))

    return UOp(Op.TUPLE, turned(n, 2), turned(plus(m, 1), 3))


PROGRAMS: dict[str, Program] = {
    "param": lambda n, m: values(2, n, m, 4),
    "permute": lambda n, m: UOp(Op.PERMUTE, values(2, n, m, 4), arg=PermuteArg((2, 0, 1))),
    "flip": lambda n, m: UOp(Op.FLIP, values(2, n, m), arg=FlipArg((True, False))),
    "reshape": lambda n, m: UOp(Op.RESHAPE, values(2, n, m, 4), shape(times(m, 2), n, 2)),
    "expand": lambda n, m: UOp(Op.EXPAND, values(2, 1, m), shape(n, m)),
    "pad": lambda n, m: UOp(Op.PAD, values(2, n, 2), shape(m, 1), shape(plus(n, 3), 4)),
    "shrink": lambda n, m: UOp(Op.SHRINK, values(2, plus(n, m)), shape(m), shape(n)),
    "shrink at a variable": lambda n, m: UOp(Op.SHRINK, values(2, 7), shape(m), shape(2)),
    "index": lambda n, m: UOp(Op.INDEX, values(2, 3, n, m), index_const(1), values(3, 4)),
    "stack": lambda n, m: UOp(Op.STACK, values(2, n, m), values(3, n, m)),
    "replicated": lambda n, m: UOp(Op.REPLICATED, values(2, n, 2), arg=ReplicatedArg((0,))),
    "slice": lambda n, m: UOp(Op.SLICE, values(2, 8), number(m), arg=SliceArg(5, dtypes.int32)),
    "cast": lambda n, m: UOp(Op.CAST, values(2, n, m), arg=DTypeArg(dtypes.float16)),
    "bitcast": lambda n, m: UOp(Op.BITCAST, values(2, n, m), arg=DTypeArg(dtypes.float32)),
    "reduce": lambda n, m: UOp(Op.REDUCE, values(2, n, m), arg=ReduceArg(Op.MAX, (1,))),
    "broadcast": lambda n, m: UOp(Op.MAX, values(2, n, 1, m), values(3, 1, m)),
    "where": lambda n, m: UOp(
        Op.WHERE, values(2, n, dtype=dtypes.bool), values(3, n), const(1, dtypes.int32)
    ),
    "marker": lambda n, m: UOp(Op.CONTIGUOUS, values(2, n)),
    "gemm": gemm,
    "windows": windows,
    "stored": stored,
    "packed": packed,
    "counted": counted,
    "centred": centred,
    "written in part": written_in_part,
    "turned in place": turned_in_place,
    "read after": read_after,
    "without padding": without_padding,
    "two results": two_results,
    "joined": joined,
}

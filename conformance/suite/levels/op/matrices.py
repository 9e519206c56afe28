"""Level kernel, matrices: one WMMA of one warp, on fragments in memory.

Judged by the latitude of WMMA, which is wider than that of the same sum by tensor ops (D-067).
"""

from __future__ import annotations

from uop.conformance.suite import values
from uop.conformance.suite.case import Batch
from uop.conformance.suite.choices import Choices, data_key
from uop.conformance.suite.levels.group import Program
from uop.conformance.suite.levels.kernel.listing import Listing
from uop.conformance.suite.levels.op.scalar import Memory, argument, at, load
from uop.spec.args import SpecialArg, WmmaArg
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const


def multiplied(arg: WmmaArg, choices: Choices, index: int) -> Program:
    """Slots 1, 2 and 3 hold A, B and acc as fragments, lane after lane; slot 0 gets the result."""
    sizes = (arg.m * arg.k, arg.k * arg.n, arg.m * arg.n)
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    target = Memory(0, sizes[2], arg.dtype_out)
    sources = [Memory(k + 1, n, d) for k, (n, d) in enumerate(zip(sizes, kinds, strict=True))]
    lane = UOp(Op.SPECIAL, index_const(WARP), arg=SpecialArg("lidx0"))
    held = [load(s.param, _places(lane, s.count)) for s in sources]
    listing = Listing()
    value = UOp(Op.WMMA, *held, arg=arg)
    listing.do(UOp(Op.STORE, at(target.param, _places(lane, target.count)), value))
    kernel = UOp(Op.CALL, listing.body, *(argument(m) for m in (target, *sources)))
    batches = tuple(
        Batch({s.slot: values.draw_ordinary(s.dtype, s.count, data_key(choices)) for s in sources})
        for _ in range(2)
    )
    return Program(UOp(Op.SINK, kernel), batches)


def _places(lane: UOp, count: int) -> UOp:
    """What a lane holds of so many elements."""
    each = count // WARP
    first = UOp(Op.MUL, lane, index_const(each))
    return UOp(Op.STACK, *(UOp(Op.ADD, first, index_const(k)) for k in range(each)))

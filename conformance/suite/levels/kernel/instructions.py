"""Generate level kernel, device instructions: atomics, addresses, INS, and matrices by WMMA."""

from __future__ import annotations

from uop.conformance.suite.choices import Choices, between, chance, pick
from uop.conformance.suite.levels.group import Generated, program
from uop.conformance.suite.levels.kernel.listing import Listing
from uop.conformance.suite.levels.kernel.scalar import (
    Memory,
    at,
    launch,
    load,
    modulo,
    plus,
    special,
    times,
)
from uop.conformance.suite.levels.nodes import store
from uop.conformance.suite.values import draw_bits, draw_mixed, draw_ordinary, draw_positive, sample
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import GetAddrArg, InsArg, WmmaArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

MOST_TERMS = 12
"""The most terms of a sum, so that small floats still tell a lost term from rounding."""
MOST_ITEMS = 40
MOST_DEEP = 3
ARITY = {"mul_hi": 2, "popcount": 1, "clz": 1}


def atomic_sums(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item add its element to one of few sums, some of them behind nested gates."""
    sums = between(choices, 1, 4)
    items = between(choices, 2, MOST_TERMS * sums if dtype.is_float else MOST_ITEMS)
    target, source = memories = Memory(0, sums, dtype), Memory(1, items, dtype)
    g, listing = special("gidx0", items), Listing()
    place = modulo(plus(g, choices.below(5)), sums)
    add = UOp(Op.ATOMICADD, at(target.param, place), load(source.param, g))
    _gated(choices, listing, g, add, between(choices, 0, MOST_DEEP))
    if chance(choices, 30):
        listing.do(UOp(Op.ATOMICADD, at(target.param, index_const(0)), const(1, dtype)))
    draws = (draw_positive, draw_positive if dtype.is_float else draw_bits)
    data = ([sample(draw, dtype, m.count, choices) for m in memories] for draw in draws)
    return program(launch(listing.body, *memories), *data)


def _gated(choices: Choices, listing: Listing, g: UOp, effect: UOp, depth: int) -> None:
    """List the effect inside so many branches, each by the number of the item."""
    if not depth:
        listing.do(effect)
        return
    bound = index_const(between(choices, 1, 30))
    turned = modulo(times(g, between(choices, 1, 5)), 31)
    gate = pick(choices, (UOp(Op.CMPLT, g, bound), UOp(Op.CMPLT, turned, bound)))
    with listing.where(gate):
        _gated(choices, listing, g, effect, depth - 1)


def distances(dtype: DType, choices: Choices, index: int) -> Generated:
    """Compute how many bytes lie between elements of one buffer."""
    n, count = between(choices, 2, 20), between(choices, 2, 9)
    target, source = memories = Memory(0, count, dtypes.uint64), Memory(1, n, dtype)
    g = special("gidx0", count)
    places = [modulo(plus(g, choices.below(n)), n) for _ in range(2)]
    addresses = (UOp(Op.GETADDR, at(source.param, i), arg=GetAddrArg("GPU")) for i in places)
    body = UOp(Op.SINK, store(at(target.param, g), UOp(Op.SUB, *addresses)))
    blank = draw_bits(dtypes.uint64, count, 0).astype(np_dtype(dtypes.uint64))
    return program(launch(body, *memories), [blank, sample(draw_bits, dtype, n, choices)])


def named(choices: Choices, index: int) -> Generated:
    """Run every machine instruction that has a name, on elements of any bits."""
    n, dtype = between(choices, 5, 70), dtypes.uint32
    target, source = memories = Memory(0, len(ARITY) * n, dtype), Memory(1, n, dtype)
    g, stores = special("gidx0", n), []
    for k, (name, arity) in enumerate(ARITY.items()):
        places = (modulo(plus(g, choices.below(n)), n) for _ in range(arity))
        value = UOp(Op.INS, *(load(source.param, i) for i in places), arg=InsArg(name, dtype))
        stores.append(store(at(target.param, plus(g, k * n)), value))
    data = {1: sample(draw_mixed, dtype, n, choices)}
    return program(launch(UOp(Op.SINK, *stores), *memories), data)


def matrices(arg: WmmaArg, choices: Choices, index: int) -> Generated:
    """Run one WMMA of one warp on fragments: A, B and acc in slots 1 to 3, the result in slot 0.

    The fragments lie lane after lane. The latitude of WMMA applies, which is wider than that of the
    same sum by tensor ops (D-067).
    """
    sizes = (arg.m * arg.k, arg.k * arg.n, arg.m * arg.n)
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    target = Memory(0, sizes[2], arg.dtype_out)
    sources = [Memory(k + 1, n, d) for k, (n, d) in enumerate(zip(sizes, kinds, strict=True))]
    lane, listing = special("lidx0", WARP), Listing()
    fragments = (load(s.param, _fragment(lane, s.count)) for s in sources)
    value = UOp(Op.WMMA, *fragments, arg=arg)
    listing.do(store(at(target.param, _fragment(lane, target.count)), value))
    batches = (
        {s.slot: sample(draw_ordinary, s.dtype, s.count, choices) for s in sources}
        for _ in range(2)
    )
    return program(launch(listing.body, target, *sources), *batches)


def _fragment(lane: UOp, count: int) -> UOp:
    """Return the places of a lane among so many elements."""
    each = count // WARP
    first = times(lane, each)
    return UOp(Op.STACK, *(plus(first, k) for k in range(each)))

"""Apply the relaxations of a profile to accepted sets: the operands of an op, and its results.

Relaxations are excess precision, contraction, reassociation, algebraic laws, flushed subnormals and
the precision of matrix units. They come on top of the latitude of each op. An operand that may stay
unrounded stands for all reals that round to it, so its set grows by one representable value on each
side. Each use of a value is separate: two uses of one value may read different reals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.rules.budget import floats_between, largest_finite, wide_storage
from uop.interpreter.accepted.sets import Sets, chosen, intervals, somewhere, united, without
from uop.interpreter.numeric.storage import STORED, Array, Mask
from uop.interpreter.values import either
from uop.spec.args import ConstArg, ReduceArg, arg_of
from uop.spec.dtype import DType
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Node

GIVEN_BITS = frozenset({Op.PARAM, Op.BUFFER, Op.CONST, Op.BITCAST})
"""Ops whose result has the bits of an operand or a constant."""
LAWS = {Op.MUL: (0.0, -0.0), Op.SUB: (0.0, -0.0), Op.DIV: (1.0,)}
"""The values of x*0, x-x and x/x under the law, for every x."""
FEWER_BITS = 2.0**-9
"""The relative error of a product whose float32 factors keep 11 bits, as matrix units read them."""
FP8_UNIT = 2.0**-13
"""The unit roundoff of the sums of fp8 products in matrix units."""


def is_relaxed(profile: Profile) -> bool:
    """Return whether a profile relaxes float arithmetic beyond the latitude of the ops."""
    return depends_on_others(profile) or bool(profile.ftz or profile.decomposed)


def depends_on_others(profile: Profile) -> bool:
    """Return whether the accepted results of a node depend on other nodes under a profile."""
    rounding = profile.contract or profile.reassociate or profile.algebra or profile.wmma
    return bool(rounding or profile.excess_precision)


def read(u: Node, profile: Profile, operands: Sequence[Sets]) -> list[Sets]:
    """Return the operands as an op may read them.

    WHERE, BITCAST and a CAST to the same dtype copy bits: they read their operands unchanged.
    """
    if keeps_bits(u):
        return list(operands)
    return [_read(u, s, profile, sets) for s, sets in zip(u.src, operands, strict=False)]


def read_terms(u: Node, profile: Profile, flat: Sets) -> Sets:
    """Return the terms of a REDUCE as it may read them.

    `flat` has the terms along its first axis. Under `profile.wmma` a float sum of products may run
    on a matrix unit, which reads its factors with fewer bits and adds them less precisely.
    """
    (flat,) = read(u, profile, [flat])
    arg = arg_of(u, ReduceArg)
    if not (profile.wmma and arg.op is Op.ADD and u.dtype.is_float):
        return flat
    factors = [f for m in _products_of(u.src[0]) for f in map(_before_cast, m.src)]
    if not factors:
        return flat
    unit = FP8_UNIT if any(f.bits == 8 for f in factors) else 2.0**-u.dtype.format.precision
    share = 2 * unit * len(flat.lo) + FEWER_BITS * any(f.bits == 32 for f in factors)
    return _spread(unrounded(flat, u.dtype), share, u.dtype)


def keeps_bits(u: Node) -> bool:
    """Return whether an op copies bits of its operands; a CAST does so if it keeps the dtype."""
    return u.op in (Op.WHERE, Op.BITCAST) or is_copy(u)


def is_copy(u: Node) -> bool:
    """Return whether a CAST keeps the dtype and so changes nothing."""
    return u.op is Op.CAST and u.src[0].dtype is u.dtype


def reads_copy(u: Node, profile: Profile) -> bool:
    """Return whether the operand of a BITCAST is a copy, in which a NaN may have become quiet."""
    return profile.snan == "either" and u.src[0].op not in GIVEN_BITS


def between(dtype: DType, profile: Profile, a: Sets, b: Sets, product: Sets) -> Sets:
    """Return the product of a and b inside a MULACC as the sum may read it."""
    tiny = tiny_results(Op.MUL, dtype, (a, b)) if dtype in profile.ftz else None
    if Op.MULACC in profile.contract or dtype in profile.excess_precision:
        product = unrounded(product, dtype)
    return flushed(product, dtype, tiny) if dtype in profile.ftz else product


def relaxed(u: Node, profile: Profile, operands: Sequence[Sets], result: Sets) -> Sets:
    """Return the results of an op after the relaxations of a profile.

    The constants of the laws of `profile.algebra` are accepted too. In a dtype of `profile.ftz` a
    result that is subnormal before or after rounding may become a zero.
    """
    if not u.dtype.is_float or keeps_bits(u):
        return result
    law = _law(u) if profile.algebra else None
    if law is not None and law in profile.algebra:
        for value in LAWS[law]:
            same = np.full_like(result.lo, value)
            opened = result.any
            result = replace(united(result, Sets(same, same)), any=opened)
    if u.dtype not in profile.ftz:
        return result
    return flushed(result, u.dtype, tiny_results(u.op, u.dtype, operands))


def unrounded(s: Sets, dtype: DType) -> Sets:
    """Return the sets with one representable value more on each side.

    In a dtype without infinity a set that may be NaN, not by exact bits, accepts anything: the
    unrounded value is not known.
    """
    form = dtype.format
    last = np.asarray(np.inf if form.has_inf else largest_finite(dtype)).astype(s.lo.dtype)
    top = order.keys(last.reshape(1))[0]
    one = top.dtype.type(1)
    lo = order.unkeys(np.maximum(order.keys(s.lo), -top) - one, s.lo.dtype)
    hi = order.unkeys(np.minimum(order.keys(s.hi), top - one) + one, s.hi.dtype)
    if s.only is not None:
        lo, hi = np.where(s.only, s.lo, lo), np.where(s.only, s.hi, hi)
    opened = s.any if form.has_inf else either(s.any, without(s.nan, s.exact))
    return Sets(lo, hi, s.nan, s.only, s.exact, opened, s.invalid)


def within(s: Sets, below: Array, above: Array, dtype: DType) -> Sets:
    """Return the floats between two reals, with the masks of `s`.

    An element that can only be NaN stays so.
    """
    wider = floats_between(below, above, dtype)
    lo, hi = wider.lo, wider.hi
    if s.only is not None:
        lo, hi = np.where(s.only, s.lo, lo), np.where(s.only, s.hi, hi)
    only: Mask | None = s.only if wider.only is None else either(s.only, somewhere(wider.only))
    return Sets(lo, hi, either(s.nan, wider.nan), only, s.exact, s.any, s.invalid)


SPLIT = 2.0**27 + 1
"""Splits a float64 in two halves whose products are exact (Veltkamp)."""


def flushed(s: Sets, dtype: DType, tiny: Mask | None = None) -> Sets:
    """Return the sets with both zeros added wherever they hold a subnormal.

    `tiny` says where a result is subnormal before it is rounded: it may be flushed too.
    """
    small = np.logical_or.reduce([_holds_small(part, dtype, tiny) for part in intervals(s)])
    if not small.any():
        return s
    zero = np.zeros_like(s.lo)
    wider = replace(united(s, Sets(-zero, zero)), any=s.any, invalid=s.invalid)
    return chosen(small, wider, s)


def tiny_results(op: Op, dtype: DType, operands: Sequence[Sets]) -> Mask | None:
    """Return where an exact result may be subnormal although the rounded one is not.

    None for other ops: the sums of a dtype are exact there, and a budget of an ulp or more reaches
    the subnormals.
    """
    if op not in (Op.MUL, Op.DIV, Op.CAST) or not all(order.is_float(s.lo.dtype) for s in operands):
        return None
    least, most = zip(*map(_magnitudes, operands), strict=True)
    nonzero = np.logical_and.reduce([end > 0 for end in most])
    if op is Op.MUL:
        return np.asarray(nonzero & _product_is_tiny(least[0], least[1], dtype.format.emin))
    if op is Op.DIV:
        return np.asarray(nonzero & (np.ldexp(least[0], -dtype.format.emin) < most[1]))
    return np.asarray(nonzero & (least[0] < 2.0**dtype.format.emin))


def _read(u: Node, s: Node, profile: Profile, sets: Sets) -> Sets:
    if not s.dtype.is_float:
        return sets
    if _is_unrounded(u, s, profile):
        sets = unrounded(sets, s.dtype)
    return flushed(sets, s.dtype) if s.dtype in profile.ftz else sets


def _is_unrounded(u: Node, s: Node, profile: Profile) -> bool:
    if s.dtype in profile.excess_precision:
        # Rounded is what comes from memory, from bits, or by a CAST, which asks for it.
        rounded = (*GIVEN_BITS, Op.LOAD, Op.CONTIGUOUS, Op.CAST)
        return any(v.op not in rounded for v in _made_by(s))
    op = u.arg.op if isinstance(u.arg, ReduceArg) else u.op
    sums = {Op.ADD, Op.SUB} & profile.contract
    # A backend may compute a quotient as a product with a reciprocal.
    return op in sums and any(v.op in (Op.MUL, Op.DIV) for v in _made_by(s))


def _law(u: Node) -> Op | None:
    """Return the op of the algebraic law that fixes the value of a node, for all operands.

    A sum with an opposite is a SUB, a product with a reciprocal a DIV.
    """
    if u.op is Op.MUL:
        if any(all(map(_is_zero, _made_by(s))) for s in u.src):
            return Op.MUL
        return Op.DIV if _are_opposite(u, Op.RECIP) else None
    if u.op is Op.ADD:
        return Op.SUB if _are_opposite(u, Op.NEG) else None
    return u.op if u.op in LAWS and u.src[0] is u.src[1] else None


def _are_opposite(u: Node, op: Op) -> bool:
    a, b = u.src
    return any(x.op is op and x.src[0] is y for x, y in ((a, b), (b, a)))


def _is_zero(u: Node) -> bool:
    return isinstance(u.arg, ConstArg) and u.arg.value == 0


def _made_by(u: Node) -> Iterator[Node]:
    """Yield the nodes below those that only move a value, select one or change its sign."""
    seen: set[Node] = set()
    waiting = [u]
    while waiting:
        v = waiting.pop()
        if v in seen:
            continue
        seen.add(v)
        if _moves(v):
            waiting.append(v.src[0])
        elif v.op in (Op.WHERE, Op.STACK, Op.NEG, Op.REPLICATED):
            waiting += v.src[v.op is Op.WHERE :]
        else:
            yield v


def _moves(u: Node) -> bool:
    """Return whether an op passes on its first operand and stores nothing."""
    return DECLARATIONS[u.op].is_view or u.op in (
        *(Op.INDEX, Op.AFTER, Op.DETACH, Op.CONTIGUOUSBACKWARD, Op.NOOP, Op.PRECAST),
        *(Op.UNROLL, Op.CONTRACT),
    )


def _products_of(u: Node) -> list[Node]:
    """Return the MULs that produce a value, seen through CASTs."""
    made = [b for v in _made_by(u) for b in (_made_by(v.src[0]) if v.op is Op.CAST else (v,))]
    return [v for v in made if v.op is Op.MUL]


def _before_cast(u: Node) -> DType:
    while _moves(u) or u.op is Op.CAST:
        u = u.src[0]
    return u.dtype


def _spread(s: Sets, share: float, dtype: DType) -> Sets:
    """Return the sets widened on each side by a share of the magnitude of their ends."""
    lo, hi = (end.astype(wide_storage(dtype)) for end in (s.lo, s.hi))
    below, above = (
        np.where(np.isfinite(end), end + sign * share * np.abs(end), end)
        for end, sign in ((lo, -1), (hi, 1))
    )
    return within(s, below, above, dtype)


def _holds_small(s: Sets, dtype: DType, tiny: Mask | None) -> Mask:
    least = s.lo.dtype.type(2.0**dtype.format.emin)
    small = (s.lo < least) & (s.hi > -least) & ((s.lo != 0) | (s.hi != 0))
    if tiny is not None:
        small = small | (tiny & (s.lo <= least) & (s.hi >= -least))
    return np.asarray(small)


def _magnitudes(s: Sets) -> tuple[Array, Array]:
    """Return the least magnitude above zero, and the largest, as float64."""
    ends = [np.abs(end).astype(np.float64) for end in (s.lo, s.hi)]
    form = STORED[s.lo.dtype].format
    has_zero = (np.signbit(s.lo) != np.signbit(s.hi)) | (np.minimum(*ends) == 0)
    return np.where(has_zero, float(form.finite(1)), np.minimum(*ends)), np.maximum(*ends)


def _product_is_tiny(a: Array, b: Array, emin: int) -> Mask:
    """Compare exact products with 2^emin, by their fractions."""
    (x, i), (y, j) = np.frexp(a), np.frexp(b)
    product = x * y
    x_high, y_high = (SPLIT * v - (SPLIT * v - v) for v in (x, y))
    x_low, y_low = x - x_high, y - y_high
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    limit = np.ldexp(1.0, np.clip(emin - i - j, -3, 2))
    return np.asarray((product < limit) | ((product == limit) & (rest < 0)))

"""Rewrite rules for index arithmetic and conditions: by min_max, or by algebra without wrap."""

from __future__ import annotations

from functools import reduce
from typing import cast

from uop.compiler.rewriting.fold import fold_constants
from uop.compiler.rewriting.patterns import int_value, rules_of_table, truth
from uop.compiler.rewriting.rewrite import rewrites
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

INDICES = range(int(dtypes.index.min), int(dtypes.index.max) + 1)
Terms = dict[UOp, int]
"""A sum: nodes with their factors. A node is no sum, no constant, and no product with a constant.
"""

MOST_CONDITIONS = 16
"""A conjunction of more conditions is left as it is: all pairs are compared."""


def bounds(u: UOp) -> tuple[int, int]:
    """The interval of an index."""
    assert u.min_max is not None
    return int(u.min_max.min), int(u.min_max.max)


def fits(*values: int) -> bool:
    """Whether dtype index holds all these numbers."""
    return all(v in INDICES for v in values)


def linear_form(u: UOp) -> tuple[Terms, int]:
    """An index as the sum of terms times factors, and a constant."""
    terms: Terms = {}
    offset = 0
    work = [(u, 1)]
    while work:
        x, factor = work.pop()
        match x.op, x.src:
            case Op.CONST, _:
                offset += factor * cast(int, int_value(x))
            case Op.ADD, (a, b):
                work += [(b, factor), (a, factor)]
            case Op.SUB, (a, b):
                work += [(b, -factor), (a, factor)]
            case Op.NEG, (a,):
                work.append((a, -factor))
            case Op.MUL, (a, b) if (c := int_value(b)) is not None:
                work.append((a, factor * c))
            case Op.MUL, (a, b) if (c := int_value(a)) is not None:
                work.append((b, factor * c))
            case _:
                terms[x] = terms.get(x, 0) + factor
    return {x: c for x, c in terms.items() if c}, offset


def total(terms: Terms, offset: int) -> UOp:
    """Build a sum: the terms in their order, the constant last."""
    parts = [x if c == 1 else UOp(Op.MUL, x, index_const(c)) for x, c in terms.items()]
    if offset or not parts:
        parts.append(index_const(offset))
    result = parts[0]
    for part in parts[1:]:
        result = UOp(Op.ADD, result, part)
    return result


@rewrites(
    *(Op.ADD, Op.MUL, Op.SUB, Op.NEG, Op.MAX, Op.IDIV, Op.MOD),
    *(Op.CMPLT, Op.CMPNE, Op.WHERE),
)
def decided_by_interval(u: UOp) -> UOp | None:
    """An index or a condition whose interval is one value -> that value."""
    if u.dtype not in (dtypes.index, dtypes.bool) or u.shape != ():
        return None
    interval = u.min_max
    if interval is None or not interval.is_single:
        return None
    return const(interval.min, u.dtype)


@rewrites(Op.ADD, Op.SUB, Op.NEG, Op.MUL)
def collect_terms(u: UOp) -> UOp | None:
    """Collect equal terms of a sum of indices, x//c * c + x%c as x, and the constants, last."""
    if u.dtype is not dtypes.index or u.shape != ():
        return None
    terms, offset = linear_form(u)
    while _rejoin(terms):
        pass
    if not fits(offset, *terms.values()):
        return None
    after = total(terms, offset)
    return None if after is u else after


def _rejoin(terms: Terms) -> bool:
    """One step of k*c*(x//c) + k*(x%c) -> k*x, and of k*a*((x//a)%b) + k*(x%a) -> k*(x % (a*b)).

    In the first c may be any index.
    """
    for low, k in terms.items():
        if low.op is not Op.MOD:
            continue
        for high, factor in terms.items():
            joined = None if high is low else _joined(high, factor, low, k)
            if joined is not None:
                del terms[low], terms[high]
                terms[joined] = terms.get(joined, 0) + k
                if not terms[joined]:
                    del terms[joined]
                return True
    return False


def _joined(high: UOp, factor: int, low: UOp, k: int) -> UOp | None:
    """Return y with factor * high + k * low = k * y; None if there is none.

    `low` is x % c. `high` is x//c * c, or x//c or (x//c) % b where c is a number.
    """
    x, c = low.src
    if high.op is Op.MUL and high.src[0].op is Op.IDIV and factor == k:
        return x if high.src[0].src == low.src and high.src[1] is c else None
    a = int_value(c)
    if a is None or a <= 0 or factor != k * a:
        return None
    if _is_quotient(high, x, a):
        return x
    if high.op is Op.MOD and (b := int_value(high.src[1])) and _is_quotient(high.src[0], x, a):
        return UOp(Op.MOD, x, index_const(a * b)) if b > 0 and fits(a * b) else None
    return None


def _is_quotient(u: UOp, x: UOp, a: int) -> bool:
    if u.op is not Op.IDIV or (c := int_value(u.src[1])) is None:
        return False
    # x may itself be y // c: then y // (c * a) is x // a.
    if u.src[0] is x:
        return c == a
    return (
        x.op is Op.IDIV
        and u.src[0] is x.src[0]
        and (inner := int_value(x.src[1])) is not None
        and inner > 0
        and c == inner * a
    )


@rewrites(Op.IDIV)
def divide_terms(u: UOp) -> UOp | None:
    """(q*c + r) // c -> q + r//c for c > 0, also in each factor; r may have either sign."""
    if u.dtype is not dtypes.index or (c := int_value(u.src[1])) is None or c <= 0:
        return None
    quotient, rest = _split(u.src[0], c)
    if quotient is None:
        return None
    return UOp(Op.ADD, quotient, UOp(Op.IDIV, rest, index_const(c)))


@rewrites(Op.MOD)
def reduce_terms(u: UOp) -> UOp | None:
    """(q*c + r) % c -> r % c for c > 0, also in each factor, and r itself if it is reduced."""
    if u.dtype is not dtypes.index or (c := int_value(u.src[1])) is None or c <= 0:
        return None
    low, high = bounds(u.src[0])
    if low >= 0 and high < c:
        return u.src[0]
    quotient, rest = _split(u.src[0], c)
    return None if quotient is None else UOp(Op.MOD, rest, index_const(c))


def _split(x: UOp, c: int) -> tuple[UOp | None, UOp]:
    """x as (q, r) with x = c * q + r, where r has smaller factors; q is None if they were small."""
    terms, offset = linear_form(x)
    whole = {t: abs(k) // c * (1 if k > 0 else -1) for t, k in terms.items() if abs(k) >= c}
    rest = {t: left for t, k in terms.items() if (left := k - c * whole.get(t, 0))}
    if not (whole or offset // c) or not fits(offset, *terms.values()):
        return None, x
    return total(whole, offset // c), total(rest, offset % c)


@rewrites(Op.CMPLT)
def compare_terms(u: UOp) -> UOp | None:
    """x + c < d -> x < d - c, and c < x + d -> c - d < x, so that equal gates become one node."""
    a, b = u.src
    if a.dtype is not dtypes.index or u.shape != ():
        return None
    x, y = int_value(a), int_value(b)
    if (x is None) is (y is None):
        return None
    terms, offset = linear_form(a if x is None else b)
    bound = (y if x is None else x) or 0
    if not offset or not fits(bound - offset, *terms.values()):
        return None
    moved, rest = index_const(bound - offset), total(terms, 0)
    return UOp(Op.CMPLT, rest, moved) if x is None else UOp(Op.CMPLT, moved, rest)


@rewrites(Op.AND)
def drop_weaker_bound(u: UOp) -> UOp | None:
    """x < 3 & x < 5 -> x < 3, in any conjunction of few conditions."""
    if u.dtype is not dtypes.bool or u.shape != ():
        return None
    a, b = map(conjuncts, u.src)
    left = [c for c in a if not _follows(c, b)]
    right = [c for c in b if not _follows(c, a)] if len(left) == len(a) else b
    if len(left) + len(right) == len(a) + len(b):
        return None
    return reduce(lambda p, q: UOp(Op.AND, p, q), [*left, *right])


def conjuncts(u: UOp) -> list[UOp]:
    """The conditions of a conjunction; itself if there are many."""
    found, work = list[UOp](), [u]
    while work and len(found) + len(work) <= MOST_CONDITIONS:
        x = work.pop()
        if x.op is Op.AND:
            work += reversed(x.src)
        else:
            found.append(x)
    return [u] if work else found


def _follows(c: UOp, conditions: list[UOp]) -> bool:
    """Whether a condition is one of these, or a weaker bound of what one of them bounds."""
    if c in conditions:
        return True
    for other in conditions if c.op is Op.CMPLT else ():
        for side, sign in ((0, 1), (1, -1)):
            if other.op is Op.CMPLT and c.src[side] is other.src[side]:
                mine, its = int_value(c.src[1 - side]), int_value(other.src[1 - side])
                if mine is not None and its is not None and sign * its <= sign * mine:
                    return True
    return False


@rewrites(Op.WHERE)
def choose_both(u: UOp) -> UOp | None:
    """WHERE(p, q, false) -> p & q if q is made of counters. One made of data may be UNSPECIFIED
    where p is false.
    """
    p, a, b = u.src
    if truth(b) is not False or p.shape != u.shape:
        return None
    return UOp(Op.AND, p, a) if a.shape == () and all(map(_bounds_index, conjuncts(a))) else None


def _bounds_index(u: UOp) -> bool:
    """Whether a condition compares sums of counters and sizes with a number."""
    if u.op is not Op.CMPLT or u.src[0].dtype is not dtypes.index:
        return False
    counted = (x for side in u.src for x in linear_form(side)[0])
    return all(x.op in (Op.RANGE, Op.SPECIAL, Op.PARAM) for x in counted)


@rewrites(Op.WHERE)
def choose_like_a_gate(u: UOp) -> UOp | None:
    """WHERE(p, LOAD(i, b, p & q), b) -> LOAD(i, b, p & q): the gate already selects."""
    p, a, b = u.src
    if a.op is not Op.LOAD or len(a.src) < 3 or a.src[1] is not b:
        return None
    gate = conjuncts(a.src[2])
    return a if a.src[2] is p or all(_follows(c, gate) for c in conjuncts(p)) else None


@rewrites(Op.LOAD)
def read_once(u: UOp) -> UOp | None:
    """LOAD(i, b, p) -> WHERE(p, LOAD(i), b) if b reads LOAD(i) anyway."""
    if len(u.src) < 3:
        return None
    place, b, p = u.src
    read = next((s for s in b.src if s.op is Op.LOAD and s.src == (place,)), None)
    return None if read is None else UOp(Op.WHERE, p, read, b)


SIMPLIFY = rules_of_table(
    "simplify",
    fold_constants,
    decided_by_interval,
    collect_terms,
    divide_terms,
    reduce_terms,
    compare_terms,
    drop_weaker_bound,
    choose_both,
    choose_like_a_gate,
    read_once,
)

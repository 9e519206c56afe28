"""Counters of a kernel, and an oracle of index arithmetic on them in Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from uop.spec.args import ConstArg, RangeArg, SpecialArg
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

G = UOp(Op.SPECIAL, index_const(24), arg=SpecialArg("gidx0"))
R = UOp(Op.RANGE, index_const(5), arg=RangeArg(0))
PLACES = list(itertools.product(range(24), range(5)))
MEANING: Mapping[Op, Callable[..., int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.NEG: lambda a: -a,
    Op.MAX: max,
    Op.IDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b,
    Op.CMPLT: lambda a, b: a < b,
    Op.CMPNE: lambda a, b: a != b,
    Op.AND: lambda a, b: a and b,
    Op.WHERE: lambda p, a, b: a if p else b,
    Op.CAST: lambda a: a,
}


def value(root: UOp, g: int, r: int) -> int:
    """An oracle in Python's integers."""
    at: dict[UOp, int] = {G: g, R: r}
    for u in root.toposort():
        if isinstance(u.arg, ConstArg):
            at[u] = int(u.arg.value)
        elif u not in at:
            at[u] = int(MEANING[u.op](*(at[s] for s in u.src)))
    return at[root]

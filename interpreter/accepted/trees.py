"""Regroup sums and products where a profile allows it: a tree is a REDUCE of its leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.accepted.rules.floats import negative
from uop.interpreter.accepted.rules.folds import folded
from uop.interpreter.accepted.sets import Sets, together, united
from uop.interpreter.values import either
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node

if TYPE_CHECKING:
    from uop.spec.uop import UOp

KINDS = {Op.ADD: Op.ADD, Op.SUB: Op.ADD, Op.MUL: Op.MUL}
"""The op of the tree that a node belongs to: a difference is a sum with a negated operand."""

AtResult = Callable[[int, Sets], Sets]
"""Aligns the sets of the operand of a number with the result."""


class Trees:
    """The leaves of the maximal trees of one op, over values that are used once."""

    def __init__(self, root: UOp, profile: Profile) -> None:
        self._profile = profile
        nodes: list[Node] = list(root.toposort()) if profile.reassociate else []
        # A LINEAR lists its nodes, which is not a use of them.
        self._uses = Counter(s for u in nodes if u.op is not Op.LINEAR for s in u.src)
        self._leaves: dict[Node, list[Sets]] = {}

    def regrouped(self, u: Node, operands: list[Sets], result: Sets, at_result: AtResult) -> Sets:
        """Return the result of an op joined with the results of its regrouped tree."""
        if KINDS.get(u.op) not in self._profile.reassociate or not u.dtype.is_float:
            return result
        leaves: list[Sets] = []
        for k, (s, operand) in enumerate(zip(u.src, operands, strict=True)):
            continues = self._uses[s] == 1 and KINDS.get(s.op) is KINDS[u.op]
            inside = self._leaves.get(s, []) if continues else []
            own = [at_result(k, leaf) for leaf in inside or [operand]]
            leaves += map(negative, own) if u.op is Op.SUB and k else own
        self._leaves[u] = leaves
        if len(leaves) < 3:
            return result
        shape = result.lo.shape or (1,)
        spread = [s.map(lambda a: np.broadcast_to(a, shape)) for s in leaves]
        terms = together(spread, lambda parts: np.stack(parts))
        sums = folded(KINDS[u.op], u.dtype, self._profile, terms)
        sums = sums.map(lambda a: a.reshape(result.lo.shape))
        return replace(
            united(result, sums), any=either(result.any, sums.any), invalid=result.invalid
        )

"""Builds the instruction list of a LINEAR and tracks which instructions are in scope."""

from __future__ import annotations

from uop.spec.ops.names import Op
from uop.spec.uop import UOp

BLOCK_STARTS = (Op.RANGE, Op.IF)
BLOCK_ENDS = (Op.END, Op.ENDIF)


class Listing:
    """RANGE and IF open a block; instructions inside are in scope until its END or ENDIF."""

    def __init__(self) -> None:
        self.instructions: list[UOp] = []
        self._blocks: list[set[UOp]] = [set()]

    def __contains__(self, u: UOp) -> bool:
        return any(u in block for block in self._blocks)

    def add(self, u: UOp) -> None:
        if u.op in BLOCK_ENDS and len(self._blocks) > 1:
            self._blocks.pop()
        self.instructions.append(u)
        self._blocks[-1].add(u)
        if u.op in BLOCK_STARTS:
            self._blocks.append(set())

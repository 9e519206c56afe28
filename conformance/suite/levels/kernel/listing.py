"""Write a LINEAR statement by statement, each after the instructions that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import toposort


class Listing:
    """A LINEAR under construction; values that a block computes do not exist after it."""

    def __init__(self) -> None:
        self._order: list[UOp] = []
        self._values: list[set[UOp]] = [set()]
        self._effects: set[UOp] = set()
        self._last: UOp | None = None

    @property
    def body(self) -> UOp:
        return UOp(Op.LINEAR, *self._order)

    def do(self, effect: UOp) -> UOp:
        """List a statement, after its operands that neither this block nor an outer one lists."""
        for u in toposort([effect], lambda u: () if self._is_listed(u) else u.src):
            if not self._is_listed(u):
                self._order.append(u)
                (self._effects if u.dtype is dtypes.void else self._values[-1]).add(u)
        if effect.dtype is dtypes.void:
            self._last = effect
        return effect

    def now(self, place: UOp) -> UOp:
        """Return a new node for a place: a read of it differs from earlier reads."""
        return place if self._last is None else UOp(Op.AFTER, place, self._last)

    def barrier(self) -> None:
        self.do(UOp(Op.BARRIER, *([] if self._last is None else [self._last])))

    @contextmanager
    def where(self, gate: UOp) -> Iterator[None]:
        """Open a block for the work items where the gate is true; each IF is a node of its own."""
        start = self.do(UOp(Op.IF, gate, tag=str(len(self._order))))
        with self._block():
            yield
        self._close(UOp(Op.ENDIF, start))

    @contextmanager
    def each(self, counter: UOp) -> Iterator[None]:
        """Open the body of a loop, which must hold a statement."""
        self.do(counter)
        with self._block():
            yield
        assert self._last is not None
        self._close(UOp(Op.END, self._last, counter))

    @contextmanager
    def _block(self) -> Iterator[None]:
        self._values.append(set())
        yield
        self._values.pop()

    def _close(self, end: UOp) -> None:
        self._order.append(end)
        self._effects.add(end)
        self._last = end

    def _is_listed(self, u: UOp) -> bool:
        return u in self._effects or any(u in values for values in self._values)

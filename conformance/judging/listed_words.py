"""Writes a program without CONST, and without bools as inputs, for a backend that lists neither."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from uop.conformance.protocol.types import Hello
from uop.conformance.suite.case import Batch
from uop.interpreter.numeric.storage import Array, constant, np_dtype
from uop.spec.args import ConstArg
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.graph import outside, replaced, slot_of, slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, param

COMPARES = (Op.CMPLT, Op.CMPNE, Op.CMPGT)
"""Ops that make a bool of two numbers."""


def in_listed_words(
    root: UOp, batches: Sequence[Batch], hello: Hello
) -> tuple[UOp, tuple[Batch, ...]]:
    """The same values with the inputs that the program reads.

    A CONST becomes an input where CONST is not listed, and a bool that is given a comparison of two
    numbers where bool is not. Inside a FUNCTION nothing changes.
    """
    writer = _Writer(hello, [dict(batch.inputs) for batch in batches], slots_of(root))
    new = {u: said for u in outside(root) if (said := writer.said(u)) is not None}
    made = replaced(root, new) if new else root
    used = slots_of(made).keys()
    return made, tuple(
        Batch({slot: a for slot, a in inputs.items() if slot in used}) for inputs in writer.batches
    )


class _Writer:
    """Says a node in words of a backend, with further inputs in each batch where it needs some."""

    def __init__(
        self, hello: Hello, batches: list[dict[int, Array]], taken: Collection[int]
    ) -> None:
        self.batches = batches
        given = (slot for inputs in batches for slot in inputs)
        self.next_slot = 1 + max((*taken, *given), default=-1)
        self.has_constants = Op.CONST.name in hello.ops
        self.has_bools = dtypes.bool.name in hello.dtypes
        self.compare = next((op for op in COMPARES if op.name in hello.ops), None)
        listed = [DTYPES[name] for name in sorted(hello.dtypes & DTYPES.keys())]
        self.number = next((d for d in listed if d.is_int or d.is_float), None)

    def said(self, u: UOp) -> UOp | None:
        """The node in other words; None for one that stays as it is."""
        is_given = u.op is Op.CONST or (
            u.op is Op.PARAM and u.addrspace is None and u.device is None
        )
        if is_given and u.dtype is dtypes.bool and not self.has_bools:
            return self._compared(u)
        if u.op is Op.CONST and u.dtype is not dtypes.index and not self.has_constants:
            return self._input((), u.dtype, [_value(u)] * len(self.batches))
        return None

    def _compared(self, u: UOp) -> UOp | None:
        """A comparison that is true where the bool is: of one with zero."""
        if self.compare is None or self.number is None:
            return None
        kind = np_dtype(self.number)
        if u.op is Op.CONST:
            given = [_value(u)] * len(self.batches)
        else:
            given = [inputs[slot_of(u)] for inputs in self.batches]
        if u.op is Op.CONST and self.has_constants:
            one, zero = const(int(_value(u)), self.number), const(0, self.number)
        else:
            one = self._input(u.shape, self.number, [a.astype(kind) for a in given])
            zero = self._input((), self.number, [np.zeros((), kind) for _ in given])
        operands = (zero, one) if self.compare is Op.CMPLT else (one, zero)
        return UOp(self.compare, *operands)

    def _input(self, shape: Shape, dtype: DType, data: Sequence[Array]) -> UOp:
        slot = self.next_slot
        self.next_slot += 1
        for inputs, array in zip(self.batches, data, strict=True):
            inputs[slot] = array
        return param(slot, shape, dtype)


def _value(u: UOp) -> Array:
    return constant(cast(ConstArg, u.arg).bits, u.dtype)

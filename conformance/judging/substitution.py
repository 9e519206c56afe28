"""Replaces CONSTs and bool inputs of a program for backends that do not list them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
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
"""Comparisons that can replace a bool, in order of preference."""


def substitute_unlisted(
    root: UOp, batches: Sequence[Batch], hello: Hello
) -> tuple[UOp, tuple[Batch, ...]]:
    """Rewrite a program to an equal one, and return it with its inputs.

    A CONST becomes an input if CONST is not listed. A bool CONST or input becomes a comparison
    of two numbers if bool is not listed. Bodies of FUNCTIONs do not change.
    """
    rewrite = _Substitution(hello, [dict(batch.inputs) for batch in batches], slots_of(root))
    new = {u: other for u in outside(root) if (other := rewrite.replacement(u)) is not None}
    rewritten = replaced(root, new) if new else root
    used = slots_of(rewritten).keys()
    return rewritten, tuple(
        Batch({slot: a for slot, a in inputs.items() if slot in used}) for inputs in rewrite.batches
    )


class _Substitution:
    """Replaces single nodes, and adds the inputs of the replacements to each batch."""

    def __init__(
        self, hello: Hello, batches: list[dict[int, Array]], slots: Collection[int]
    ) -> None:
        self.batches = batches
        self.next_slot = 1 + max(chain(slots, *batches), default=-1)
        self.hello = hello
        self.has_bools = dtypes.bool.name in hello.dtypes
        listed = [DTYPES[name] for name in sorted(hello.dtypes & DTYPES.keys())]
        numbers = [d for d in listed if d.is_int or d.is_float]
        pairs = ((op, d) for op in COMPARES for d in numbers if hello.takes(op.name, d.name))
        self.comparison = next(pairs, None)

    def _has_constant(self, dtype: DType) -> bool:
        return self.hello.takes(Op.CONST.name, dtype.name)

    def replacement(self, u: UOp) -> UOp | None:
        """The replacement of a node; None if it does not change."""
        is_input = u.op is Op.PARAM and u.addrspace is None and u.device is None
        if u.op is not Op.CONST and not is_input:
            return None
        if u.dtype is dtypes.bool and not self.has_bools:
            return self._comparison(u)
        if u.op is Op.CONST and u.dtype is not dtypes.index and not self._has_constant(u.dtype):
            return self._input((), u.dtype, [_value(u)] * len(self.batches))
        return None

    def _comparison(self, u: UOp) -> UOp | None:
        """A comparison of a number with zero that equals the bool; None if none is listed."""
        if self.comparison is None:
            return None
        compare, of = self.comparison
        if u.op is Op.CONST and self._has_constant(of):
            number, zero = const(int(_value(u)), of), const(0, of)
        else:
            is_constant, kind = u.op is Op.CONST, np_dtype(of)
            data = [_value(u) if is_constant else inputs[slot_of(u)] for inputs in self.batches]
            number = self._input(u.shape, of, [a.astype(kind) for a in data])
            zero = self._input((), of, [np.zeros((), kind) for _ in data])
        operands = (zero, number) if compare is Op.CMPLT else (number, zero)
        return UOp(compare, *operands)

    def _input(self, shape: Shape, dtype: DType, data: Sequence[Array]) -> UOp:
        slot = self.next_slot
        self.next_slot += 1
        for inputs, array in zip(self.batches, data, strict=True):
            inputs[slot] = array
        return param(slot, shape, dtype)


def _value(u: UOp) -> Array:
    return constant(cast(ConstArg, u.arg).bits, u.dtype)

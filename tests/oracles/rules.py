"""Runs the interpreter's rule of one op on arrays, without a graph; a warning is an error."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from oracles.exact import any_nan

import uop.interpreter.rules.decomposed
import uop.interpreter.rules.elementwise  # noqa: F401 - enters the rules
from uop.interpreter.numeric.storage import BITS, from_bits, to_bits
from uop.interpreter.rules.table import RULES, UNSPECIFIED
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op

Array = npt.NDArray[Any]
COMPARISONS = {Op.CMPLT, Op.CMPNE, Op.CMPGT, Op.CMPGE, Op.CMPLE, Op.CMPEQ}


@dataclass(frozen=True)
class Node:
    """What a rule asks of its node."""

    dtype: DType
    src: tuple[Node, ...] = ()
    arg: object = None


def run(op: Op, dtype: DType, *operands: Array, to: DType | None = None) -> Array:
    """The op on operands of one dtype; `to` is the dtype of the result where it is another."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.asarray(RULES[op](_node(op, dtype, len(operands), to), *operands))


def run_bits(op: Op, dtype: DType, *patterns: list[int]) -> list[int | None]:
    """Floats in and out as bits, None for any NaN."""
    result = run(op, dtype, *(array(dtype, bits) for bits in patterns))
    found = to_bits(result).tolist()
    table = {bits: any_nan(dtype, bits) for bits in set(found)}
    return [table[bits] for bits in found]


def open_elements(op: Op, dtype: DType, *operands: Array, to: DType | None = None) -> Array | None:
    """The mask of elements to which the spec gives no value."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        mask = UNSPECIFIED[op](_node(op, dtype, len(operands), to), *operands)
        return None if mask is None else np.asarray(mask)


def array(dtype: DType, patterns: list[int]) -> Array:
    """The values of bit patterns."""
    return from_bits(np.array(patterns, BITS[dtype.itemsize]), dtype)


def values(dtype: DType, patterns: list[int]) -> list[Any]:
    """The same values as Python numbers, by the spec's own decode."""
    table = {bits: dtype.decode(bits) for bits in set(patterns)}
    return [table[bits] for bits in patterns]


def _node(op: Op, dtype: DType, arity: int, to: DType | None) -> Node:
    result = to or (dtypes.bool if op in COMPARISONS else dtype)
    return Node(result, tuple(Node(dtype) for _ in range(arity)))

"""Define the meaning of WMMA, and register that of the ops a program knows by name only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.kernel.fragments import fragments_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.rules.table import evaluates
from uop.spec.args import CustomArg, CustomFunctionArg, InsArg, WmmaArg, arg_of
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp

Meaning = Callable[..., Array]
"""From the arrays of the operands to that of the result, for all work items at once: leading axes
are lanes, behind them stands the shape of the node."""


@dataclass(frozen=True, slots=True)
class CustomFunction:
    """A function that a CALL runs on whole buffers.

    `meaning(buffers, *meta)` takes the flat contents of every argument and the numbers in the
    node's arg. It returns the new contents of the buffers at the positions `writes`, in that order.
    These are unspecified where any element of the buffers at the positions `reads` is.
    """

    meaning: Callable[..., Sequence[Array]]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


INSTRUCTIONS: dict[str, Meaning] = {}
CUSTOM: dict[str, Meaning] = {}
CUSTOM_FUNCTIONS: dict[str, CustomFunction] = {}

TF32_BITS = np.uint32(0xFFFFE000)
"""The bits of a float32 that a matrix instruction reads: sign, exponent and 10 fraction bits."""


def _registers(table: dict[str, Meaning], name: str) -> Callable[[Meaning], Meaning]:
    def register(meaning: Meaning) -> Meaning:
        _only_once(table, name)
        table[name] = meaning
        return meaning

    return register


def _only_once(table: Mapping[str, object], name: str) -> None:
    if name in table:
        raise ValueError(f"two meanings of {name!r}")


def instruction(name: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of the INS of this name."""
    return _registers(INSTRUCTIONS, name)


def custom(fmt: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of the CUSTOM of this text."""
    return _registers(CUSTOM, fmt)


def custom_function(
    name: str, *, reads: tuple[int, ...], writes: tuple[int, ...]
) -> Callable[[Callable[..., Sequence[Array]]], Callable[..., Sequence[Array]]]:
    """Register a function as the meaning of the CUSTOMFUNCTION of this name."""

    def register(meaning: Callable[..., Sequence[Array]]) -> Callable[..., Sequence[Array]]:
        _only_once(CUSTOM_FUNCTIONS, name)
        CUSTOM_FUNCTIONS[name] = CustomFunction(meaning, reads, writes)
        return meaning

    return register


def meaning_of(u: UOp) -> Meaning:
    """Return the meaning of an INS or CUSTOM; raise LackingError if none is registered."""
    if u.op is Op.INS:
        name, table = arg_of(u, InsArg).name, INSTRUCTIONS
    else:
        name, table = arg_of(u, CustomArg).fmt, CUSTOM
    if name not in table:
        raise lacking(f"{u.op.name}.n1", f"{name!r} has no registered meaning", u)
    return table[name]


def custom_function_of(u: UOp) -> CustomFunction:
    """Return the function of a CUSTOMFUNCTION; raise LackingError if none is registered."""
    name = arg_of(u, CustomFunctionArg).name
    if name not in CUSTOM_FUNCTIONS:
        raise lacking("CUSTOMFUNCTION.n1", f"{name!r} has no registered meaning", u)
    return CUSTOM_FUNCTIONS[name]


@evaluates(Op.WMMA)
def wmma(u: UOp, a: Array, b: Array, acc: Array) -> Array:
    """Compute WMMA on fragments, whose last two axes are lane and element.

    Products are exact and are added from left to right, each sum rounded once (D-067). A sum in
    float64 rounds to at most 24 bits as the exact sum does.
    """
    arg = arg_of(u, WmmaArg)
    maps = fragments_of(arg)
    left, right = maps.a.gather(wmma_factors(arg, a)), maps.b.gather(wmma_factors(arg, b))
    total = maps.acc.gather(acc)
    for k in range(arg.k):
        product = left[..., :, k, None] * right[..., None, k, :]
        total = (total.astype(np.float64) + product).astype(np_dtype(arg.dtype_out))
    return maps.acc.scatter(total)


def wmma_factors(arg: WmmaArg, fragments: Array) -> Array:
    """Return the bits of the factors that a matrix instruction reads."""
    if arg.dtype_in is dtypes.float32:
        bits = np.ascontiguousarray(fragments).view(np.uint32) & TF32_BITS
        fragments = bits.view(np.float32)
    return fragments.astype(np.float64)


@instruction("mul_hi")
def mul_hi(u: UOp, a: Array, b: Array) -> Array:
    """Return the upper half of the product of two uint32."""
    return (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)


@instruction("popcount")
def popcount(u: UOp, a: Array) -> Array:
    return np.bitwise_count(a).astype(np_dtype(u.dtype))


@instruction("clz")
def clz(u: UOp, a: Array) -> Array:
    """Count the zeros above the highest set bit."""
    bits = a.dtype.itemsize * 8
    zeros = np.zeros(a.shape, np.int64)
    for shift in range(bits):
        zeros += (a >> a.dtype.type(shift)) == 0
    return zeros.astype(np_dtype(u.dtype))


@custom("max({0}, {1})")
def maximum(u: UOp, a: Array, b: Array) -> Array:
    """Return the larger of two integers, under the name that OpenCL and CUDA share."""
    return np.maximum(a, b)


@custom_function("copy", reads=(1,), writes=(0,))
def copy(buffers: Sequence[Array]) -> Sequence[Array]:
    """Copy the second buffer into the first."""
    return (buffers[1],)

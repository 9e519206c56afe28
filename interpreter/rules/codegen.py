"""Define the meaning of WMMA, and register that of ops which a program knows only by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.kernel.fragments import fragments_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.rules.table import evaluates
from uop.spec.args import CustomArg, CustomFunctionArg, InsArg, WmmaArg, arg_of
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.functions import CustomFunction, function_named, takes
from uop.spec.kernel.instructions import check_operands
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp

Meaning = Callable[..., Array]
"""Takes the arrays of the operands, returns that of the result, for all work items at once: the
leading axes are lanes, the others the shape of the node.
"""


INSTRUCTIONS: dict[str, Meaning] = {}
CUSTOM: dict[str, Meaning] = {}

TF32_BITS = np.uint32(0xFFFFE000)
"""The bits of a float32 that a matrix instruction reads: sign, exponent and 10 fraction bits."""


def _registers(table: dict[str, Meaning], name: str) -> Callable[[Meaning], Meaning]:
    def register(meaning: Meaning) -> Meaning:
        if name in table:
            raise ValueError(f"two meanings of {name!r}")
        table[name] = meaning
        return meaning

    return register


def instruction(name: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of the INS of this name."""
    return _registers(INSTRUCTIONS, name)


def custom(fmt: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of the CUSTOM of this text."""
    return _registers(CUSTOM, fmt)


def is_registered(u: UOp) -> bool:
    """Return whether the name of an INS, or the text of a CUSTOM, has a meaning."""
    name, table = _entry(u)
    return name in table


def meaning_of(u: UOp) -> Meaning:
    """Return the meaning of an INS or CUSTOM; raise LackingError if none fits its operands."""
    name, table = _entry(u)
    if u.op is Op.INS:
        check_operands(u)
    if name not in table:
        raise lacking(f"{u.op.name}.n1", f"{name!r} has no registered meaning", u)
    if not takes(table[name], 1 + len(u.src)):
        found = f"{name!r} has no registered meaning for {len(u.src)} operands"
        raise lacking(f"{u.op.name}.n1", found, u)
    return table[name]


def _entry(u: UOp) -> tuple[str, dict[str, Meaning]]:
    """Return what names an INS or CUSTOM, and the table of its op."""
    if u.op is Op.INS:
        return arg_of(u, InsArg).name, INSTRUCTIONS
    return arg_of(u, CustomArg).fmt, CUSTOM


def custom_function_of(u: UOp, buffers: int) -> CustomFunction:
    """Return the function of a CUSTOMFUNCTION; raise LackingError if none takes so many buffers."""
    try:
        return function_named(arg_of(u, CustomFunctionArg).name, buffers, len(u.src))
    except UnsupportedError as error:
        raise lacking("CUSTOMFUNCTION.n1", str(error), u) from None


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
    bits = np.bitwise_count(np.asarray(a).view(f"u{a.dtype.itemsize}"))
    return np.asarray(bits, np_dtype(u.dtype))


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

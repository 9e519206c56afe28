"""Vectors in OpenCL C: which ops there are, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from uop.compiler.targets.cstyle import Operation, VectorSpelling, storage
from uop.compiler.targets.target import Vectors
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

FLOATS = (dtypes.float32, dtypes.float64)
WORDS = {8: "char", 16: "short", 32: "int", 64: "long"}
SIGNS = {Kind.INT: "", Kind.UINT: "u", Kind.BOOL: "u"}
MEMORY = frozenset(DTYPES.values()) - {dtypes.void, dtypes.bool, dtypes.index}
"""A bool in memory may be any byte, which a scalar access normalises."""


def vector_type(dtype: DType, width: int) -> str:
    """float8, uchar4, ..."""
    stored = storage(dtype)
    if stored.is_float:
        return f"{'float' if stored is dtypes.float32 else 'double'}{width}"
    return f"{SIGNS[stored.kind]}{WORDS[stored.bits]}{width}"


def _infix(sign: str) -> Callable[[Operation], str]:
    """A float operator; on integers it wraps, as their bits without sign do."""

    def spelled(node: Operation) -> str:
        a, b = node.args
        if node.dtype.is_float:
            return f"{a} {sign} {b}"
        own, bits = (
            f"as_{u}{WORDS[node.dtype.bits]}{node.width}" for u in (SIGNS[node.dtype.kind], "u")
        )
        return f"{own}({bits}({a}) {sign} {bits}({b}))"

    return spelled


def _recip(node: Operation) -> str:
    return f"1 / {node.args[0]}"


def _cast(node: Operation) -> str:
    return f"convert_{vector_type(node.dtype, node.width)}({node.args[0]})"


OPS: Mapping[Op, Callable[[Operation], str]] = {
    Op.ADD: _infix("+"),
    Op.SUB: _infix("-"),
    Op.MUL: _infix("*"),
    Op.DIV: _infix("/"),
    Op.NEG: lambda node: f"-{node.args[0]}",
    Op.RECIP: _recip,
    Op.CAST: _cast,
    # A comparison is the same on every device; max and fmax differ in NaN and zeros.
    Op.MAX: lambda node: "{0} < {1} ? {1} : {0}".format(*node.args),
    Op.MIN: lambda node: "{1} < {0} ? {1} : {0}".format(*node.args),
}
EXACT = (Op.ADD, Op.SUB, Op.MUL)
"""The ops that integers have too."""
SPELLING = VectorSpelling(
    type=vector_type,
    load="vload{0}(0, {1})",
    store="vstore{0}({2}, 0, {1})",
    element=lambda vector, k: f"{vector}.s{k:x}",
    ops=OPS,
)


def _has(u: UOp) -> bool:
    if u.op is Op.CAST:
        return _converts(u.src[0].dtype, u.dtype)
    if u.op in EXACT:
        return u.dtype in MEMORY and storage(u.dtype) is u.dtype
    return u.op in OPS and u.dtype in FLOATS


def _converts(source: DType, to: DType) -> bool:
    """Whether a conversion is that of CAST: of a float to an integer it is not."""
    plain = all(d in MEMORY and storage(d) is d for d in (source, to))
    return plain and (to.is_float or not source.is_float)


VECTORS = Vectors(size=32, registers=16, widths=(2, 4, 8, 16), memory=MEMORY, has=_has)

"""Spells ops as C expressions, one per node; the dialects differ in a small table.

C types are named i8 to i64, u8 to u64, f32, f64 in every dialect. The operands of an expression are
names, and its value is assigned to a variable of the node's dtype, so that nothing is computed
wider than its dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from uop.compiler.targets.target import COPIES
from uop.spec.args import AddrSpace, WmmaArg
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.errors import DeviceLacksError
from uop.spec.ops.names import Op


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """The place of a vector in memory; it is aligned as one element."""

    type: str
    width: int
    pointer: str
    space: AddrSpace


@dataclass(frozen=True, slots=True, eq=False)
class VectorSpelling:
    """How a C language writes vectors."""

    type: Callable[[DType, int], str]
    """The type of a number of elements."""
    made: str
    """A vector of the type {0} from the elements {1}."""
    spreads: bool
    """Whether a vector is written with one element, which all its elements equal."""
    load: Callable[[VectorPlace], str]
    """A vector from memory."""
    store: Callable[[VectorPlace, str], str]
    """The statement that writes a vector to memory."""
    element: Callable[[str, int], str]
    """An element of a vector by its number."""
    ops: Mapping[Op, Callable[[Operation], str]]
    """The elementwise ops, whose operands are vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """The differences between the C languages of devices."""

    name: str
    header: str
    """The head of every source: types, and bit casts such as f32_to_bits and bits_to_f32."""
    function: str
    """The qualifiers of a helper function."""
    function_apart: str
    """Those of a function that is not inlined: a source of many kernels then builds three times
    faster.
    """
    kernel: str
    """The qualifiers and return type of a kernel."""
    pointer: str
    """The qualifier of a pointer into global memory."""
    global_id: tuple[str, str, str]
    """The global id of the work item, one expression per axis."""
    group_id: tuple[str, str, str]
    """The id of the workgroup, one expression per axis."""
    local_id: tuple[str, str, str]
    """The local id of the work item in its group, one expression per axis."""
    shared: str
    """The qualifier of an array that the work items of a group share."""
    barrier: str
    """The statement at which every work item of a group waits for all the others."""
    atomic_add: Mapping[DType, str]
    """The statement that adds {1} to the element {0}, in memory of the qualifier {2}."""
    vectors: VectorSpelling | None
    matrix: Callable[[WmmaArg], str] | None
    """The helper of a matrix instruction."""
    target: str
    """The key of its spellings in `spec/kernel/instructions.py`."""
    declarations: Mapping[str, str]
    """The declarations that come first in a source with these words."""
    helpers: str
    """Its own C helpers, besides those of the prelude."""
    opaque: str = ""
    """A function that returns its u32 unchanged, which no compiler sees through; empty if none is
    needed.
    """
    warp_barrier: str | None = None
    """The statement at which the work items of a warp wait for each other alone."""
    copy: str = ""
    """The statement that starts an asynchronous copy from {1} to {0}; empty if no device has it."""
    copied: str = ""
    """The statement that waits for the copies that a work item has started."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An elementwise node for spelling: result dtype, operand dtypes, operand names."""

    op: Op
    dtype: DType
    of: tuple[DType, ...]
    args: tuple[str, ...]
    related: bool = False
    """Whether an operand of the result's dtype is computed from another one."""
    width: int = 1
    """The number of elements of a vector."""
    is_plain: bool = False
    """Whether the operator of C computes this arithmetic on indices exactly: nothing wraps."""
    opaque: str = ""
    """The `opaque` of its dialect if a workaround needs it, else empty."""


def spell(operation: Operation) -> str:
    """The C expression of an elementwise node."""
    small = [dtype.name for dtype in operation.of if storage(dtype) is not dtype]
    if small and operation.op not in COPIES:
        raise DeviceLacksError(f"{operation.op.name} on {small[0]}: only its bits exist in C")
    if operation.op not in SPELLINGS:
        raise DeviceLacksError(f"{operation.op.name} has no spelling in C")
    return SPELLINGS[operation.op](operation)


def c_type(dtype: DType) -> str:
    """The C type of a dtype, in variables and in memory."""
    stored = storage(dtype)
    return f"{_LETTER[stored.kind]}{max(stored.bits, 8)}"


def storage(dtype: DType) -> DType:
    """The dtype of a dtype's storage in C: for small floats an unsigned integer of their bits."""
    if dtype.is_float and dtype.bits < 32:
        return dtypes.uint16 if dtype.bits == 16 else dtypes.uint8
    return dtype


@lru_cache(1 << 12)
def literal(dtype: DType, bits: int) -> str:
    """The literal of a constant: a short decimal if that is exact, else floats in hex. inf and NaN
    have no literal: they are written as a bit cast.
    """
    stored = storage(dtype)
    if not stored.is_float:
        return _int_literal(stored, int(stored.decode(bits)))
    value = float(stored.decode(bits))
    if not math.isfinite(value):
        return f"bits_to_{c_type(stored)}({bits:#x}u)"
    is_short = abs(value) < SHORT and (value * 8).is_integer()
    text = (str(value) if is_short else value.hex()) + ("f" if stored is dtypes.float32 else "")
    return f"({text})" if text.startswith("-") else text


SHORT = 1 << 20
"""Eighths below it have at most seven digits before the point and three after it."""


def _int_literal(dtype: DType, value: int) -> str:
    if dtype.is_signed and value == dtype.min:
        # The magnitude of the lowest value is outside the type, so it has no literal.
        return f"({c_type(dtype)})({value + 1} - 1)"
    if dtype is dtypes.index and fits_int(value):
        return str(value)
    return f"({c_type(dtype)}){value}{'' if dtype.is_signed else 'u'}"


def fits_int(*values: int) -> bool:
    """Whether an int of C holds the numbers; a counter may exceed its bound by the size of a
    workgroup.
    """
    return all(-(1 << 31) < v < (1 << 31) - (1 << 16) for v in values)


_LETTER = {Kind.BOOL: "u", Kind.INT: "i", Kind.UINT: "u", Kind.FLOAT: "f", Kind.INDEX: "i"}


def _unsigned(dtype: DType) -> str:
    """The unsigned C type for wrapping arithmetic; narrower ones are promoted to signed int."""
    return f"u{max(dtype.bits, 32)}"


def _infix(sign: str) -> Callable[[Operation], str]:
    """A float or wrapping integer operator; on bool the logical operator."""
    logical = {"+": "|", "*": "&"}

    def spelled(node: Operation) -> str:
        a, b = node.args
        if node.dtype.is_float or node.is_plain:
            return f"{a} {sign} {b}"
        if node.dtype is dtypes.bool:
            return f"{a} {logical[sign]} {b}"
        wide = _unsigned(node.dtype)
        return _narrowed(node, f"({wide}){a} {sign} ({wide}){b}")

    return spelled


def _narrowed(node: Operation, wide: str) -> str:
    """The result of wrapping arithmetic, from that in the type of `_unsigned`."""
    return f"({c_type(node.dtype)}){node.opaque}({wide})"


def _division(sign: str, name: str) -> Callable[[Operation], str]:
    """Division that floors: that of C where nothing is negative."""
    helper = _helper(name)
    return lambda node: f" {sign} ".join(node.args) if node.is_plain else helper(node)


def _bitwise(sign: str) -> Callable[[Operation], str]:
    return lambda node: f"({c_type(node.dtype)})({node.args[0]} {sign} {node.args[1]})"


def _compare(sign: str) -> Callable[[Operation], str]:
    return lambda node: f"{node.args[0]} {sign} {node.args[1]}"


def _helper(name: str) -> Callable[[Operation], str]:
    return lambda node: f"{name}_{c_type(node.dtype)}({', '.join(node.args)})"


def _shift(sign: str) -> Callable[[Operation], str]:
    """A shift by the lowest bits of the count: C leaves a count outside 0..bits-1 undefined."""

    def spelled(node: Operation) -> str:
        a, count = node.args
        typed = f"({_unsigned(node.dtype)}){a}" if sign == "<<" else a
        return f"({c_type(node.dtype)})({typed} {sign} ((u32){count} & {node.dtype.bits - 1}))"

    return spelled


def _extremum(name: str, inline: str) -> Callable[[Operation], str]:
    helper = _helper(name)

    def spelled(node: Operation) -> str:
        # Workaround complement-of-max: integers that are not promoted to int.
        if not node.dtype.is_float and node.dtype.bits >= 32:
            return helper(node)
        # A comparison is the same on every device; max and fmax differ in NaN and zeros.
        return inline.format(*node.args)

    return spelled


def _neg(node: Operation) -> str:
    if node.dtype.is_float:
        return f"-{node.args[0]}"
    return _narrowed(node, f"0 - ({_unsigned(node.dtype)}){node.args[0]}")


def _mulacc(node: Operation) -> str:
    a, b, c = node.args
    if node.dtype.is_float:
        return f"{a} * {b} + {c}"
    if node.dtype is dtypes.bool:
        return f"({a} & {b}) | {c}"
    wide = _unsigned(node.dtype)
    return _narrowed(node, f"({wide}){a} * ({wide}){b} + ({wide}){c}")


def _trunc(node: Operation) -> str:
    return _helper("trunc")(node) if node.dtype.is_float else node.args[0]


def _cast(node: Operation) -> str:
    (source,), (x,) = node.of, node.args
    if source is node.dtype:
        return x
    if storage(source) is not source:
        x, source = f"{source.name}_to_f32({x})", dtypes.float32
        if node.dtype is source:
            return x
    if storage(node.dtype) is not node.dtype:
        return f"f32_to_{node.dtype.name}({_to_float32(source, x)})"
    if node.dtype is dtypes.bool:
        return f"{x} != 0"
    if source.is_float and not node.dtype.is_float:
        return f"{c_type(source)}_to_{c_type(node.dtype)}({x})"
    return f"({c_type(node.dtype)}){x}"


def _to_float32(source: DType, x: str) -> str:
    """A float32 that rounds to a smaller float as the source itself would."""
    if source is dtypes.float32:
        return x
    if source is dtypes.float64:
        return f"f64_to_odd({x})"
    if source.bits <= 16:
        return f"(f32){x}"
    return f"i64_to_odd({x})" if source.is_signed else f"u64_to_odd({x})"


def _bitcast(node: Operation) -> str:
    (source,), (x,) = node.of, node.args
    if max(source.bits, 8) != max(node.dtype.bits, 8):
        raise DeviceLacksError(f"BITCAST from {source.name} to {node.dtype.name} of one element")
    if storage(source).is_float:
        x, source = f"{c_type(source)}_to_bits({x})", dtypes.uint64
    if storage(node.dtype).is_float:
        return f"bits_to_{c_type(node.dtype)}({x})"
    # A bool is 0 or 1, whatever the byte.
    return f"{x} != 0" if node.dtype is dtypes.bool else f"({c_type(node.dtype)}){x}"


def _where(node: Operation) -> str:
    gate, a, b = node.args
    if node.related and storage(node.dtype).is_float:
        # Workaround copy-or-arithmetic.
        return f"choose_{c_type(node.dtype)}({gate}, {a}, {b})"
    return f"{node.opaque}({gate}) ? {a} : {b}" if node.opaque else f"{gate} ? {a} : {b}"


SPELLINGS: dict[Op, Callable[[Operation], str]] = {
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
    Op.WHERE: _where,
    Op.ADD: _infix("+"),
    Op.MUL: _infix("*"),
    Op.SUB: _infix("-"),
    Op.DIV: _infix("/"),
    Op.NEG: _neg,
    Op.RECIP: lambda node: f"{literal(node.dtype, node.dtype.encode(1))} / {node.args[0]}",
    Op.MULACC: _mulacc,
    Op.MAX: _extremum("max", "{0} < {1} ? {1} : {0}"),
    Op.MIN: _extremum("min", "{1} < {0} ? {1} : {0}"),
    Op.TRUNC: _trunc,
    Op.IDIV: _division("/", "floor_div"),
    Op.MOD: _division("%", "floor_mod"),
    Op.SHL: _shift("<<"),
    Op.SHR: _shift(">>"),
    Op.XOR: _bitwise("^"),
    Op.OR: _bitwise("|"),
    Op.AND: _bitwise("&"),
    Op.NOT: lambda node: f"{node.args[0]} == 0",
    Op.CMPLT: _compare("<"),
    Op.CMPGT: _compare(">"),
    Op.CMPGE: _compare(">="),
    Op.CMPLE: _compare("<="),
    Op.CMPEQ: _compare("=="),
    Op.CMPNE: _compare("!="),
    **{op: _helper(op.name.lower()) for op in (Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT, Op.POW)},
    Op.THREEFRY: lambda node: f"threefry({', '.join(node.args)})",
}

"""The OpenCL C dialect with its vectors, and an OpenCL device with float64 as a target.

Helpers for vectors: memory, functions of floats, and casts of small floats as bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from uop.compiler.runtime.opencl import open_opencl
from uop.compiler.targets.c import CTarget
from uop.compiler.targets.cstyle import Dialect, Operation, VectorSpelling, literal, storage
from uop.compiler.targets.prelude import SMALL, of_small
from uop.compiler.targets.target import Vectors
from uop.spec.args import AddrSpace
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

WIDTHS = (2, 4, 8, 16)
INTEGERS = tuple(sign + word for word in ("char", "short", "int", "long") for sign in ("", "u"))
FUNCTIONS = ("exp2", "log2", "sqrt", "sin")

SPACES = {AddrSpace.GLOBAL: "global", AddrSpace.LOCAL: "local", AddrSpace.REG: "private"}
MARKS = {AddrSpace.GLOBAL: "", AddrSpace.LOCAL: "local_", AddrSpace.REG: "private_"}
"""The part of a helper's name that says its address space."""

# PoCL writes what vloadN and vstoreN do element by element where it joins work items.
MEMORY_HELPERS = """
FN {type}{n} load_{mark}{type}{n}({space} {type}* p) {{
  typedef {type}{n} unaligned __attribute__((aligned(sizeof({type}))));
  return *({space} unaligned*)p;
}}

FN void store_{mark}{type}{n}({type}{n} x, {space} {type}* p) {{
  typedef {type}{n} unaligned __attribute__((aligned(sizeof({type}))));
  *({space} unaligned*)p = x;
}}
"""

# Workaround function-of-literal-nan: a NaN does not reach the built-in function.
UNARY = """
FN {type} {name}_{type}({type} x) {{
  return x != x ? x + x : {name}(x != x ? ({type})(0) : x);
}}
"""

# Workaround sine-next-to-a-large-one: no vector with a large element, or a NaN, reaches sin.
SINE = """
FN {type} sin_{type}({type} x) {{
  return all(fabs(x) < 32768) ? sin(x) : ({type})({each});
}}
"""

# The arithmetic of the casts is that of `prelude`.
FROM_F32 = """
FN {unsigned}{n} f32_to_{name}_{n}(float{n} x) {{
  uint{n} m = as_uint{n}(x) & 0x7fffffffu;
  uint{n} sign = as_uint{n}(x) >> 31 << {sign_shift};
  uint{n} low = as_uint{n}(as_float{n}(m) + as_float({magic:#x}u)) - {magic:#x}u;
  uint{n} high = ((m + {half:#x}u + ((m >> {shift}) & 1u)) >> {shift}) - {rebias:#x}u;
  uint{n} rounded = m < {smallest_normal:#x}u ? low : high;
  uint{n} bounded = rounded > {largest:#x}u ? (uint{n})({overflow:#x}u) : rounded;
  return convert_{unsigned}{n}(sign | (m > 0x7f800000u ? (uint{n})({nan:#x}u) : bounded));
}}
"""

TO_F32 = """
FN float{n} {name}_to_f32_{n}({unsigned}{n} x) {{
  uint{n} m = convert_uint{n}(x) & {magnitude:#x}u;
  uint{n} sign = convert_uint{n}(x) >> {sign_shift} << 31;
  uint{n} ordinary = as_uint{n}(as_float{n}(m << {shift}) * as_float({scale:#x}u));
  uint{n} special = 0x7f800000u | (m & {fraction:#x}u) << {shift};
  return as_float{n}(sign | (m > {largest:#x}u ? special : ordinary));
}}
"""


def _cast_helper(template: str, dtype: DType, width: int) -> str:
    numbers = of_small(dtype) | {"unsigned": "ushort" if dtype.bits == 16 else "uchar"}
    return template.format(n=width, **numbers)


def _sine(type: str, scalar: str, width: int) -> str:
    each = ", ".join(f"sin_{scalar}(x.s{k:x})" for k in range(width))
    return SINE.format(type=f"{type}{width}", each=each)


HELPERS = "\n\n".join(
    [
        MEMORY_HELPERS.format(type=t, n=n, space=SPACES[space], mark=MARKS[space])
        for space in SPACES
        for t in (*INTEGERS, "float", "double")
        for n in WIDTHS
    ]
    + [
        UNARY.format(type=f"{type}{n}", name=name)
        for type in ("float", "double")
        for name in FUNCTIONS[:-1]
        for n in WIDTHS
    ]
    + [_sine(*types, n) for types in (("float", "f32"), ("double", "f64")) for n in WIDTHS]
    + [_cast_helper(t, dtype, n) for t in (FROM_F32, TO_F32) for dtype in SMALL for n in WIDTHS]
)


FLOATS = (dtypes.float32, dtypes.float64)
WORDS = {1: "char", 8: "char", 16: "short", 32: "int", 64: "long"}
SIGNS = {Kind.INT: "", Kind.UINT: "u", Kind.BOOL: "u"}
MEMORY = frozenset(DTYPES.values()) - {dtypes.void, dtypes.bool, dtypes.index}
"""The dtypes of vectors in memory. A bool there may be any byte, which only a scalar access
normalises.
"""


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


def _cast(node: Operation) -> str:
    (source,), (x,) = node.of, node.args
    if storage(source) is not source:
        return f"{source.name}_to_f32_{node.width}({x})"
    if storage(node.dtype) is not node.dtype:
        return f"f32_to_{node.dtype.name}_{node.width}({x})"
    return f"convert_{vector_type(node.dtype, node.width)}({x})"


def _function(name: str) -> Callable[[Operation], str]:
    return lambda node: f"{name}_{vector_type(node.dtype, node.width)}({node.args[0]})"


def _compare(sign: str) -> Callable[[Operation], str]:
    """A comparison gives -1 for true, as wide as its operands; a bool is 1."""
    return lambda node: f"convert_uchar{node.width}(({node.args[0]} {sign} {node.args[1]}) & 1)"


def _where(node: Operation) -> str:
    """The mask is as wide as the elements that it chooses between."""
    gate, a, b = node.args
    mask = f"{WORDS[8 * storage(node.dtype).itemsize]}{node.width}"
    return f"convert_{mask}({gate}) != ({mask})(0) ? {a} : {b}"


def _bitwise(sign: str) -> Callable[[Operation], str]:
    return lambda node: f"{node.args[0]} {sign} {node.args[1]}"


OPS: Mapping[Op, Callable[[Operation], str]] = {
    Op.ADD: _infix("+"),
    Op.SUB: _infix("-"),
    Op.MUL: _infix("*"),
    Op.DIV: _infix("/"),
    Op.NEG: lambda node: f"-{node.args[0]}",
    Op.RECIP: lambda node: f"{literal(node.dtype, node.dtype.encode(1))} / {node.args[0]}",
    # A comparison is the same on every device; max and fmax differ in NaN and zeros.
    Op.MAX: lambda node: "{0} < {1} ? {1} : {0}".format(*node.args),
    Op.MIN: lambda node: "{1} < {0} ? {1} : {0}".format(*node.args),
    **{Op[name.upper()]: _function(name) for name in FUNCTIONS},
    Op.AND: _bitwise("&"),
    Op.OR: _bitwise("|"),
    Op.XOR: _bitwise("^"),
    Op.CMPLT: _compare("<"),
    Op.CMPNE: _compare("!="),
    Op.WHERE: _where,
    Op.CAST: _cast,
    Op.BITCAST: lambda node: f"as_{vector_type(node.dtype, node.width)}({node.args[0]})",
}
COMPARED = frozenset({*FLOATS, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64})
SPELLING = VectorSpelling(
    type=vector_type,
    made="({0})({1})",
    spreads=True,
    load=lambda p: f"load_{MARKS[p.space]}{p.type}({p.pointer})",
    store=lambda p, value: f"store_{MARKS[p.space]}{p.type}({value}, {p.pointer});",
    element=lambda vector, k: f"{vector}.s{k:x}",
    ops=OPS,
)


def _has(u: UOp) -> bool:
    dtype, source = u.dtype, u.src[0].dtype
    if u.op is Op.CAST:
        return _converts(source, dtype)
    if u.op is Op.BITCAST:
        return source in MEMORY and dtype in MEMORY and source.itemsize == dtype.itemsize
    if u.op in (Op.CMPLT, Op.CMPNE):
        return source in COMPARED
    if u.op is Op.WHERE:
        # Workaround copy-or-arithmetic: related operands are chosen between one by one.
        computed = (b for b in u.src if b.dtype is dtype and b.op in ELEMENTWISE)
        return dtype in MEMORY and not any(a in b.src for b in computed for a in u.src)
    is_bitwise = u.op in (Op.AND, Op.OR, Op.XOR)
    if not dtype.is_float and (is_bitwise or u.op in (Op.ADD, Op.SUB, Op.MUL)):
        return dtype in MEMORY or (dtype is dtypes.bool and is_bitwise)
    return u.op in OPS and dtype in FLOATS


def _converts(source: DType, to: DType) -> bool:
    """Whether `convert_` of OpenCL does the CAST: not of a float to an integer, and a small float
    rounds from float32.
    """
    if not {source, to} <= MEMORY:
        return False
    if storage(source) is not source or storage(to) is not to:
        return dtypes.float32 in (source, to)
    return to.is_float or not source.is_float


VECTORS = Vectors(size=32, registers=16, widths=WIDTHS, memory=MEMORY, has=_has, is_aligned=False)


# Workaround contraction: the pragma.
HEADER = """\
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef double f64;
#define f32_to_bits(x) as_uint(x)
#define bits_to_f32(x) as_float((u32)(x))
#define f64_to_bits(x) as_ulong(x)
#define bits_to_f64(x) as_double((u64)(x))"""

# OpenCL C has no atomic addition of floats: exchange the sum until no other item came between.
EXCHANGE = """\
for (u{n} old = f{n}_to_bits({{0}}), seen; (seen = {function}((volatile {{2}} u{n}*)&{{0}}, old, \
f{n}_to_bits(bits_to_f{n}(old) + {{1}}))) != old; old = seen)"""

DIALECT = Dialect(
    name="OpenCL C",
    header=HEADER,
    function="static inline",
    function_apart="static __attribute__((noinline))",
    kernel="kernel void",
    pointer="global",
    global_id=("get_global_id(0)", "get_global_id(1)", "get_global_id(2)"),
    group_id=("get_group_id(0)", "get_group_id(1)", "get_group_id(2)"),
    local_id=("get_local_id(0)", "get_local_id(1)", "get_local_id(2)"),
    shared="local",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    atomic_add={
        dtypes.int32: "atomic_add((volatile {2} i32*)&{0}, {1})",
        dtypes.uint32: "atomic_add((volatile {2} u32*)&{0}, {1})",
        dtypes.int64: "atom_add((volatile {2} i64*)&{0}, {1})",
        dtypes.uint64: "atom_add((volatile {2} u64*)&{0}, {1})",
        dtypes.float32: EXCHANGE.format(n=32, function="atomic_cmpxchg"),
        dtypes.float64: EXCHANGE.format(n=64, function="atom_cmpxchg"),
    },
    vectors=SPELLING,
    matrix=None,
    target="opencl",
    declarations={"opaque(": "#define opaque(x) (x)"},
    helpers=HELPERS,
)

OPENCL = CTarget("opencl", 64, dialect=DIALECT, opener=open_opencl, vectors=VECTORS)

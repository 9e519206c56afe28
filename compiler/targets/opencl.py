"""The OpenCL C dialect, and an OpenCL device with float64 as a target."""

from __future__ import annotations

from uop.compiler.runtime.opencl import open_opencl
from uop.compiler.targets.c import c_target
from uop.compiler.targets.cstyle import Dialect
from uop.compiler.targets.opencl_vectors import SPELLING, VECTORS
from uop.spec.dtype import dtypes

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
)

OPENCL = c_target(
    "opencl", DIALECT, open_opencl, local_size=64, keeps_addresses=False, vectors=VECTORS
)

"""The CUDA C++ dialect, and a CUDA device as a target."""

from __future__ import annotations

from dataclasses import replace

from uop.compiler.runtime.cuda import open_compiler, open_cuda
from uop.compiler.runtime.cuda_host import open_cuda_host
from uop.compiler.runtime.device import ALIGNMENT
from uop.compiler.targets.c import CTarget
from uop.compiler.targets.cstyle import Dialect, VectorSpelling, c_type
from uop.compiler.targets.prelude_cuda import MATRICES, matrix_name
from uop.compiler.targets.target import Vectors
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.ops.codegen import WARP

HEADER = """\
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define f32_to_bits(x) __float_as_uint(x)
#define bits_to_f32(x) __uint_as_float((u32)(x))
#define f64_to_bits(x) ((u64)__double_as_longlong(x))
"""

# Workaround signalling-constant: what a literal is remains unknown.
BITS_TO_F64 = """\
#ifdef ON_HOST
#define bits_to_f64(x) __longlong_as_double((i64)(x))
#else
static __device__ inline f64 bits_to_f64(i64 x) {
  asm("" : "+l"(x));
  return __longlong_as_double(x);
}
#endif"""
OPAQUE_TEXT = """\
static __device__ inline u32 opaque(u32 x) {
#ifndef ON_HOST
  asm("" : "+r"(x));
#endif
  return x;
}"""

# The compiler accesses memory by one instruction for a structure that is aligned to its size.
VECTOR = """\
template <class T, int N> struct __align__(sizeof(T) * N) vec {
  T s[N];
};"""
VECTORS = Vectors(
    size=ALIGNMENT,
    registers=64,
    widths=(2, 4, 8, 16),
    memory=frozenset(DTYPES.values()) - {dtypes.void, dtypes.bool, dtypes.index},
    has=lambda u: False,
    is_aligned=True,
)

MOST_SHARED = 48 << 10

DIALECT = Dialect(
    name="CUDA C++",
    header=HEADER,
    function="static __device__ inline",
    function_apart="static __device__ __noinline__",
    kernel='extern "C" __global__ void',
    pointer="",
    global_id=(
        "(i64)blockIdx.x * blockDim.x + threadIdx.x",
        "(i64)blockIdx.y * blockDim.y + threadIdx.y",
        "(i64)blockIdx.z * blockDim.z + threadIdx.z",
    ),
    group_id=("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    local_id=("threadIdx.x", "threadIdx.y", "threadIdx.z"),
    shared="__shared__ __align__(16)",
    barrier="__syncthreads()",
    atomic_add={
        dtypes.int32: "atomicAdd((u32*)&{0}, (u32){1})",
        dtypes.uint32: "atomicAdd((u32*)&{0}, {1})",
        dtypes.int64: "atomicAdd((u64*)&{0}, (u64){1})",
        dtypes.uint64: "atomicAdd((u64*)&{0}, {1})",
        dtypes.float32: "atomicAdd((f32*)&{0}, {1})",
        dtypes.float64: "atomicAdd((f64*)&{0}, {1})",
    },
    vectors=VectorSpelling(
        type=lambda dtype, width: f"vec<{c_type(dtype)}, {width}>",
        made="{0}{{{{{1}}}}}",
        spreads=False,
        load=lambda place: f"*({place.type}*)({place.pointer})",
        store=lambda place, value: f"*({place.type}*)({place.pointer}) = {value};",
        element=lambda vector, k: f"{vector}.s[{k}]",
        ops={},
    ),
    matrix=matrix_name,
    target="cuda",
    declarations={"vec<": VECTOR, "bits_to_f64(": BITS_TO_F64, "opaque(": OPAQUE_TEXT},
    opaque="opaque",
    warp_barrier="__syncwarp()",
    copy="copy_async({0}, {1})",
    copied="wait_for_copies()",
)

CUDA = CTarget(
    "cuda",
    256,
    dialect=DIALECT,
    opener=open_cuda,
    compiler_opener=open_compiler,
    keeps_addresses=True,
    vectors=VECTORS,
    matrices=MATRICES,
    most_shared=MOST_SHARED,
    warp=WARP,
)
CUDA_HOST = replace(CUDA, name="cuda-host", opener=open_cuda_host, compiler_opener=None)
"""The same sources, compiled for the CPU."""

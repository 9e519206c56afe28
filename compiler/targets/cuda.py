"""The CUDA C++ dialect with its matrix instructions and copies, and a CUDA device as a target.

A warp executes a matrix instruction together. The elements of a matrix are distributed over the
work items as the parallel thread execution ISA says, section "Warp-level matrix instructions".
Registers of 32 bits hold small floats, the first one lowest.
"""

from __future__ import annotations

from dataclasses import replace

from uop.compiler.runtime.cuda import open_compiler, open_cuda
from uop.compiler.runtime.cuda_host import open_cuda_host
from uop.compiler.runtime.device import ALIGNMENT
from uop.compiler.targets.c import CTarget
from uop.compiler.targets.cstyle import Dialect, VectorSpelling, c_type
from uop.compiler.targets.target import Vectors
from uop.spec.args import WmmaArg
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.ops.codegen import WARP, fragment_shapes

KINDS = {
    dtypes.float16: "f16",
    dtypes.bfloat16: "bf16",
    dtypes.fp8e4m3: "e4m3",
    dtypes.fp8e5m2: "e5m2",
}
"""The names of the dtypes of factors."""
MATRICES = frozenset(
    WmmaArg(16, 8, k, dtype, dtypes.float32)
    for dtype, sizes in (
        (dtypes.float16, (8, 16)),
        (dtypes.bfloat16, (16,)),
        (dtypes.fp8e4m3, (32,)),
        (dtypes.fp8e5m2, (32,)),
    )
    for k in sizes
)
WORD = 4

MATRIX_HELPER = """
FN vec<f32, 4> {name}(vec<{small}, {a}> a, vec<{small}, {b}> b, vec<f32, 4> c) {{
  const u32 *x = (const u32*)a.s, *y = (const u32*)b.s;
  asm volatile("mma.sync.aligned.m16n8k{k}.row.col.f32.{kind}.{kind}.f32 "
               "{{%0, %1, %2, %3}}, {{{factors}}}, {{{others}}}, {{%0, %1, %2, %3}};"
               : "+f"(c.s[0]), "+f"(c.s[1]), "+f"(c.s[2]), "+f"(c.s[3])
               : {registers});
  return c;
}}
"""


def matrix_name(arg: WmmaArg) -> str:
    """The name of the helper of an instruction."""
    return f"mma_m{arg.m}n{arg.n}k{arg.k}_{arg.dtype_in.name}"


def _helper(arg: WmmaArg) -> str:
    shapes = fragment_shapes(arg)
    assert shapes is not None
    (a,), (b,), _ = shapes
    words = [n * arg.dtype_in.itemsize // WORD for n in (a, b)]
    factors, others = (
        ", ".join(f"%{k}" for k in range(first, first + count))
        for first, count in ((4, words[0]), (4 + words[0], words[1]))
    )
    registers = [f'"r"({name}[{k}])' for name, n in zip("xy", words, strict=True) for k in range(n)]
    return MATRIX_HELPER.format(
        name=matrix_name(arg),
        small=f"u{arg.dtype_in.bits}",
        a=a,
        b=b,
        k=arg.k,
        kind=KINDS[arg.dtype_in],
        factors=factors,
        others=others,
        registers=", ".join(registers),
    )


# Older devices copy at once; `cuda-host` copies as late as it may.
COPY_HELPERS = """
template <class T>
FN void copy_async(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(T)) : "memory");
#elif defined ON_HOST
  uop_host::copy_later(to, from, sizeof(T));
#else
  *to = *from;
#endif
}

FN void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#elif defined ON_HOST
  uop_host::copy_now();
#endif
}
"""

HELPERS = "\n".join(_helper(arg) for arg in sorted(MATRICES, key=matrix_name)) + COPY_HELPERS


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
    helpers=HELPERS,
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

"""CUDA C++ helpers: matrix instructions, which a warp executes together, and copies.

The elements of a matrix are distributed over the work items as the parallel thread execution ISA
says, section "Warp-level matrix instructions". Registers of 32 bits hold small floats, the first
one lowest.
"""

from __future__ import annotations

from uop.spec.args import WmmaArg
from uop.spec.dtype import dtypes
from uop.spec.ops.codegen import fragment_shapes

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
NEEDED = {"e4m3": 89, "e5m2": 89}
"""The compute capability, times ten, that a dtype of factors needs if it is above that of the
others.
"""
WORD = 4

HELPER = """
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
    return HELPER.format(
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

TEXT = "\n".join(_helper(arg) for arg in sorted(MATRICES, key=matrix_name)) + COPY_HELPERS
